package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"docket/store/ci"
)

// Ensure that a repository runs nothing and reaches nothing of the machine
// before its steps do: not by its submodules, whatever their addresses and
// update commands are, nor by its filters, hooks and links.
func TestAHostileRepositoryRunsNothing(t *testing.T) {
	private := mustRepository(t) // on this machine, and nobody else's to read
	private.commit("secret", "private\n")
	var sent atomic.Int64
	near := serve(t, private, 2, &sent) // the same where it may be had
	for what, tc := range map[string]struct{ module, reason string }{
		"a helper":          {"url = ext::sh -c touch% PWNED", "transport 'ext' not allowed"},
		"an option":         {"url = --upload-pack=touch PWNED; false", "No url found"},
		"an option to ssh":  {"url = ssh://-oProxyCommand=touch%20PWNED/x", "strange hostname"},
		"an update command": {"url = " + near + "\n\tupdate = !touch PWNED", "invalid value for 'submodule.sub.update'"},
		"a local path":      {"url = " + private.bare, "transport 'file' not allowed"},
		"a file":            {"url = file://" + private.bare, "transport 'file' not allowed"},
		"a path outside":    {"url = " + near + "\n\tpath = ../../outside", "No url found"},
	} {
		t.Run(what, func(t *testing.T) {
			pwned := filepath.Join(t.TempDir(), "pwned")
			module := strings.ReplaceAll(tc.module, "PWNED", pwned)
			if !strings.Contains(module, "path = ") {
				module += "\n\tpath = sub"
			}
			g := mustRepository(t)
			mustWrite(t, filepath.Join(g.dir, ".gitmodules"), "[submodule \"sub\"]\n\t"+module+"\n[core]\n\tfsmonitor = touch "+pwned+"\n")
			mustWrite(t, filepath.Join(g.dir, ".gitattributes"), "* filter=evil diff=evil\n")
			mustWrite(t, filepath.Join(g.dir, ".gitconfig"), "[filter \"evil\"]\n\tsmudge = touch "+pwned+"\n")
			if err := os.Symlink("/etc", filepath.Join(g.dir, "link")); err != nil {
				t.Fatal(err)
			}
			g.git("add", "-A")
			g.git("update-index", "--add", "--cacheinfo", "160000,"+private.head()+",sub")
			g.git("commit", "-q", "-m", "submodule")
			g.git("push", "-q", "--force", "origin", "HEAD:refs/heads/main")
			r, data := mustRunner(t)
			w := workOf(serve(t, g, 2, &sent), g.head(), 1, "cat sub/secret")
			w.Spec.Git.Submodules = true
			res, rec := carry(t, r, w)
			if res.State != ci.Failed || rec.text(0) != "" || !strings.Contains(res.Reason, tc.reason) {
				t.Errorf("%+v, printed %q", res, rec.text(0))
			}
			if _, err := os.Lstat(pwned); err == nil {
				t.Error("the repository ran a command")
			}
			if left, err := filepath.Glob(filepath.Join(data, "workspaces", "*", "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
