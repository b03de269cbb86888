package runner_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
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

// Ensure that a remote which never answers, refuses, or is missing ends the
// run in time, with the reason, and that nobody is asked for a password.
func TestRemoteTrouble(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var flaky atomic.Int64
	answer := func(code int) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			flaky.Add(1)
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(code)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	askpass := filepath.Join(t.TempDir(), "askpass")
	asked := askpass + ".asked"
	mustWrite(t, askpass, "#!/bin/sh\ntouch "+asked+"\necho x\n")
	for _, name := range []string{"GIT_ASKPASS", "SSH_ASKPASS"} {
		t.Setenv(name, askpass)
	}
	commit := strings.Repeat("1", 40)
	for name, tt := range map[string]struct {
		url, reason string
		tries       int64
	}{
		"silence":          {"http://" + silent.Addr().String() + "/x.git", "did not end within 1s", 0},
		"401":              {answer(401) + "/x.git", "refused access", 0},
		"401 and a token":  {strings.Replace(answer(401), "://", "://user:hidden-token@", 1) + "/x.git", "refused access", 0},
		"403":              {answer(403) + "/x.git", "refused access", 0},
		"404":              {answer(404) + "/x.git", "there is no repository at", 0},
		"500":              {answer(500) + "/x.git", "cannot fetch from", 2},
		"no such path":     {"/nonexistent/x.git", "there is no repository at", 0},
		"ext":              {"ext::sh -c touch% pwned", "is not one that docket uses", 0},
		"an option":        {"--upload-pack=touch pwned", "is not one that docket uses", 0},
		"an option to ssh": {"ssh://-oProxyCommand=touch/x", "is not one that docket uses", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := mustRunner(t, func(o *runner.Options) {
				o.FetchTimeout = 10 * time.Second
				if name == "silence" {
					o.FetchTimeout = time.Second
				}
			})
			flaky.Store(0)
			start := time.Now()
			res, rec := carry(t, r, workOf(tt.url, commit, 1, "true"))
			all := res.Reason + fmt.Sprint(rec.notices) + rec.text(-1)
			if res.State != ci.Failed || !strings.Contains(res.Reason, tt.reason) || strings.Contains(all, "hidden-token") {
				t.Errorf("got %+v; %s", res, all)
			}
			if d := time.Since(start); d > 8*time.Second {
				t.Errorf("it took %s", d)
			}
			if flaky.Load() < tt.tries {
				t.Errorf("it was tried %d times", flaky.Load())
			}
			if _, err := r.Resolve(context.Background(), tt.url, "refs/heads/main"); err == nil || ci.CodeOf(err) == ci.CodeNotFound || strings.Contains(err.Error(), "hidden-token") {
				t.Errorf("Resolve: %v", err)
			}
		})
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("somebody was asked for a password")
	}
}

// Ensure that a remote which fails for a moment is asked again.
func TestTemporaryFailure(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	var sent, calls atomic.Int64
	healthy := backend(t, g, 2, &sent)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		healthy(w, r)
	}))
	defer srv.Close()
	r, _ := mustRunner(t)
	mustSucceed(t, r, workOf(srv.URL+"/remote.git", g.head(), 1, "true"))
}

// Ensure that the host's and an earlier step's git configuration does
// nothing, and that credentials stay out of the workspace.
func TestHostileConfiguration(t *testing.T) {
	g := mustRepository(t)
	home := t.TempDir()
	hooks := filepath.Join(home, "hooks")
	mustWrite(t, filepath.Join(hooks, "post-checkout"), "#!/bin/sh\ntouch "+home+"/hooked\n")
	mustWrite(t, filepath.Join(hooks, "reference-transaction"), "#!/bin/sh\ntouch "+home+"/hooked\n")
	mustWrite(t, filepath.Join(home, ".gitconfig"), "[core]\n\thooksPath = "+hooks+"\n\tautocrlf = true\n\tfsmonitor = touch "+home+"/hooked\n[url \"/elsewhere/\"]\n\tinsteadOf = /\n[protocol]\n\tallow = never\n")
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
	t.Setenv("GIT_CONFIG_VALUE_0", hooks)
	r, _ := mustRunner(t)
	first := mustSucceed(t, r, g.work(1, `od -c README | head -1; git config --global core.hooksPath `+hooks+`; echo dirt >>README; echo x >.git/index.lock; git config --list --show-origin | grep -c hooksPath || true`))
	if !strings.Contains(first.text(0), `h   e   l   l   o  \n`) {
		t.Errorf("printed %q", first.text(0))
	}
	second := mustSucceed(t, r, g.work(2, `cat README; git config --global core.hooksPath || echo none`))
	if second.text(0) != "hello\nnone\n" {
		t.Errorf("printed %q", second.text(0))
	}
	if _, err := os.Stat(home + "/hooked"); err == nil {
		t.Error("a hook ran")
	}
}

