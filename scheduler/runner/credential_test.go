package runner_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docket/scheduler/runner"
	"docket/store/ci"
)

// vault is a remote that gives its repository to who has the token.
type vault struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	token   string
	open    bool   // to everybody
	dir     string // of whose processes it looks for the token while it is asked
	asked   []string
	refused int
}

func newVault(t *testing.T, g *repository, token string) *vault {
	t.Helper()
	var sent atomic.Int64
	v, behind := &vault{t: t, token: token}, backend(t, g, 2, &sent)
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.lets(r) {
			behind(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="vault"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *vault) lets(r *http.Request) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	user, password, ok := r.BasicAuth()
	if ok && strings.Contains(r.URL.String(), "receive-pack") {
		v.t.Errorf("somebody pushes, as %q", user)
	}
	if ok {
		v.asked = append(v.asked, user+":"+password)
	}
	if v.open || ok && password == v.token {
		v.lookAround()
		return true
	}
	if ok {
		v.refused++
	}
	return false
}

// lookAround fails the test if the token shows in a process of the runner's.
func (v *vault) lookAround() {
	if v.dir == "" {
		return
	}
	seen := 0
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if !strings.Contains(string(env), "HOME="+v.dir+"/") {
			continue
		}
		seen++
		cmd, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.Contains(string(env)+string(cmd), v.token) {
			v.t.Errorf("the token shows in %q or its environment", cmd)
		}
	}
	if seen == 0 {
		v.t.Error("no process was looked at")
	}
}

// passwords are those that somebody signed in with, each once.
func (v *vault) passwords() (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.asked {
		if len(list) == 0 || list[len(list)-1] != a {
			list = append(list, a)
		}
	}
	return list
}

// giver gives credentials and counts what it was asked for.
type giver struct {
	mu      sync.Mutex
	secrets []string // one after the other, as each is refused; the last one stays
	err     error
	asked   int
	urls    map[string]bool
}

func (c *giver) give(_ context.Context, url, refused string) (string, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.urls == nil {
		c.urls = map[string]bool{}
	}
	c.urls[url] = true
	if c.err != nil {
		return "", "", c.err
	}
	if refused == c.secrets[0] && len(c.secrets) > 1 {
		c.secrets = c.secrets[1:]
	}
	return "x-access-token", c.secrets[0], nil
}

func (c *giver) into(o *runner.Options) { o.Credential = c.give }

// holds reports which files below dir hold a text.
func holds(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(path); strings.Contains(string(b), text) {
				found = append(found, path)
			}
		}
		return nil
	})
	return found
}

// Ensure that a private repository is fetched with the credential, that a run
// and its steps find nothing of it, and that nothing of it stays.
func TestAPrivateRepositoryIsFetchedAndNothingStays(t *testing.T) {
	t.Parallel()
	for name, fork := range map[string]bool{"a run": false, "a fork's run": true} {
		t.Run(name, func(t *testing.T) {
			g := mustRepository(t)
			v := newVault(t, g, "sesame-token-1")
			c := &giver{secrets: []string{"sesame-token-1"}}
			r, dir := mustRunner(t, c.into)
			v.dir = dir
			w := workOf(v.URL+"/remote.git", g.head(), 1, `cat README
env
cat .git/config ../gitconfig || true
git config --show-origin --list || true
ls -l /proc/self/fd || true
GIT_TERMINAL_PROMPT=0 git push origin HEAD:refs/heads/mine && echo PUSHED
GIT_TERMINAL_PROMPT=0 git fetch origin && echo FETCHED
grep -r "sesame-tok""en" ../.. && echo FOUND
true`)
			w.Run.Fork = fork
			rec := mustSucceed(t, r, w)
			all := rec.text(0) + rec.text(-1) + strings.Join(rec.notices, "\n")
			for _, bad := range []string{"sesame-token", "PUSHED", "FETCHED", "FOUND", "memfd"} {
				if strings.Contains(all, bad) {
					t.Errorf("%q shows in %s", bad, all)
				}
			}
			if !strings.Contains(all, "hello") {
				t.Errorf("the step said %s", all)
			}
			if found := holds(t, dir, "sesame-token"); found != nil {
				t.Errorf("the token lies in %v", found)
			}
			if p := v.passwords(); len(p) != 1 || p[0] != "x-access-token:sesame-token-1" {
				t.Errorf("%q were sent", p)
			}
		})
	}
}

