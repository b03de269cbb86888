package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that every page is there, whatever the store holds, with its headers,
// and that what outsiders wrote stays text in it.
func TestPages(t *testing.T) {
	pages := map[string]struct{ empty, rich []string }{
		"/":                           {[]string{"Three steps", "https://ci.example.org/hooks/github", `href="/projects/api"`}, []string{"api-5", "api-6", "1 run waits for approval", "1 notification was given up", "1 delivery was refused", "not:Three steps"}},
		"/projects/api":               {[]string{"No run yet"}, []string{"api-1", "api-2", "api-6", "https://github.com/acme/api", "https://ci.example.org/projects/api/badge.svg"}},
		"/projects/api?tab=pull":      {[]string{"No run"}, []string{`href="/runs/api-3"`, "not:href=\"/runs/api-5\" class"}},
		"/projects/api?state=failed":  {[]string{"No run"}, []string{`href="/runs/api-2"`}},
		"/projects/api?branch=dev":    {[]string{"No run"}, []string{`href="/runs/api-5"`}},
		"/deliveries":                 {[]string{"No delivery has arrived"}, []string{"d/2 %", "d-7", "Refused lately", "d-8", "/deliveries/github/-/d%2F2%20%25"}},
		"/deliveries?outcome=ignored": {[]string{"No delivery"}, []string{"d-7", "not:d-6"}},
		"/deliveries?find=nothing":    {[]string{"nothing"}, []string{"nothing"}},
		"/notifications":              {[]string{"Nothing has been sent"}, []string{"given up", "api-1"}},
		"/notifications?state=dead":   {[]string{"Nothing was given up"}, []string{"410"}},
		"/decisions":                  {nil, []string{"pinned"}},
		"/decisions?kind=pinned":      {nil, []string{"pinned"}},
		"/decisions?run=api-99":       {[]string{"No decision"}, []string{"No decision"}},
		"/setup":                      {[]string{"https://ci.example.org/hooks/github", "first", "Pushes", "https://github.com/acme/api/settings/hooks"}, []string{"Deliveries arrive", "One was refused"}},
	}
	for _, full := range []bool{false, true} {
		p := newPages(t, withEverything)
		if full {
			p.rich()
		}
		for _, role := range []ci.Role{ci.Viewer, ci.Operator} {
			b := p.browser().mustLogin(string(role))
			for path, want := range pages {
				texts := want.empty
				if full {
					texts = want.rich
				}
				wantIn(t, wantPage(t, b.get(path), 200), texts...)
				if a := b.do("HEAD", path, nil); a.status != 200 || len(a.body) != 0 {
					t.Errorf("HEAD %s: %v", path, a)
				}
			}
		}
	}
}

func TestRunPage(t *testing.T) {
	p := newPages(t, withEverything)
	p.rich()
	b := p.browser().mustLogin("operator")
	for path, want := range map[string][]string{
		"/runs/api-1": {"succeeded", "fetching from a secret place", `href="/deliveries/github/-/d-1"`, "&lt;script&gt;alert(1)", "progress 2", "not:progress 1",
			`id="test-1"`, `action="/runs/api-1/rerun"`, "not:/cancel", "not:/approve", "https://github.com/acme/api/commit/" + commitA, "Notifications", `href="/runs/api-1/logs"`},
		"/runs/api-2": {"failed", "broken", "octo"},
		"/runs/api-3": {"waits for approval", `action="/runs/api-3/approve"`, `action="/runs/api-3/cancel"`, "mallory/api", "https://github.com/acme/api/pull/7", "not:/rerun"},
		"/runs/api-4": {"docket asks the repository", "production", "the-operator", "because"},
		"/runs/api-5": {"running", `action="/runs/api-5/cancel"`, `sse-connect="/runs/api-5?log=1%3A0"`},
		"/runs/api-6": {"queued", "It is the next one to begin"},
	} {
		wantIn(t, wantPage(t, b.get(path), 200), want...)
	}
	viewer := p.browser().mustLogin("viewer")
	for _, path := range []string{"/runs/api-1", "/runs/api-3", "/runs/api-5", "/projects/api", "/notifications", "/deliveries/github/-/d-1"} {
		page := wantPage(t, viewer.get(path), 200)
		wantIn(t, strings.ReplaceAll(strings.ReplaceAll(page, `action="/logout"`, ""), `action="/logout-everywhere"`, ""), `not:method="post" action`)
	}
	wantIn(t, wantPage(t, b.get("/deliveries/github/-/d%2F2%20%25"), 200), "d/2 %", "accepted", `href="/runs/api-2"`, "full_name", `action="/deliveries/github/-/d%2F2%20%25/replay"`)
	if a := b.get("/runs/api-1/logs"); a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") || !strings.Contains(string(a.body), "progress 1\rprogress 2") {
		t.Errorf("the raw log: %v", a)
	}
	if a := b.get("/deliveries/github/-/d-1/body"); a.status != 200 || string(a.body) != mainPush() || a.header.Get("Content-Disposition") == "" {
		t.Errorf("the body: %v", a)
	}
	a := b.get("/projects/api/badge.svg")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "image/svg+xml") || !strings.Contains(string(a.body), "passing") {
		t.Errorf("the badge: %v", a)
	}
}

