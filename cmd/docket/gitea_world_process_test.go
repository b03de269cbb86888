package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"docket/store/ci"
)

// Whose headers a delivery comes with.
const (
	forgeGitea       = "gitea"
	forgeForgejo     = "forgejo"
	forgeForgejoOnly = "forgejo alone" // none of the others' names
)

const giteaToken = "gta_fortests"

// header is what the provider sends with a delivery's body.
func (w delivery) header() http.Header {
	signature := sign(ci.NewSecret("", hookSecret), w.body)
	h := http.Header{"Content-Type": {"application/json"}}
	named := func(name string) {
		h.Set("X-"+name+"-Event", w.event)
		h.Set("X-"+name+"-Delivery", w.id)
		if name != "GitHub" {
			h.Set("X-"+name+"-Event-Type", w.event)
			h.Set("X-"+name+"-Signature", strings.TrimPrefix(signature, signaturePrefix))
		}
	}
	switch w.forge {
	case forgeForgejoOnly:
		named("Forgejo")
		return h
	case forgeForgejo:
		named("Forgejo")
		fallthrough
	case forgeGitea:
		named("Gitea")
		named("Gogs")
		h.Set("X-Hub-Signature", "sha1="+strings.Repeat("0", 40))
	}
	named("GitHub")
	h.Set("X-Hub-Signature-256", signature)
	return h
}

// fakeGitea takes commit statuses as Gitea does: with a token of its own kind,
// for repositories and commits that it knows, in its words, and without fields
// that it has no use for. What it was told is in the book that it shares with
// the fake GitHub.
type fakeGitea struct {
	fakeGitHub
	commits map[string]bool // by owner/name@commit
}

func newFakeGitea(t *testing.T) *fakeGitea {
	t.Helper()
	forge := &fakeGitea{commits: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /git/api/v1/repos/{owner}/{repo}/statuses/{commit}", forge.createStatus)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	forge.URL = srv.URL + "/git/api/v1/"
	return forge
}

// knows tells the forge of a repository's commits.
func (forge *fakeGitea) knows(repo *repository, commits ...string) {
	forge.mu.Lock()
	defer forge.mu.Unlock()
	for _, c := range commits {
		forge.commits[repo.fullName+"@"+c] = true
	}
}

// integration is one that reports to the forge, whose token lies in gitea.token.
func (forge *fakeGitea) integration(name string) obj {
	return obj{
		"name": name, "provider": "gitea", "api_url": forge.URL, "token": obj{"file": "gitea.token"},
		"webhook_secrets": []obj{{"file": "hook.secret"}},
	}
}

func (forge *fakeGitea) createStatus(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, message string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(obj{"message": message, "url": forge.URL + "swagger"})
	}
	var s struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	strict := json.NewDecoder(r.Body)
	strict.DisallowUnknownFields()
	err := strict.Decode(&s)
	forge.mu.Lock()
	defer forge.mu.Unlock()
	forge.calls++
	repo, commit := r.PathValue("owner")+"/"+r.PathValue("repo"), r.PathValue("commit")
	switch {
	case r.Header.Get("Authorization") != "token "+giteaToken:
		refuse(http.StatusUnauthorized, "invalid username, password or token")
	case len(forge.script) > 0:
		a := forge.script[0]
		forge.script = forge.script[1:]
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		refuse(a.status, a.body)
	case err != nil || r.Header.Get("Content-Type") != "application/json":
		refuse(http.StatusUnprocessableEntity, "cannot read the form")
	case !forge.hasRepository(repo):
		refuse(http.StatusNotFound, "The target couldn't be found.")
	case !forge.commits[repo+"@"+commit]:
		refuse(http.StatusNotFound, commit)
	case !slices.Contains([]string{"pending", "success", "failure", "error", "warning"}, s.State):
		refuse(http.StatusUnprocessableEntity, "invalid state")
	case utf8.RuneCountInString(s.Description) > 140 || utf8.RuneCountInString(s.Context) > 255 || !strings.HasPrefix(s.TargetURL, "http://"):
		refuse(http.StatusUnprocessableEntity, "too long, or no address")
	default:
		forge.statuses = append(forge.statuses, status{repo, commit, s.Context, s.State, s.Description, s.TargetURL})
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(obj{"id": len(forge.statuses), "status": s.State})
	}
}

func (forge *fakeGitea) hasRepository(name string) bool {
	for c := range forge.commits {
		if strings.HasPrefix(c, name+"@") {
			return true
		}
	}
	return false
}
