package runner_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/scheduler/runner"
	"docket/store/ci"
)

// serve serves a repository over HTTP. version 0 speaks the oldest protocol
// alone, which gives only what refs point to.
func serve(t *testing.T, g *repository, version int, sent *atomic.Int64) string {
	t.Helper()
	srv := httptest.NewServer(backend(t, g, version, sent))
	t.Cleanup(srv.Close)
	return srv.URL + "/remote.git"
}

func backend(t *testing.T, g *repository, version int, sent *atomic.Int64) http.HandlerFunc {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if version == 0 {
			r.Header.Del("Git-Protocol")
		}
		(&cgi.Handler{
			Path:   filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
			Env:    []string{"GIT_PROJECT_ROOT=" + filepath.Dir(g.bare), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"},
			Stderr: io.Discard,
		}).ServeHTTP(&counter{w, sent}, r)
	}
}

type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Ensure that the second run fetches only what is new, over the network and
// into the mirror, and a rerun nothing.
func TestSecondRunFetchesLittle(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	noise := make([]byte, 1<<20)
	f, err := os.Open("/dev/urandom")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Read(noise)
	_ = f.Close()
	g.commit("big", string(noise))
	for _, depth := range []int{0, 1} {
		t.Run(fmt.Sprintf("depth %d", depth), func(t *testing.T) {
			var sent atomic.Int64
			url := serve(t, g, 2, &sent)
			r, _ := mustRunner(t)
			w := workOf(url, g.head(), 1, "git rev-list --count HEAD")
			w.Spec.Git.Depth = depth
			rec := mustSucceed(t, r, w)
			if got := strings.TrimSpace(rec.text(0)); depth == 1 && got != "1" || depth == 0 && got < "2" {
				t.Errorf("the history has %s commits", got)
			}
			first := sent.Swap(0)
			w.Run.Number, w.Run.Source.Commit = 2, g.commit("small", fmt.Sprint(depth))
			mustSucceed(t, r, w)
			second := sent.Swap(0)
			w.Run.Number = 3
			mustSucceed(t, r, w)
			if first < 1<<20 || second > 50<<10 || sent.Load() != 0 {
				t.Errorf("sent were %d, %d and %d bytes", first, second, sent.Load())
			}
		})
	}
}

// Ensure that a commit which a force push left behind is built while the
// remote still has it, by its id or by history, and never another in its place.
func TestCommitGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := mustRepository(t)
	a := g.commit("f", "a")
	b := g.commit("f", "b")
	g.git("reset", "-q", "--hard", a)
	g.git("commit", "-q", "--amend", "-m", "amended")
	g.git("push", "-q", "--force", "origin", "HEAD:refs/heads/main")
	c := g.commit("f", "c")

	var sent atomic.Int64
	old, now := serve(t, g, 0, &sent), serve(t, g, 2, &sent)
	for name, tt := range map[string]struct {
		url, commit, ref string
		depth            int
		ok               bool
	}{
		"unreachable, by its id":                    {now, b, "refs/heads/main", 0, true},
		"unreachable, to a depth":                   {now, b, "refs/heads/main", 1, true},
		"unreachable from an old server":            {old, b, "refs/heads/main", 0, false},
		"unreachable from an old server to a depth": {old, b, "refs/heads/main", 1, false},
		"in the history, from an old server":        {old, c + "~1", "refs/heads/main", 0, true},
		"in the history, old server, to a depth":    {old, c + "~1", "refs/heads/main", 1, true},
		"the head of an old server":                 {old, c, "refs/heads/main", 1, true},
		"a branch that is gone, old server":         {old, b, "refs/heads/gone", 0, false},
		"never there":                               {now, strings.Repeat("1", 40), "refs/heads/main", 0, false},
		"a local path":                              {g.bare, b, "refs/heads/main", 0, true},
		"a file URL":                                {"file://" + g.bare, b, "refs/heads/main", 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := mustRunner(t)
			w := workOf(tt.url, g.git("rev-parse", "--revs-only", tt.commit), 1, "git rev-parse HEAD")
			w.Run.Source.Ref, w.Spec.Git.Depth = tt.ref, tt.depth
			res, rec := carry(t, r, w)
			if tt.ok {
				if res.State != ci.Succeeded || strings.TrimSpace(rec.text(0)) != w.Run.Source.Commit {
					t.Errorf("got %+v, %q", res, rec.text(0))
				}
			} else if res.State != ci.Failed || !strings.HasPrefix(res.Reason, "commit no longer available: ") || res.Steps[0].State != ci.StepSkipped {
				t.Errorf("got %+v", res)
			}
		})
	}

	g.in(g.bare, "reflog", "expire", "--expire=now", "--all")
	g.in(g.bare, "gc", "-q", "--prune=now")
	r, _ := mustRunner(t)
	start := time.Now()
	res, _ := carry(t, r, workOf(now, b, 1, "true"))
	if res.State != ci.Failed || !strings.HasPrefix(res.Reason, "commit no longer available: ") || time.Since(start) > 5*time.Second {
		t.Errorf("after gc: %+v in %s", res, time.Since(start))
	}
	_, err := r.ReadFile(ctx, "api", now, "refs/heads/main", b, "f", 100)
	if ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("ReadFile: %v", err)
	}
}

