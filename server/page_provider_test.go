package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"docket/server"
	"docket/store/ci"
)

func TestRepositoryURL(t *testing.T) {
	for _, tt := range []struct{ provider, api, repository, want string }{
		{"github", "https://api.github.com/", "acme/api", "https://github.com/acme/api"},
		{"github", "https://api.github.com", "acme/api.git", "https://github.com/acme/api"},
		{"github", "https://ghe.example.org/api/v3/", "acme/api", "https://ghe.example.org/acme/api"},
		{"gitea", "https://git.example.org/api/v1/", "acme/api", "https://git.example.org/acme/api"},
		{"gitea", "http://example.org:3000/git/api/v1/", "acme/api", "http://example.org:3000/git/acme/api"},
		{"github", "", "acme/api", ""},
		{"github", "javascript:alert(1)//", "acme/api", ""},
		{"github", "https://api.github.com/", "api", ""},
		{"github", "https://api.github.com/", `acme/"><b>`, "https://github.com/acme/%22%3E%3Cb%3E"},
	} {
		if got := server.RepositoryURL(&ci.Integration{Provider: tt.provider, APIURL: tt.api}, tt.repository); got != tt.want {
			t.Errorf("%v: %q", tt, got)
		}
	}
}

func TestSourceURLs(t *testing.T) {
	github := &ci.Integration{Provider: "github", APIURL: "https://api.github.com/"}
	gitea := &ci.Integration{Provider: "gitea", APIURL: "https://g/api/v1/"}
	for what, tt := range map[string]struct {
		in        *ci.Integration
		src       ci.Source
		wantRef   string
		hasCommit bool
	}{
		"a branch":            {github, ci.Source{Branch: "a/b c?", Commit: commitA}, "https://github.com/o/r/tree/a/b%20c%3F", true},
		"a tag":               {github, ci.Source{Tag: "v1#"}, "https://github.com/o/r/tree/v1%23", false},
		"a pull request":      {github, ci.Source{Branch: "x", PullRequest: &ci.PullRequest{Number: 7}}, "https://github.com/o/r/pull/7", false},
		"gitea's branch":      {gitea, ci.Source{Branch: "a/b"}, "https://g/o/r/src/branch/a/b", false},
		"gitea's tag":         {gitea, ci.Source{Tag: "v1"}, "https://g/o/r/src/tag/v1", false},
		"gitea's pull":        {gitea, ci.Source{PullRequest: &ci.PullRequest{Number: 7}}, "https://g/o/r/pulls/7", false},
		"nothing with a name": {github, ci.Source{Ref: "refs/notes/x"}, "", false},
	} {
		tt.src.Repository = "o/r"
		repo, commit, ref := server.SourceURLs(tt.in, tt.src)
		if ref != tt.wantRef || (commit != "") != tt.hasCommit || tt.hasCommit && !strings.HasSuffix(commit, "/o/r/commit/"+commitA) || repo == "" {
			t.Errorf("%s: %q %q %q", what, repo, commit, ref)
		}
	}
}

func TestBackTo(t *testing.T) {
	for path, want := range map[string]string{
		"/runs/api-1/cancel": "/runs/api-1", "/projects/a%2Fb/runs": "/projects/a%2Fb", "/notifications/msg_1/retry": "/notifications",
		"/deliveries/github/-/d%2F1/replay": "/deliveries/github/-/d%2F1", "/logout": "/logout",
	} {
		if got := server.BackTo(httptest.NewRequest("POST", path, nil)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Ensure that the page says what to paste and to tick at each provider, in its
// own words, and links to its pages by the configured address alone.
func TestSetup_SpeaksTheProvidersWords(t *testing.T) {
	all := ci.On{
		Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{SkipLabels: []string{"no-ci"}},
		MergeGroup: &ci.OnMergeGroup{}, Release: &ci.OnRelease{}, Dispatch: &ci.OnDispatch{},
	}
	p := newPages(t, func(c *ci.Config) { c.Projects[0].On = all })
	wantIn(t, wantPage(t, p.browser().mustLogin("viewer").get("/setup"), 200), "/hooks/github", "Payload URL", "Content type",
		"<b>Merge groups</b>", "<b>Pull requests</b>", "<b>Pushes</b>", "<b>Releases</b>", "<b>Repository dispatches</b>", "https://github.com/acme/api/settings/hooks")

	p = newPages(t, ofGitea, func(c *ci.Config) { c.Projects[0].On = all })
	b := p.browser().mustLogin("viewer")
	wantIn(t, wantPage(t, b.get("/setup"), 200), "Gitea or Forgejo", "/hooks/forge", "Target URL", "POST Content Type", "Custom Events",
		"<b>Push</b>, <b>Delete</b>, <b>Release</b>, <b>Pull Request</b>, <b>Pull Request Synchronized</b>, <b>Pull Request Labeled</b>",
		"https://git.example.org/acme/api/settings/hooks")
	if a := p.deliverGitea(giteaPush(), asGitea("push", giteaPush())...); a.status != 202 {
		t.Fatal(a)
	}
	wantIn(t, wantPage(t, b.get("/runs/api-1"), 200), "https://git.example.org/acme/api/commit/"+commitA, "https://git.example.org/acme/api/src/branch/main")

	if got := server.EventsToTick(ci.ProviderGitea, []ci.On{{Push: &ci.OnPush{}}}); strings.Join(got, " ") != "Push Delete" {
		t.Errorf("for pushes alone: %v", got)
	}
}

// Ensure that without a public address the page shows the one that it was asked by.
func TestSetup_WithoutPublicURL(t *testing.T) {
	p := newPages(t, func(c *ci.Config) { c.PublicURL = "" })
	b := p.browser().mustLogin("viewer")
	wantIn(t, wantPage(t, b.get("/setup"), 200), p.url+"/hooks/github", "public_url")
	wantIn(t, wantPage(t, b.get("/projects/api"), 200), p.url+"/projects/api/badge.svg")
}
