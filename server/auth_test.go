package server_test

import (
	"slices"
	"strings"
	"testing"

	"docket/server"
	"docket/store/ci"
)

// Ensure that every route has a rule here, and that it holds: a new route
// without one fails this test.
func TestEveryRouteNeedsItsRole(t *testing.T) {
	const open = ci.Role("")
	api := map[string]ci.Role{
		"GET /runs":                        ci.Viewer,
		"GET /runs/:run":                   ci.Viewer,
		"GET /runs/:run/logs":              ci.Viewer,
		"POST /projects/:project/runs":     ci.Operator,
		"GET /paused":                      ci.Viewer,
		"GET /state":                       ci.Viewer,
		"GET /log-level":                   ci.Viewer,
		"PUT /log-level":                   ci.Admin,
		"POST /runs/pause":                 ci.Operator,
		"POST /runs/resume":                ci.Operator,
		"POST /outbox/pause":               ci.Operator,
		"POST /outbox/resume":              ci.Operator,
		"POST /runs/:run/cancel":           ci.Operator,
		"POST /runs/:run/rerun":            ci.Operator,
		"POST /runs/:run/approve":          ci.Operator,
		"GET /projects":                    ci.Viewer,
		"GET /projects/:project":           ci.Viewer,
		"GET /projects/:project/badge.svg": ci.Viewer,
		"POST /projects/:project/repin":    ci.Admin,
		"GET /receipts":                    ci.Viewer,
		"GET /receipts/:integration/:installation/:delivery":         ci.Viewer,
		"GET /receipts/:integration/:installation/:delivery/body":    ci.Viewer,
		"GET /receipts/:integration/:installation/:delivery/explain": ci.Viewer,
		"POST /receipts/:integration/:installation/:delivery/replay": ci.Operator,
		"GET /refusals":               ci.Viewer,
		"GET /outbox":                 ci.Viewer,
		"GET /outbox/:entry":          ci.Viewer,
		"POST /outbox/:entry/retry":   ci.Operator,
		"POST /outbox/:entry/discard": ci.Operator,
		"GET /decisions":              ci.Viewer,
		"GET /recoveries":             ci.Viewer,
		"POST /recover":               ci.Operator,
		"GET /gaps":                   ci.Viewer,
		"GET /heads":                  ci.Viewer,
		"POST /heads/start":           ci.Operator,
		"GET /tokens":                 ci.Admin,
		"POST /tokens":                ci.Admin,
		"DELETE /tokens/:token":       ci.Admin,
		"GET /users":                  ci.Admin,
		"POST /users":                 ci.Admin,
		"DELETE /users/:user":         ci.Admin,
		"PUT /users/:user/password":   ci.Admin,
		"PUT /users/:user/role":       ci.Admin,
		"POST /login-links":           ci.Admin,
		"POST /backup":                ci.Admin,
		"POST /verify":                ci.Admin,
		"POST /reload":                ci.Admin,
	}
	// Pages have sessions; TestEveryPageNeedsItsRole has their rules.
	pages := server.ListPages()
	rules := map[string]ci.Role{
		"GET /": open, "HEAD /": open, "GET /healthz": open, "HEAD /healthz": open, "GET /readyz": open, "HEAD /readyz": open,
		"GET /metrics": open, "HEAD /metrics": open, server.AnyMethod + " /hooks/:integration": open,
	}
	for route, role := range api {
		rules[strings.Replace(route, " ", " /api/v1", 1)] = role
	}
	routes := server.ListRoutes()
	if len(routes) != len(rules)+len(pages) {
		t.Errorf("%d routes, %d of them pages, and %d rules", len(routes), len(pages), len(rules))
	}

	r := newRig(t)
	roles := []ci.Role{ci.Viewer, ci.Operator, ci.Admin}
	for _, route := range routes {
		if slices.Contains(pages, route) {
			continue
		}
		need, ok := rules[route]
		if !ok {
			t.Errorf("the route %q has no rule", route)
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if method == server.AnyMethod {
			continue // the signature is its token
		}
		ask := func(base, token string) answer {
			req := mustRequest(t, method, base+strings.NewReplacer(":project", "api", ":run", "api-77").Replace(path), "")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			return r.do(req)
		}
		if need == open {
			if a := ask(r.url, ""); a.status != 200 {
				t.Errorf("%s is not open: %v", route, a)
			}
			continue
		}
		if a := ask(r.url, ""); a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s without a token: %v", route, a)
		}
		wantProblem(t, ask(r.url, "wrong"), 401)
		for _, role := range roles {
			a := ask(r.url, r.token(role))
			if refused := a.status == 403; refused == role.Allows(need) || a.status == 401 || a.status >= 500 {
				t.Errorf("%s as %s: %v", route, role, a)
			}
		}
		if a := ask(r.admin, ""); a.status == 401 || a.status == 403 {
			t.Errorf("%s on the admin socket: %v", route, a)
		}
	}
}

