package server_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"docket/server"
	"docket/store/ci"
)

// Ensure that a page lets in who has the role, sends who is not signed in to
// do so, and tells who has too little what it takes.
func TestPages_NeedTheirRole(t *testing.T) {
	p := newPages(t)
	for _, need := range []ci.Role{ci.Viewer, ci.Operator, ci.Admin} {
		path := "/page/" + string(need)
		nobody := p.browser()
		wantGo(t, nobody.get(path+"?a=b&c=%2F"), "/login?next=%2Fpage%2F"+string(need)+"%3Fa%3Db%26c%3D%252F")
		wantProblem(t, nobody.do("POST", path, nil), 401)
		wantProblem(t, nobody.get(path, "Accept", "text/event-stream"), 401)
		for _, role := range []ci.Role{ci.Viewer, ci.Operator, ci.Admin} {
			b := p.browser().mustLogin(string(role))
			for _, method := range []string{"GET", "POST"} {
				a := b.do(method, path, nil)
				if role.Allows(need) != (a.status == 200) || a.status != 200 && a.status != 403 {
					t.Errorf("%s %s as %s: %v", method, path, role, a)
				}
				if a.status == 403 && !strings.Contains(wantProblem(t, a, 403).Detail, `whose role is `+string(role)+`; this needs the role `+string(need)) {
					t.Errorf("%s %s as %s: %v", method, path, role, a)
				}
			}
		}
	}
	if got := p.browser().who(); got != "nobody" {
		t.Errorf("a page for everybody: %q", got)
	}
	b := p.browser()
	b.cookie = &http.Cookie{Name: "__Host-docket_session", Value: "made-up"}
	if got := b.who(); got != "nobody" {
		t.Errorf("a session that there is not: %q", got)
	}
}

// Ensure that a session opens pages and a token the API, and neither the other:
// another site cannot make a browser use the API.
func TestSessionsAndTokensKeepApart(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("admin")
	for _, path := range []string{"/api/v1/runs", "/api/v1/users"} {
		wantProblem(t, b.get(path), 401)
	}
	wantProblem(t, b.do("POST", "/api/v1/login-links", nil), 401)
	wantGo(t, p.browser("Authorization", "Bearer "+p.token(ci.Admin)).get("/page/viewer"), "/login?next=%2Fpage%2Fviewer")
}

// Ensure that pages are where the ui is, and not on the admin socket, which
// takes everybody for an admin.
func TestPages_AreOnListenersOfTheUI(t *testing.T) {
	p := newPages(t)
	for parts, want := range map[string]int{"ui": 200, "api": 404, "hooks": 404, "api,ui": 200} {
		b := p.browser()
		b.base = p.mustListen(p.server.Handler(strings.Split(parts, ",")...))
		if a := b.get("/login"); a.status != want {
			t.Errorf("%s: %v", parts, a)
		}
	}
	b := p.browser()
	b.base = p.admin
	for _, path := range []string{"/login", "/login/link"} {
		if a := b.get(path); a.status != 404 {
			t.Errorf("%s on the admin socket: %v", path, a)
		}
	}
}

func TestClientAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		remote    string
		forwarded []string
		want      string
		network   string
	}{
		"straight":                     {"192.0.2.1:5", nil, "192.0.2.1", "192.0.2.1"},
		"anybody's word":               {"192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1", "192.0.2.1"},
		"a proxy here":                 {"127.0.0.1:5", []string{"198.51.100.1"}, "198.51.100.1", "198.51.100.1"},
		"a proxy here, and a claim":    {"127.0.0.1:5", []string{"192.0.2.7, 198.51.100.1"}, "198.51.100.1", "198.51.100.1"},
		"two headers":                  {"[::1]:5", []string{"10.0.0.1", "198.51.100.1"}, "198.51.100.1", "198.51.100.1"},
		"a proxy that says nothing":    {"127.0.0.1:5", nil, "127.0.0.1", "127.0.0.1"},
		"a proxy that says no address": {"127.0.0.1:5", []string{"unknown"}, "127.0.0.1", "127.0.0.1"},
		"IPv6":                         {"[2001:db8::1:2]:5", nil, "2001:db8::1:2", "2001:db8::/64"},
		"IPv6 with a zone":             {"[fe80::1%eth0]:5", nil, "fe80::1", "fe80::/64"},
		"IPv4 as IPv6":                 {"[::ffff:192.0.2.1]:5", nil, "192.0.2.1", "192.0.2.1"},
		"a socket":                     {"@", nil, "@", "@"},
		"a trusted proxy":              {"10.1.2.3:5", []string{"198.51.100.1"}, "198.51.100.1", "198.51.100.1"},
		"two of them":                  {"127.0.0.1:5", []string{"203.0.113.9, 198.51.100.1, 10.1.2.3"}, "198.51.100.1", "198.51.100.1"},
		"a trusted proxy, a claim":     {"10.1.2.3:5", []string{"10.9.9.9", "198.51.100.1"}, "198.51.100.1", "198.51.100.1"},
		"trusted all the way":          {"10.1.2.3:5", []string{"10.9.9.9"}, "10.9.9.9", "10.9.9.9"},
		"nothing after it":             {"10.1.2.3:5", []string{"unknown, 10.1.2.4"}, "10.1.2.4", "10.1.2.4"},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
		got := server.ClientAddress(r, netip.MustParsePrefix("10.0.0.0/8"))
		if got != tt.want || server.Network(got) != tt.network {
			t.Errorf("%s: %q of %q, want %q of %q", name, got, server.Network(got), tt.want, tt.network)
		}
	}
}