// Ensure that a remote which another user owns can be used where it is
// configured, and that no other directory is trusted with it.
func TestOwnership(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	g := mustRepository(t)
	if err := filepath.WalkDir(filepath.Dir(g.bare), func(p string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(p, g.bare) {
			err = syscall.Lchown(p, 12345, 12345)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r, _ := mustRunner(t)
	rec := mustSucceed(t, r, workOf(g.bare, g.head(), 1, "git log -1 --format=%H"))
	if strings.TrimSpace(rec.text(0)) != g.head() {
		t.Errorf("printed %q", rec.text(0))
	}
}

// Ensure that refs resolve to exactly what they name.
func TestResolve(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, data := mustRunner(t)
	head := g.head()
	g.git("tag", "-a", "-m", "x", "v1")
	g.git("tag", "-a", "-m", "x", "v2", "v1") // a tag of a tag
	g.git("tag", "light")
	g.git("push", "-q", "origin", "--tags")
	second := g.commit("f", "x")
	g.git("push", "-q", "origin", "HEAD:refs/heads/refs/heads/other")
	g.git("push", "-q", "origin", "HEAD:refs/pull/7/head")
	for ref, want := range map[string]string{
		"refs/heads/main": second, "refs/tags/v1": head, "refs/tags/v2": head, "refs/tags/light": head, "refs/pull/7/head": second,
		"refs/heads/refs/heads/other": second,
	} {
		if got, err := r.Resolve(context.Background(), g.bare, ref); got != want || err != nil {
			t.Errorf("%s resolved to %s, %v; want %s", ref, got, err, want)
		}
	}
	_, err := r.Resolve(context.Background(), g.bare, "refs/heads/other")
	if ci.CodeOf(err) != ci.CodeNotFound || ci.MessageOf(err) != "branch other does not exist in "+g.bare {
		t.Errorf("a branch that is not there: %v", err)
	}
	for _, ref := range []string{"main", "refs/heads/a b", "refs/heads/*", "refs/heads/a..b", "--upload-pack=x", "refs/heads/x.lock", "refs/heads/", "refs/heads/a:b", "refs/heads/a\nb"} {
		if _, err := r.Resolve(context.Background(), g.bare, ref); ci.CodeOf(err) != ci.CodeInvalid {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(data, "workspaces", ".scratch")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Ensure that a file is read at the exact commit, and only a file.
func TestReadFile(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	first := g.commit("dir/.docket.yml", "first")
	if err := os.Symlink("/etc/passwd", filepath.Join(g.dir, "link")); err != nil {
		t.Fatal(err)
	}
	second := g.commit("dir/.docket.yml", "second")
	for name, tt := range map[string]struct {
		commit, path string
		limit        int64
		want         string
		code         ci.Code
	}{
		"the first commit":   {first, "dir/.docket.yml", 100, "first", ""},
		"the second":         {second, "dir/.docket.yml", 6, "second", ""},
		"over the limit":     {second, "dir/.docket.yml", 5, "", ci.CodeTooLarge},
		"missing":            {first, "link", 100, "", ci.CodeNotFound},
		"a symbolic link":    {second, "link", 100, "", ci.CodeInvalid},
		"through a link":     {second, "link/x", 100, "", ci.CodeNotFound},
		"a directory":        {second, "dir", 100, "", ci.CodeInvalid},
		"outside":            {second, "../x", 100, "", ci.CodeInvalid},
		"absolute":           {second, "/etc/passwd", 100, "", ci.CodeInvalid},
		"a pattern":          {second, "dir/*", 100, "", ci.CodeNotFound},
		"magic":              {second, ":(glob)**", 100, "", ci.CodeNotFound},
		"an option":          {second, "--help", 100, "", ci.CodeNotFound},
		"no commit":          {"main", "README", 100, "", ci.CodeInvalid},
		"a commit not there": {strings.Repeat("1", 40), "README", 100, "", ci.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.ReadFile(context.Background(), "api", g.bare, "refs/heads/main", tt.commit, tt.path, tt.limit)
			if string(got) != tt.want || ci.CodeOf(err) != tt.code {
				t.Errorf("read %q, %v", got, err)
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

// Ensure that a stop ends a fetch that hangs.
func TestStopWhileFetching(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r, _ := mustRunner(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan runner.Result, 1)
	go func() {
		done <- r.Carry(ctx, workOf("http://"+silent.Addr().String()+"/x", strings.Repeat("1", 40), 1, "true"), newRecorder())
	}()
	c, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancel(&runner.Stop{State: ci.Cancelled, Reason: "enough"})
	if res := <-done; res.State != ci.Cancelled || res.Reason != "enough (ended by SIGTERM)" || res.Steps[0].State != ci.StepSkipped {
		t.Errorf("got %+v", res)
	}
}
