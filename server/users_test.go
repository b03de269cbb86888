package server_test

import (
	"net/url"
	"strings"
	"testing"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

func TestUsers(t *testing.T) {
	p := newPages(t)
	a := p.call(ci.Admin, "POST", "/users", `{"name":"mona@acme","role":"operator","password":"`+password+`"}`)
	if u := mustDecode[ci.User](t, a); a.status != 201 || u.Name != "mona@acme" || u.Role != ci.Operator || u.CreatedAt != ci.At(p.clock.now()) {
		t.Fatalf("add: %v", a)
	}
	b := p.browser().mustLogin("mona@acme")
	a = p.call(ci.Admin, "GET", "/users", "")
	list := mustDecode[struct {
		Users []ci.User `json:"users"`
		Next  *string   `json:"next_cursor"`
	}](t, a)
	if len(list.Users) != 4 || list.Users[1].Name != "mona@acme" || list.Next == nil || strings.Contains(string(a.body), "argon2") {
		t.Errorf("list: %v", a)
	}
	if a := p.call(ci.Admin, "PUT", "/users/mona%40acme/password", `{"password":"another one entirely"}`); a.status != 204 {
		t.Errorf("password: %v", a)
	}
	if b.who() != "nobody" || p.browser().login("mona@acme", password).status != 401 || p.browser().login("mona@acme", "another one entirely").status != 303 {
		t.Error("the old password lives on, or the new one does not")
	}
	if a := p.call(ci.Admin, "DELETE", "/users/mona%40acme", ""); a.status != 204 {
		t.Errorf("remove: %v", a)
	}
	decisions, _, err := p.store.Decisions("", store.Page{})
	if err != nil || decisions[0].Kind != ci.DecisionUserRemoved || decisions[0].User != "mona@acme" || decisions[0].By != (ci.By{Kind: ci.ByToken, Name: "admin"}) {
		t.Errorf("the decision: %+v, %v", decisions[0], err)
	}
}

func TestUsers_Refusals(t *testing.T) {
	p := newPages(t)
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/users", `{"name":"viewer","role":"viewer","password":"` + password + `"}`, 409},
		{"POST", "/users", `{"name":"x","role":"king","password":"` + password + `"}`, 422},
		{"POST", "/users", `{"name":"","role":"viewer","password":"` + password + `"}`, 422},
		{"POST", "/users", `{"name":"x","role":"viewer","password":"too short"}`, 422},
		{"POST", "/users", `{"name":"x","role":"viewer"}`, 422},
		{"POST", "/users", `{"name":"x","role":"viewer","hash":"y"}`, 422},
		{"PUT", "/users/x/password", `{"password":"` + password + `"}`, 404},
		{"PUT", "/users/viewer/password", `{"password":"too short"}`, 422},
		{"PUT", "/users/x/role", `{"role":"viewer"}`, 404},
		{"PUT", "/users/viewer/role", `{"role":"king"}`, 422},
		{"DELETE", "/users/x", "", 404},
		{"POST", "/login-links", `{"user":"x"}`, 404},
		{"POST", "/login-links", `{"name":"viewer"}`, 422},
	} {
		a := p.call(ci.Admin, tt.method, tt.path, tt.body)
		if wantProblem(t, a, tt.want); strings.Contains(string(a.body), "too short\"") {
			t.Errorf("%s %s: the answer shows the password: %v", tt.method, tt.path, a)
		}
	}
}

// mustLink makes a login link and returns its path.
func (p *pages) mustLink(user string) (path, token string) {
	p.t.Helper()
	a := p.call(ci.Admin, "POST", "/login-links", `{"user":"`+user+`"}`)
	made := mustDecode[struct {
		URL  string
		User string
	}](p.t, a)
	path, ok := strings.CutPrefix(made.URL, "https://ci.example.org")
	u, err := url.Parse(path)
	if a.status != 201 || !ok || err != nil || a.header.Get("Cache-Control") != "no-store" {
		p.t.Fatalf("login link: %v", a)
	}
	return path, u.Query().Get("token")
}

// Ensure that a login link is used up by who confirms it and by nothing else.
func TestLoginLink(t *testing.T) {
	p := newPages(t)
	path, token := p.mustLink("viewer")
	for _, method := range []string{"GET", "HEAD", "GET"} {
		a := p.browser().do(method, path, nil)
		if a.status != 200 || method == "GET" && !strings.Contains(string(a.body), "<bdi>viewer</bdi>") || a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", method, a)
		}
	}
	if a := p.browser().do("POST", "/login/link?token="+token, url.Values{}); a.status != 401 {
		t.Errorf("a POST of the address alone: %v", a)
	}
	b := p.browser()
	wantGo(t, b.post("/login/link", "token", token, "next", "/runs/api-1"), "/runs/api-1")
	if got := b.who(); got != "user viewer viewer" {
		t.Errorf("signed in as %q", got)
	}
	again := p.browser()
	for _, a := range []answer{again.get(path), again.post("/login/link", "token", token)} {
		if a.status != 401 || !strings.Contains(string(a.body), "docket login-link") || again.cookie != nil {
			t.Errorf("used again: %v", a)
		}
	}
	_, token = p.mustLink("")
	wantGo(t, b.post("/login/link", "token", token), "/")
	if got := b.who(); got != "user admin admin" {
		t.Errorf("signed in as %q", got)
	}
	p.clock.add(store.LoginLinkLife)
	_, token = p.mustLink("viewer")
	p.clock.add(store.LoginLinkLife)
	if a := p.browser().post("/login/link", "token", token); a.status != 401 {
		t.Errorf("too late: %v", a)
	}
}

func TestPageURL(t *testing.T) {
	listen := func(l ...ci.Listen) *ci.Config { return &ci.Config{Listen: l} }
	for name, tt := range map[string]struct {
		cfg  *ci.Config
		want string
		code ci.Code
	}{
		"public":              {&ci.Config{PublicURL: "https://ci.example.org/docket", Listen: []ci.Listen{{Address: ":1"}}}, "https://ci.example.org/docket", ""},
		"one listener":        {listen(ci.Listen{Address: "127.0.0.1:8080"}), "http://127.0.0.1:8080", ""},
		"every address":       {listen(ci.Listen{Address: ":8080"}), "http://127.0.0.1:8080", ""},
		"every IPv6 address":  {listen(ci.Listen{Address: "[::]:8080"}), "http://127.0.0.1:8080", ""},
		"the one with the ui": {listen(ci.Listen{Address: ":1", Serve: []string{"hooks"}}, ci.Listen{Address: "[::1]:2", Serve: []string{"ui"}}), "http://[::1]:2", ""},
		"any port":            {listen(ci.Listen{Address: ":0"}), "", ci.CodeConflict},
		"no ui":               {listen(ci.Listen{Address: ":1", Serve: []string{"api"}}), "", ci.CodeConflict},
	} {
		got, err := server.PageURL(tt.cfg)
		if got != tt.want || ci.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
