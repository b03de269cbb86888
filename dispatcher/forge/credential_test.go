package forge_test

import (
	"strings"
	"testing"

	"docket/store/ci"
)

func TestACredentialGoesToTheIntegrationsOwnHostAlone(t *testing.T) {
	for _, c := range []struct {
		api, clone string
		want       bool
	}{
		{"https://api.github.com/", "https://github.com/acme/api.git", true},
		{"https://api.github.com/", "https://GitHub.com/acme/api", true},
		{"https://ghe.example.org/api/v3/", "https://ghe.example.org/acme/api.git", true},
		{"https://api.acme.ghe.com/", "https://acme.ghe.com/acme/api.git", true},
		{"https://api.github.com/", "http://github.com/acme/api.git", false},
		{"https://api.github.com/", "https://github.com.example.org/acme/api.git", false},
		{"https://api.github.com/", "https://github.com:8443/acme/api.git", false},
		{"https://api.github.com/", "https://me:pw@github.com/acme/api.git", false},
		{"https://api.github.com/", "https://gitlab.com/acme/api.git", false},
		{"https://api.github.com/", "ssh://git@github.com/acme/api.git", false},
		{"https://api.github.com/", "git@github.com:acme/api.git", false},
		{"https://api.github.com/", "/srv/git/api.git", false},
		{"https://api.github.com/", "file:///srv/git/api.git", false},
	} {
		r := newRig(t)
		r.useToken("ghp_verysecret")
		r.config.Integrations[0].APIURL = c.api
		user, secret, err := r.Credential(t.Context(), r.project(), c.clone, "")
		if err != nil || (secret != "") != c.want || (user != "") != c.want {
			t.Errorf("%s with %s: %q, %v", c.clone, c.api, user, err)
		}
	}
}

func TestGiteasTokenFetchesFromGitea(t *testing.T) {
	r := newRig(t)
	r.useToken("verysecret")
	r.config.Integrations[0].Provider, r.config.Integrations[0].APIURL = ci.ProviderGitea, "https://gitea.example.org/api/v1/"
	if _, secret, err := r.Credential(t.Context(), r.project(), "https://gitea.example.org/acme/api.git", ""); secret != "verysecret" || err != nil {
		t.Errorf("%v", err)
	}
	if _, secret, err := r.Credential(t.Context(), r.project(), "https://example.org/acme/api.git", ""); secret != "" || err != nil {
		t.Errorf("another host: %v", err)
	}
}

// Ensure that a clone's token reads one repository, and is made anew where
// the remote did not take it.
func TestACloneGetsATokenOfItsOwn(t *testing.T) {
	r := newRig(t)
	p := r.project()
	user, first, err := r.Credential(t.Context(), p, p.CloneURL, "")
	if err != nil || user != "x-access-token" || !strings.HasPrefix(first, "ghs_") {
		t.Fatalf("%q, %v", user, err)
	}
	if _, again, _ := r.Credential(t.Context(), p, p.CloneURL, ""); again != first {
		t.Error("another token while the first is good")
	}
	if _, again, _ := r.Credential(t.Context(), p, p.CloneURL, "another one"); again != first {
		t.Error("another token because another one was refused")
	}
	if _, again, err := r.Credential(t.Context(), p, p.CloneURL, first); again == first || err != nil {
		t.Errorf("the refused token again, %v", err)
	}
	p.Repository = "acme/none"
	if _, _, err := r.Credential(t.Context(), p, p.CloneURL, ""); ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(err.Error(), "acme/none") {
		t.Errorf("%v", err)
	}
	r.config.Integrations[0].App = nil
	if _, secret, err := r.Credential(t.Context(), p, p.CloneURL, ""); secret != "" || err != nil {
		t.Errorf("nothing to give: %v", err)
	}
}