// Ensure that what a killed git left in the mirror, and a mirror that is
// broken, cost a run nothing.
func TestMirrorMended(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(t *testing.T, g *repository, mirror string){
		"stale locks": func(t *testing.T, g *repository, mirror string) {
			for _, f := range []string{"shallow.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "gc.pid", "refs/docket/keep/0/x.lock", "objects/pack/tmp_pack_1", "index.lock"} {
				mustWrite(t, filepath.Join(mirror, f), "x")
			}
			// The very ref that the next fetch writes.
			mustWrite(t, filepath.Join(mirror, "refs/docket/keep/0", g.head()+".lock"), "x")
		},
		"a truncated pack": func(t *testing.T, g *repository, mirror string) {
			packs, _ := filepath.Glob(filepath.Join(mirror, "objects/pack/*.pack"))
			if len(packs) == 0 {
				t.Fatal("the mirror has no pack")
			}
			for _, p := range packs {
				if err := os.Chmod(p, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(p, 40); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a flipped byte": func(t *testing.T, g *repository, mirror string) {
			packs, _ := filepath.Glob(filepath.Join(mirror, "objects/pack/*.pack"))
			if len(packs) == 0 {
				t.Fatal("the mirror has no pack")
			}
			for _, p := range packs {
				if err := os.Chmod(p, 0o600); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				for i := 40; i < len(b)-20; i += 7 {
					b[i] ^= 0x55
				}
				mustWrite(t, p, string(b))
			}
		},
		"packs gone": func(t *testing.T, g *repository, mirror string) { mustRemove(t, filepath.Join(mirror, "objects/pack")) },
		"no HEAD":    func(t *testing.T, g *repository, mirror string) { mustRemove(t, filepath.Join(mirror, "HEAD")) },
		"a bad config": func(t *testing.T, g *repository, mirror string) {
			mustWrite(t, filepath.Join(mirror, "config"), "[core\n")
		},
		"a bad HEAD": func(t *testing.T, g *repository, mirror string) {
			mustWrite(t, filepath.Join(mirror, "HEAD"), "garbage")
		},
		"not a mirror": func(t *testing.T, g *repository, mirror string) {
			mustRemove(t, mirror)
			mustWrite(t, mirror, "a file")
		},
		"half a mirror": func(t *testing.T, g *repository, mirror string) {
			mustRemove(t, mirror)
			mustWrite(t, mirror+".new/HEAD", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := mustRepository(t)
			r, data := mustRunner(t)
			old := g.head()
			mustSucceed(t, r, g.work(1, "true"))
			mirror := filepath.Join(data, "mirrors/api.git")
			breakIt(t, g, mirror)
			mustSucceed(t, r, workOf(g.bare, old, 2, "cat README")) // nothing new to fetch
			commit := g.commit("f", "new")
			breakIt(t, g, mirror)
			rec := mustSucceed(t, r, g.work(3, "cat f; git rev-parse HEAD"))
			if rec.text(0) != "new"+commit+"\n" {
				t.Errorf("printed %q", rec.text(0))
			}
		})
	}
}

// Ensure that damage which only the checkout meets is mended too.
func TestMirrorDamagedUnseen(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, data := mustRunner(t)
	g.commit("old", "old")
	mustSucceed(t, r, g.work(1, "true"))
	packs, _ := filepath.Glob(filepath.Join(data, "mirrors/api.git/objects/pack/*.pack"))
	g.commit("new", "new")
	mustSucceed(t, r, g.work(2, "true"))
	for _, p := range packs { // not the one that has the new commit
		mustRemove(t, p)
		mustWrite(t, p, "PACK")
	}
	if rec := mustSucceed(t, r, g.work(3, "cat old new")); rec.text(0) != "oldnew" {
		t.Errorf("printed %q", rec.text(0))
	}
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a workspace which is not the frozen commit is never built.
func TestHeadMismatch(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	other := g.commit("f", "other")
	frozen := g.commit("f", "frozen")
	for name, tt := range map[string]struct{ script, reason string }{
		"another commit":         {`[ "$1" = checkout ] && exec git checkout -q --force --detach ` + other + ` --`, "instead of " + frozen},
		"a failing checkout":     {`[ "$1" = checkout ] && { echo "fatal: index.lock exists" >&2; exit 128; }`, "index.lock exists"},
		"a file too many":        {`[ "$1" = checkout ] && { git "$@"; echo x >left-over; exit 0; }`, "left-over"},
		"a file with other text": {`[ "$1" = checkout ] && { git "$@"; echo x >f; exit 0; }`, `"f"`},
		"a file too few":         {`[ "$1" = checkout ] && { git "$@"; rm f; exit 0; }`, `"f"`},
	} {
		t.Run(name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "git")
			mustWrite(t, fake, "#!/bin/sh\n"+tt.script+"\nexec git \"$@\"\n")
			r, _ := mustRunner(t, func(o *runner.Options) { o.Git = fake })
			res, rec := carry(t, r, g.work(1, "echo built"))
			if res.State != ci.Failed || !strings.Contains(res.Reason, tt.reason) || rec.text(0) != "" {
				t.Errorf("got %+v, printed %q", res, rec.text(0))
			}
		})
	}
}

// Ensure that LFS pointers and submodules are left alone unless the project
// wants them, and that it is said.
func TestLFSAndSubmodules(t *testing.T) {
	sub := mustRepository(t)
	g := mustRepository(t)
	g.git("submodule", "--quiet", "add", sub.bare, "sub")
	mustWrite(t, filepath.Join(g.dir, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5\n"
	g.commit("a.bin", pointer)
	r, _ := mustRunner(t)
	w := g.work(1, "cat a.bin; ls sub")
	rec := mustSucceed(t, r, w)
	if rec.text(0) != pointer || !rec.noticed("0 [docket] 1 files of this commit are kept in Git LFS") {
		t.Errorf("printed %q, notices %q", rec.text(0), rec.notices)
	}
	w.Spec.Git.Submodules = true
	if rec := mustSucceed(t, r, w); rec.text(0) != pointer+"README\n" {
		t.Errorf("with submodules: printed %q", rec.text(0))
	}
	t.Setenv("PATH", "/usr/bin:/bin") // git without git-lfs, where that is installed apart
	w.Spec.Git.LFS = true
	res, _ := carry(t, r, w)
	if exec.Command("git", "lfs", "version").Run() != nil && (res.State != ci.Failed || !strings.Contains(res.Reason, "git-lfs is not installed")) {
		t.Errorf("with LFS: %+v", res)
	}
}

// Ensure that tags come with the history as they are now, and that line
// endings which only look changed do not stop a run.
func TestTagsAndLineEndings(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	g.git("tag", "-a", "-m", "x", "v1")
	g.git("tag", "moves")
	g.git("push", "-q", "origin", "--tags")
	if rec := mustSucceed(t, r, g.work(1, "git describe")); rec.text(0) != "v1\n" {
		t.Errorf("printed %q", rec.text(0))
	}
	g.commit("crlf.txt", "a\r\nb\r\n")
	g.commit(".gitattributes", "* text=auto\n")
	g.git("push", "-q", "origin", ":refs/tags/moves")
	g.git("push", "-q", "origin", "HEAD:refs/tags/moves/now")
	rec := mustSucceed(t, r, g.work(2, "git describe --exact-match --tags; git tag"))
	if rec.text(0) != "moves/now\nmoves/now\nv1\n" {
		t.Errorf("printed %q", rec.text(0))
	}
}
