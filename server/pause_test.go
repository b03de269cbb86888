package server_test

import (
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that an operator pauses and resumes over the API, that a viewer only
// sees it, and that metrics tell.
func TestPauseAndResume(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/runs/pause", "/runs/resume", "/outbox/pause", "/outbox/resume"} {
		wantProblem(t, r.call(ci.Viewer, "POST", path, ""), 403)
	}
	wantProblem(t, r.call(ci.Operator, "POST", "/runs/pause", `{"reason":"`+strings.Repeat("x", 1001)+`"}`), 422)
	p := mustDecode[ci.Pauses](t, r.call(ci.Operator, "POST", "/runs/pause", `{"reason":"a new disk"}`))
	if p.Runs == nil || p.Runs.By.Name != "the-operator" || p.Runs.Reason != "a new disk" || p.Outbox != nil {
		t.Fatalf("%+v", p)
	}
	if a := r.deliver("push", "d-1", mainPush()); a.status != 202 {
		t.Fatalf("intake while paused: %v", a)
	}
	r.call(ci.Operator, "POST", "/outbox/pause", "")
	if got := string(r.call(ci.Viewer, "GET", "/paused", "").body); !strings.Contains(got, `"a new disk"`) || strings.Contains(got, "null") {
		t.Errorf("paused: %s", got)
	}
	metrics := func(want ...string) {
		t.Helper()
		text := string(r.do(mustRequest(t, "GET", r.url+"/metrics", "")).body)
		for _, line := range want {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("metrics lack %s", line)
			}
		}
	}
	metrics(`docket_paused{what="runs"} 1`, `docket_paused{what="outbox"} 1`)
	for range 2 {
		if a := r.call(ci.Operator, "POST", "/outbox/resume", `{}`); a.status != 200 {
			t.Fatalf("%v", a)
		}
	}
	if got := strings.TrimSpace(string(r.call(ci.Operator, "POST", "/runs/resume", "").body)); got != `{"runs":null,"outbox":null}` {
		t.Errorf("resumed: %s", got)
	}
	metrics(`docket_paused{what="runs"} 0`, `docket_paused{what="outbox"} 0`)
	r.mustClaimNext()
}

// Ensure that the page says what is held back, and lets those resume who may.
func TestPausePage(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	wantIn(t, wantPage(t, b.get("/setup"), 200), `action="/runs/pause"`, `action="/notifications/pause"`, "not:are held back")
	wantGo(t, b.post("/runs/pause", "reason", "why "+evil), "/setup")
	wantGo(t, b.post("/notifications/pause"), "/setup")
	wantIn(t, wantPage(t, b.get("/"), 200), "Runs are held back", "Notifications are held back", "operator", `action="/runs/resume"`, `action="/notifications/resume"`)
	wantIn(t, wantPage(t, b.get("/setup"), 200), `not:action="/runs/pause"`)
	v := p.browser().mustLogin("viewer")
	wantIn(t, wantPage(t, v.get("/"), 200), "Runs are held back", `not:action="/runs/resume"`)
	if a := v.post("/runs/resume"); a.status != 403 {
		t.Errorf("a viewer resumes: %v", a)
	}
	wantGo(t, b.post("/runs/resume"), "/")
	wantGo(t, b.post("/notifications/resume"), "/notifications")
	wantIn(t, wantPage(t, b.get("/"), 200), "not:are held back")
	wantIn(t, wantPage(t, b.get("/decisions"), 200), "runs are held back: why", "notifications go on")
}
