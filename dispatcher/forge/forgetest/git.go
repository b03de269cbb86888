package forgetest

import (
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
)

// Serve makes a bare git repository clonable as a repository that was added,
// at CloneURL. A private one is given only to who may read its contents.
func (g *GitHub) Serve(repository_, dir string, private bool) {
	g.t.Helper()
	g.change(repository_, func(r *repository) { r.dir, r.private = dir, private })
}

// git answers what git asks, over git's own backend. Pushing is never let in.
func (g *GitHub) git(w http.ResponseWriter, r *http.Request) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	g.mu.Lock()
	repo := g.repository(name)
	status := http.StatusOK
	if !ok || repo == nil || repo.dir == "" {
		status = http.StatusNotFound
	} else if repo.private {
		status = g.mayRead(r, repo)
	}
	dir := ""
	if repo != nil {
		dir = repo.dir
	}
	g.mu.Unlock()
	if strings.Contains(r.URL.RawQuery, "git-receive-pack") || rest == "git-receive-pack" {
		status = http.StatusUnauthorized
		if user, _, ok := r.BasicAuth(); ok && user != "" {
			status = http.StatusForbidden
		}
	}
	if status != http.StatusOK {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, http.StatusText(status), status)
		return
	}
	git, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r2 := r.Clone(r.Context())
	r2.URL.Path = "/" + filepath.Base(dir) + "/" + rest
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: dir, Root: "/",
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			"GIT_CONFIG_KEY_1=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_1=true",
			"GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
		},
	}
	backend.ServeHTTP(w, r2)
}

// mayRead is what a private repository answers to a reader.
func (g *GitHub) mayRead(r *http.Request, repo *repository) int {
	if _, _, ok := r.BasicAuth(); !ok {
		return http.StatusUnauthorized
	}
	c, refused := g.signIn(r)
	if refused != nil {
		return http.StatusUnauthorized
	}
	if no := c.may(repo, "contents", "read"); no != nil {
		return http.StatusNotFound
	}
	return http.StatusOK
}
