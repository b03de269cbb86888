package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Ensure that what init writes passes check as it stands, with modes that keep
// the secrets to their owner, and that the next steps are told.
func TestInitThenCheck(t *testing.T) {
	w := newWorld(t)
	dir := w.path("new/conf dir")
	out := w.must("init", dir)
	mustContain(t, "the output", out, "docket serve -c '"+dir+"/docket.yaml'", "/hooks/github", filepath.Join(dir, "github.secret"))

	for name, want := range map[string]struct {
		mode    os.FileMode
		pattern string
	}{
		"docket.yaml":   {0o644, `(?s)acme/hello`},
		"github.secret": {0o600, `^[0-9a-f]{64}\n$`},
		"admin.token":   {0o600, `^dkt_[A-Za-z0-9_-]{43}\n$`},
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want.mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want.mode)
		}
		if text := mustRead(t, filepath.Join(dir, name)); !regexp.MustCompile(want.pattern).MatchString(text) {
			t.Errorf("%s holds %q", name, text)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 3 {
		t.Errorf("the directory holds %v, %v; want three files and no leftovers", list, err)
	}

	check := w.must("check", "-c", filepath.Join(dir, "docket.yaml"))
	mustContain(t, "the summary", check, "is in order", filepath.Join(dir, "data"), "127.0.0.1:8080", "github", "hello")
	if secret := mustRead(t, filepath.Join(dir, "github.secret")); strings.Contains(out+check, strings.TrimSpace(secret)) {
		t.Error("a secret was printed")
	}
}

// Ensure that init for a Gitea passes check as it stands too, and says what
// Gitea calls things.
func TestInitForGitea(t *testing.T) {
	w := newWorld(t)
	out := w.must("init", "--provider", "gitea", w.dir)
	mustContain(t, "the output", out, "/hooks/gitea", w.path("gitea.secret"), "Target URL", "Pull Request Synchronized", "ALLOWED_HOST_LIST")
	check := w.must("check", "-c", w.path("docket.yaml"))
	mustContain(t, "the summary", check, "is in order", "gitea", "hello")
	if text := mustRead(t, w.path("docket.yaml")); strings.Contains(text, "github") || strings.Contains(text, "@") {
		t.Errorf("docket.yaml is not Gitea's:\n%s", text)
	}
	if strings.Contains(out, "github") || strings.Contains(out, "%!") {
		t.Errorf("the output is not Gitea's:\n%s", out)
	}
	r := w.run("init", "--provider", "gitlab", w.path("else"))
	if r.code != exitUsage || !strings.Contains(r.err, `must be github or gitea (which is Forgejo too), not "gitlab"`) {
		t.Errorf("got %+v", r)
	}
}

// Ensure that init works in the current directory and that its file is found
// there without -c.
func TestInitHere(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	mustContain(t, "the output", w.must("init"), "      docket serve\n")
	mustContain(t, "the summary", w.must("check"), "docket.yaml is in order")
}

// Ensure that nothing that exists is overwritten, and nothing is written
// beside it.
func TestInitNeverOverwrites(t *testing.T) {
	for _, name := range []string{"docket.yaml", "github.secret", "admin.token"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(name, "mine")
			r := w.run("init", w.dir)
			if r.code != exitFailed || !strings.HasPrefix(r.err, "docket: "+w.path(name)+" exists and is not overwritten; ") {
				t.Errorf("got %+v", r)
			}
			if list, _ := os.ReadDir(w.dir); len(list) != 1 || mustRead(t, w.path(name)) != "mine" {
				t.Errorf("the directory was changed: %v", list)
			}
		})
	}
	t.Run("a dangling link", func(t *testing.T) {
		w := newWorld(t)
		if err := os.Symlink(w.path("elsewhere"), w.path("admin.token")); err != nil {
			t.Fatal(err)
		}
		if r := w.run("init", w.dir); r.code != exitFailed {
			t.Errorf("got %+v", r)
		}
		if _, err := os.Stat(w.path("elsewhere")); err == nil {
			t.Error("the link was followed")
		}
	})
}

// Ensure that a file appears whole or not at all, and never replaces one that
// came in between.
func TestNewFileNeverReplaces(t *testing.T) {
	w := newWorld(t)
	path := w.write("f", "theirs")
	err := newFile{path, 0o600, "ours"}.write()
	if err == nil || mustRead(t, path) != "theirs" {
		t.Errorf("got %v, %q", err, mustRead(t, path))
	}
	if list, _ := os.ReadDir(w.dir); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

// Ensure that check reports every fault on stderr and in JSON, with exit code 1.
func TestCheckReportsFaults(t *testing.T) {
	w := newWorld(t)
	path := w.write("docket.yaml", "data_dir: /d\nbogus: 1\nlimits: {body: 1KB}\n")
	r := w.run("check", "-c", path)
	if r.code != exitFailed || r.out != "" {
		t.Errorf("got %+v", r)
	}
	mustContain(t, "stderr", r.err, path+":2:1: ", "\n  2 | bogus: 1\n    | ^\n", path+":3:16: ", "docket: "+path+" has 2 faults; ")

	r = w.run("check", "-c", path, "-o", "json")
	var got checked
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	if r.code != exitFailed || r.err != "" || got.OK || len(got.Faults) != 2 {
		t.Errorf("got %+v", r)
	}
	if f := got.Faults[0]; f.File != path || f.Line != 2 || f.Column != 1 || f.Source != "bogus: 1" {
		t.Errorf("got %+v", f)
	}
}

// Ensure that a sound configuration has an empty array of faults in JSON.
func TestCheckJSON(t *testing.T) {
	w := newWorld(t)
	path := w.write("docket.yaml", "data_dir: /d\n")
	out := w.must("check", "-c", path, "-o", "json")
	mustContain(t, "the output", out, `"ok": true`, `"faults": []`, `"data_dir": "/d"`)
}

// Ensure that no configuration at all is told with the way to one.
func TestNoConfiguration(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	if _, err := os.Stat(systemConfig); err == nil {
		t.Fatal(systemConfig + " exists on this machine, so this cannot be tested")
	}
	r := w.run("check")
	if r.code != exitFailed || !strings.Contains(r.err, "write one with `docket init`") {
		t.Errorf("got %+v", r)
	}
}
