package runner_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"docket/scheduler/runner"
	"docket/store/ci"
)

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