// Ensure that errors are pages to browsers and problems to programs, and that
// a page that needs a sign-in leads there and back.
func TestPages_Errors(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("viewer")
	const html = "text/html,application/xhtml+xml"
	for path, status := range map[string]int{
		"/runs/api-9": 404, "/runs/nonsense": 404, "/projects/none": 404, "/deliveries/github/-/none": 404, "/nothing": 404, "/runs": 404,
		"/projects/api?state=x": 422, "/projects/api?tab=x": 422, "/projects/api?cursor=x": 422, "/notifications?state=x": 422, "/deliveries?cursor=x": 422,
		"/runs/api-1/cancel": 405,
	} {
		page := wantPage(t, b.get(path, "Accept", html), status)
		wantIn(t, page, "viewer", "<title>"+http.StatusText(status))
		wantProblem(t, b.get(path), status)
	}
	wantIn(t, wantPage(t, b.do("POST", "/runs/api-1/cancel", nil, "Accept", html), 403), "whose role is viewer", `href="/runs/api-1"`)
	wantIn(t, wantPage(t, p.browser().do("POST", "/runs/api-1/cancel", nil, "Accept", html), 401), `href="/login?next=%2Fruns%2Fapi-1"`)
	wantGo(t, p.browser().get("/deliveries?outcome=ignored"), "/login?next=%2Fdeliveries%3Foutcome%3Dignored")
	wantProblem(t, b.get("/api/v1/nothing", "Accept", html), 404)
	wantIn(t, wantPage(t, p.browser().get("/login?next=%2Fdeliveries"), 200), `name="next" value="/deliveries"`, `name="password"`)
}

// Ensure that assets are kept for ever, and a wrong address of one is not.
func TestAssets(t *testing.T) {
	p := newPages(t)
	path := renderer().AssetPath("app.css")
	a := p.browser().get(path)
	if a.status != 200 || !strings.Contains(a.header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/css") || a.header.Get("Set-Cookie") != "" {
		t.Errorf("%s: %v", path, a.header)
	}
	if a := p.browser().get(path + "x"); a.status != 404 || strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Errorf("%sx: %v", path, a)
	}
}

// Ensure that a listener has pages only where it serves the page.
func TestPages_WhereTheyAreServed(t *testing.T) {
	p := newPages(t)
	for _, tt := range []struct {
		parts  []string
		path   string
		status int
		text   string
	}{
		{[]string{server.PartAPI}, "/", 200, "Authorization: Bearer TOKEN"},
		{[]string{server.PartAPI, server.PartUI}, "/", 303, ""},
		{[]string{server.PartUI}, "/", 303, ""},
		{[]string{server.PartHooks}, "/", 404, `"status":404`},
		{[]string{server.PartAPI, server.PartHooks}, "/deliveries", 404, `"status":404`},
		{[]string{server.PartUI}, "/api/v1/runs", 404, `"status":404`},
		{[]string{server.PartUI}, "/nothing", 404, "<!doctype html>"},
		{[]string{server.PartHooks}, "/login", 404, `"status":404`},
	} {
		b := p.browser()
		b.base = p.mustListen(p.server.Handler(tt.parts...))
		if a := b.get(tt.path, "Accept", "text/html"); a.status != tt.status || !strings.Contains(string(a.body), tt.text) {
			t.Errorf("%v %s: %v", tt.parts, tt.path, a)
		}
	}
}