// Ensure that everything else that asks a remote signs in, too.
func TestResolvingAndReadingSignIn(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	v := newVault(t, g, "sesame-token-1")
	c := &giver{secrets: []string{"sesame-token-1"}}
	r, _ := mustRunner(t, c.into)
	url := v.URL + "/remote.git"
	if got, err := r.Resolve(t.Context(), url, "refs/heads/main"); err != nil || got != g.head() {
		t.Errorf("%s, %v", got, err)
	}
	if b, err := r.ReadFile(t.Context(), "api", url, "refs/heads/main", g.head(), "README", 100); err != nil || string(b) != "hello\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// Ensure that a token that has ended is made anew, once.
func TestAnExpiredTokenIsFetchedAgain(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	v := newVault(t, g, "sesame-token-2")
	c := &giver{secrets: []string{"sesame-token-1", "sesame-token-2"}}
	r, _ := mustRunner(t, c.into)
	rec := mustSucceed(t, r, workOf(v.URL+"/remote.git", g.head(), 1, "true"))
	if all := rec.text(-1) + strings.Join(rec.notices, "\n"); strings.Contains(all, "sesame") {
		t.Errorf("a token shows in %s", all)
	}
	if v.refused != 1 {
		t.Errorf("%d times refused", v.refused)
	}
}

// Ensure that a credential that the remote does not take ends the run at
// once, with the reason.
func TestARefusedCredentialIsTheReason(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	v := newVault(t, g, "another")
	c := &giver{secrets: []string{"sesame-token-1", "sesame-token-2"}}
	r, _ := mustRunner(t, c.into)
	res, rec := carry(t, r, workOf(v.URL+"/remote.git", g.head(), 1, "true"))
	if res.State != ci.Failed || !strings.Contains(res.Reason, "refused access") {
		t.Errorf("%+v", res)
	}
	if all := res.Reason + rec.text(-1) + strings.Join(rec.notices, "\n"); strings.Contains(all, "sesame") {
		t.Errorf("a token shows in %s", all)
	}
	if v.refused != 2 {
		t.Errorf("%d times refused, want 2", v.refused)
	}
}

// Ensure that without a credential to be had a public repository is fetched
// all the same, and that of a private one it is the reason.
func TestNoCredentialToBeHad(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	v := newVault(t, g, "sesame-token-1")
	c := &giver{err: errors.New("this machine's clock is 95 s ahead of GitHub's; set it by NTP")}
	r, _ := mustRunner(t, c.into)
	res, _ := carry(t, r, workOf(v.URL+"/remote.git", g.head(), 1, "true"))
	if res.State != ci.Failed || !strings.Contains(res.Reason, "95 s ahead") {
		t.Errorf("%+v", res)
	}
	v.open = true
	mustSucceed(t, r, workOf(v.URL+"/remote.git", g.head(), 2, "true"))
}

// Ensure that neither a redirect nor a submodule takes the credential to
// another place.
func TestACredentialGoesNowhereElse(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	other := newVault(t, g, "nobody has it")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); !ok && strings.HasPrefix(r.URL.Path, "/private/") {
			w.Header().Set("WWW-Authenticate", `Basic realm="front"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// The same machine by another name is another host.
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+strings.TrimPrefix(r.URL.RequestURI(), "/private"), http.StatusFound)
	}))
	defer front.Close()
	c := &giver{secrets: []string{"sesame-token-1"}}
	r, _ := mustRunner(t, c.into)
	for i, path := range []string{"/remote.git", "/private/remote.git"} {
		res, _ := carry(t, r, workOf(front.URL+path, g.head(), uint64(1+i), "true"))
		if res.State != ci.Failed || len(other.passwords()) != 0 {
			t.Errorf("%s: %+v; the other host was told %q", path, res, other.passwords())
		}
	}

	inner, outer := mustRepository(t), mustRepository(t)
	secret := newVault(t, inner, "sesame-token-1")
	mustWrite(t, filepath.Join(outer.dir, ".gitmodules"), "[submodule \"inner\"]\n\tpath = inner\n\turl = "+secret.URL+"/remote.git\n")
	outer.git("add", ".gitmodules")
	outer.git("update-index", "--add", "--cacheinfo", "160000,"+inner.head()+",inner")
	outer.git("commit", "-q", "-m", "Take it in")
	outer.git("push", "-q", "origin", "HEAD:refs/heads/main")
	v := newVault(t, outer, "sesame-token-1")
	for i, fork := range []bool{false, true} {
		w := workOf(v.URL+"/remote.git", outer.head(), uint64(10+i), "true")
		w.Run.Fork, w.Spec.Git.Submodules = fork, true
		if res, _ := carry(t, r, w); res.State != ci.Failed || !strings.Contains(res.Reason, "submodules") {
			t.Errorf("fork %t: %+v", fork, res)
		}
	}
	if p := secret.passwords(); len(p) != 0 {
		t.Errorf("the submodule's host was told %q", p)
	}
}

// Ensure that who configured credentials, or another protocol, is not given
// any.
func TestNobodyIsAskedForAnotherCredential(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	v := newVault(t, g, "sesame-token-1")
	c := &giver{secrets: []string{"wrong"}}
	r, dir := mustRunner(t, c.into)
	mustSucceed(t, r, workOf(strings.Replace(v.URL, "://", "://me:sesame-token-1@", 1)+"/remote.git", g.head(), 1, `grep -r "sesame-tok""en" ../.. && exit 1; true`))
	mustSucceed(t, r, workOf(g.bare, g.head(), 2, "true"))
	if c.asked != 0 {
		t.Errorf("asked %d times: %v", c.asked, c.urls)
	}
	if found := holds(t, dir, "sesame-token"); found != nil {
		t.Errorf("the token lies in %v", found)
	}
}