// Ensure that every page has a rule here, and that it holds: a new page
// without one fails this test.
func TestEveryPageNeedsItsRole(t *testing.T) {
	const open = ci.Role("")
	rules := map[string]ci.Role{
		"GET /login": open, "HEAD /login": open, "POST /login": open, "GET /login/link": open, "HEAD /login/link": open, "POST /login/link": open,
		"POST /logout": open, "POST /logout-everywhere": ci.Viewer,
		"GET /assets/*": open, "HEAD /assets/*": open,
		"POST /projects/:project/runs": ci.Operator, "POST /projects/:project/heads/start": ci.Operator, "POST /runs/:run/cancel": ci.Operator, "POST /runs/:run/rerun": ci.Operator,
		"POST /runs/pause": ci.Operator, "POST /runs/resume": ci.Operator, "POST /notifications/pause": ci.Operator, "POST /notifications/resume": ci.Operator,
		"POST /runs/:run/approve": ci.Operator, "POST /notifications/:entry/retry": ci.Operator, "POST /notifications/:entry/discard": ci.Operator,
		"POST /deliveries/:integration/:installation/:delivery/replay": ci.Operator,
	}
	for _, path := range []string{"/", "/projects/:project", "/projects/:project/badge.svg", "/projects/:project/runs", "/runs/:run", "/runs/:run/logs",
		"/deliveries", "/deliveries/:integration/:installation/:delivery", "/deliveries/:integration/:installation/:delivery/body",
		"/notifications", "/decisions", "/setup"} {
		rules["GET "+path], rules["HEAD "+path] = ci.Viewer, ci.Viewer
	}
	list := server.ListPages()
	if len(list) != len(rules) {
		t.Errorf("%d pages and %d rules", len(list), len(rules))
	}
	p := newPages(t)
	for _, route := range list {
		need, ok := rules[route]
		if !ok {
			t.Errorf("the page %q has no rule", route)
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		safe := method != "POST"
		ask := func(user ci.Role, headers ...string) answer {
			b := p.browser()
			if user != "" {
				b.mustLogin(string(user))
			}
			return b.do(method, path, nil, headers...)
		}
		if a := ask("", "Sec-Fetch-Site", "cross-site"); (a.status == 403) == safe {
			t.Errorf("%s from another site: %v", route, a)
		}
		if need == open {
			continue // what an open page says to nobody is its own business
		}
		for _, headers := range [][]string{nil, {"Authorization", "Bearer " + p.token(ci.Admin)}} {
			if a := ask("", headers...); safe && (a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), "/login?next=")) || !safe && a.status != 401 {
				t.Errorf("%s without a session: %v", route, a)
			}
		}
		for _, role := range []ci.Role{ci.Viewer, ci.Operator, ci.Admin} {
			a := ask(role)
			if refused := a.status == 403; refused == role.Allows(need) || a.status == 401 || a.status >= 500 {
				t.Errorf("%s as %s: %v", route, role, a)
			}
		}
	}
}

func TestBearer(t *testing.T) {
	r := newRig(t)
	v := r.token(ci.Viewer)
	for header, want := range map[string]int{
		"Bearer " + v: 200, "bearer " + v: 200, "Bearer  " + v: 200,
		"Basic " + v: 401, v: 401, "Bearer": 401, "Bearer ": 401, "Bearer " + v + "x": 401, "Bearer " + strings.ToUpper(v): 401,
	} {
		req := mustRequest(t, "GET", r.url+"/api/v1/runs", "")
		req.Header.Set("Authorization", header)
		if a := r.do(req); a.status != want {
			t.Errorf("%q: %v, want %d", header, a, want)
		}
	}
	for _, where := range []string{"?token=" + v, "?access_token=" + v} {
		wantProblem(t, r.do(mustRequest(t, "GET", r.url+"/api/v1/runs"+where, "")), 401)
	}
}

// Ensure that without an admin token in the configuration no value is one.
func TestNoAdminTokenConfigured(t *testing.T) {
	r := newRig(t, func(c *ci.Config) { c.AdminToken = ci.Secret{} })
	for _, header := range []string{"Bearer ", "Bearer " + adminToken, ""} {
		req := mustRequest(t, "GET", r.url+"/api/v1/tokens", "")
		req.Header.Set("Authorization", header)
		wantProblem(t, r.do(req), 401)
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	a := r.call(ci.Admin, "POST", "/tokens", `{"name":"deploy@bot","role":"operator"}`)
	made := mustDecode[struct{ Token, Name, Role string }](t, a)
	if a.status != 201 || made.Token == "" || made.Name != "deploy@bot" || made.Role != "operator" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("create: %v", a)
	}
	use := func() int {
		req := mustRequest(t, "GET", r.url+"/api/v1/runs", "")
		req.Header.Set("Authorization", "Bearer "+made.Token)
		return r.do(req).status
	}
	if got := use(); got != 200 {
		t.Errorf("the new token: %d", got)
	}
	wantProblem(t, r.call(ci.Admin, "POST", "/tokens", `{"name":"deploy@bot","role":"viewer"}`), 409)
	wantProblem(t, r.call(ci.Admin, "POST", "/tokens", `{"name":"x","role":"king"}`), 422)
	wantProblem(t, r.call(ci.Admin, "POST", "/tokens", `{"name":"","role":"viewer"}`), 422)
	if a := r.call(ci.Admin, "GET", "/tokens", ""); !strings.Contains(string(a.body), "deploy@bot") || strings.Contains(string(a.body), made.Token) {
		t.Errorf("list: %v", a)
	}
	if a := r.call(ci.Admin, "DELETE", "/tokens/deploy%40bot", ""); a.status != 204 {
		t.Errorf("revoke: %v", a)
	}
	if got := use(); got != 401 {
		t.Errorf("the revoked token: %d", got)
	}
	wantProblem(t, r.call(ci.Admin, "DELETE", "/tokens/deploy%40bot", ""), 404)
}