// Ensure that a public project is open to nobody in particular, without what
// is none of their business, and that the rest stays closed.
func TestPublicProject(t *testing.T) {
	p := newPages(t, withEverything, isPublic, func(c *ci.Config) { c.Projects = append(c.Projects, mustProject("secret", "acme/secret")) })
	p.rich()
	a := p.call(ci.Operator, "POST", "/projects/secret/runs", `{}`, "Idempotency-Key", "k-1")
	if a.status != 201 {
		t.Fatal(a)
	}
	if _, _, err := p.store.CancelRun(t.Context(), store.Action{Run: "api-6", Key: "k-6", By: ci.By{Kind: ci.ByUser, Name: "mona"}, Reason: "mine"}); err != nil {
		t.Fatal(err)
	}
	b := p.browser()
	hidden := []string{"not:octocat", "not:the-operator", "not:mona", "not:mine", "not:because", "not:production", "not:hooks.example.org", "not:/deliveries", "not:secret place", `not:method="post"`, "not:410", "not:via github", "not:mallory&"}
	for path, want := range map[string][]string{
		"/projects/api": {"api-1", "api-4", "Sign in"},
		"/runs/api-1":   {"succeeded", "progress 2", `href="/runs/api-1/logs"`},
		"/runs/api-2":   {"failed"}, "/runs/api-3": {"waits for approval"}, "/runs/api-4": {"preparing"}, "/runs/api-5": {"running"}, "/runs/api-6": {"cancelled"},
	} {
		wantIn(t, wantPage(t, b.get(path), 200), append(want, hidden...)...)
		if l := b.live(path, ""); l.status != 200 {
			t.Errorf("stream of %s: %d", path, l.status)
		} else {
			for range 3 {
				ev, ok := l.next()
				wantIn(t, ev.data, hidden...)
				if !ok || ev.kind == "end" {
					break
				}
			}
			l.close()
		}
	}
	if a := b.get("/runs/api-1/logs"); a.status != 200 || !strings.Contains(string(a.body), "progress 1") || strings.Contains(string(a.body), "secret place") {
		t.Errorf("the raw log: %v", a)
	}
	wantProblem(t, b.get("/runs/api-1/logs?step=@checkout"), 401)
	if a := b.get("/runs/api-1/logs?follow=1"); a.status != 200 || strings.Contains(string(a.body), "secret place") {
		t.Errorf("a followed log: %v", a)
	}
	if a := b.get("/projects/api/badge.svg"); a.status != 200 {
		t.Errorf("the badge: %v", a)
	}
	for _, path := range []string{"/", "/deliveries", "/notifications", "/decisions", "/setup", "/projects/secret", "/projects/none", "/runs/secret-1", "/runs/secret-9", "/runs/none-1",
		"/projects/secret/badge.svg", "/runs/secret-1/logs", "/deliveries/github/-/d-1", "/deliveries/github/-/d-1/body"} {
		if a := b.get(path); a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), "/login?next=") {
			t.Errorf("%s: %v", path, a)
		}
		if l := b.live(path, ""); l.status != 401 && path != "/deliveries/github/-/d-1/body" {
			t.Errorf("stream of %s: %d", path, l.status)
		}
	}
	for _, path := range []string{"/projects/api/runs", "/runs/api-1/rerun", "/runs/api-3/approve"} {
		if a := b.post(path, "key", "k"); a.status != 401 {
			t.Errorf("POST %s: %v", path, a)
		}
	}
	if n := len(p.runs()); n != 7 {
		t.Errorf("%d runs", n)
	}
}

// Ensure that a browser that reads nothing of a page holds nothing of the store.
func TestPages_ASlowReaderHoldsNothing(t *testing.T) {
	p := newPages(t, withEverything)
	run, w := p.rich()
	p.mustAppend(w, 0, strings.Repeat(strings.Repeat("x", 200)+"\n", 40_000))
	b := p.browser().mustLogin("viewer")
	for what, accept := range map[string]string{"page": "text/html", "stream": "text/event-stream"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /runs/"+run.ID+"?step=test&all=1 HTTP/1.1\r\nHost: x\r\nAccept: "+accept+"\r\nCookie: "+b.cookie.Name+"="+b.cookie.Value+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 12)
		if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200" {
			t.Fatalf("%s: %q %v", what, first, err)
		}
		for i := range 20 { // the store goes on growing
			if a := p.deliver("push", what+string(rune('a'+i)), pushBody("refs/heads/grow", commitB, commitA)); a.status != 202 {
				t.Fatal(a)
			}
		}
		for deadline := time.Now().Add(5 * time.Second); p.store.OpenReads() != 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d reads are open", what, p.store.OpenReads())
			}
		}
	}
}

// Ensure that a browser gets a page even when the store gives nothing any more,
// and that it promises nothing.
func TestPages_WithoutTheStore(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	storetest.MustClose(t, p.store)
	for _, method := range []string{"GET", "POST"} {
		path := map[string]string{"GET": "/", "POST": "/projects/api/runs"}[method]
		a := b.do(method, path, nil, "Accept", "text/html")
		wantIn(t, wantPage(t, a, 503), "Nothing was promised")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
}

// Ensure that a form whose answer was lost can be sent again: there is one run.
func TestRunForm_AnswerLost(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	form := "key=lost-1&ref=main"
	for range 5 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST /projects/api/runs HTTP/1.1\r\nHost: x\r\nCookie: %s=%s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
			b.cookie.Name, b.cookie.Value, len(form), form); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	wantGo(t, b.post("/projects/api/runs", "key", "lost-1", "ref", "main"), "/runs/api-1")
	if n := len(p.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}
