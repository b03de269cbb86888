package server_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docket/store/ci"
)

const startPath = "/projects/api/runs"

func (r *rig) start(key, body string) answer {
	r.t.Helper()
	return r.call(ci.Operator, "POST", startPath, body, "Idempotency-Key", key)
}

func TestStartRun(t *testing.T) {
	r := newRig(t)
	a := r.start("k-1", `{"branch":"main","commit":"`+commitA+`","inputs":{"target":"production"},"reason":"because"}`)
	if a.status != 201 || a.header.Get("Location") != "/api/v1/runs/api-1" || a.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("answer %v %v", a, a.header)
	}
	run := mustDecode[ci.Run](t, a)
	if run.ID != "api-1" || run.Inputs["target"] != "production" || run.Source.Commit != commitA ||
		run.Cause.Kind != ci.CauseRequest || run.URL != "https://ci.example.org/runs/api-1" {
		t.Errorf("run %+v", run)
	}
	if strings.Contains(string(a.body), `"internal"`) {
		t.Errorf("the inside of a run is shown: %s", a.body)
	}
	again := r.call(ci.Viewer, "GET", a.header.Get("Location")[len("/api/v1"):], "")
	if mustDecode[ci.Run](t, again).ID != "api-1" {
		t.Errorf("the location: %v", again)
	}
}

// Ensure that one key is one run, however the request is written.
func TestIdempotencyKey(t *testing.T) {
	tests := map[string]struct{ first, second string }{
		"the same bytes":               {`{"branch":"main"}`, `{"branch":"main"}`},
		"no body and an empty one":     {``, `{}`},
		"the default branch":           {`{}`, `{"branch":"main"}`},
		"a default input":              {`{}`, `{"inputs":{"target":"staging"}}`},
		"empty inputs":                 {`{}`, `{"inputs":{}}`},
		"other order and spaces":       {`{"branch":"main","reason":"x"}`, ` { "reason" : "x", "branch" : "main" } `},
		"escapes":                      {`{"reason":"é"}`, `{"reason":"\u00e9"}`},
		"everything spelled out":       {`{}`, `{"branch":"main","tag":"","commit":"","inputs":{"target":"staging"},"reason":""}`},
		"an explicit null is no value": {`{}`, `{"inputs":null,"tag":null}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if a := r.start("k", tt.first); a.status != 201 {
				t.Fatal(a)
			}
			a := r.start("k", tt.second)
			if a.status != 200 || a.header.Get("Idempotency-Replayed") != "true" || mustDecode[ci.Run](t, a).ID != "api-1" {
				t.Errorf("again: %v", a)
			}
			if n := len(r.runs()); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

func TestIdempotencyKeyOfAnotherRequest(t *testing.T) {
	for name, body := range map[string]string{
		"branch": `{"branch":"dev"}`,
		"tag":    `{"tag":"v1"}`,
		"commit": `{"commit":"` + commitA + `"}`,
		"input":  `{"inputs":{"target":"production"}}`,
		"reason": `{"reason":"another"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start("k", `{}`)
			if p := wantProblem(t, r.start("k", body), 409); p.ExistingRun != "api-1" {
				t.Errorf("existing_run is %q", p.ExistingRun)
			}
			if n := len(r.runs()); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

// Ensure that another project is another scope.
func TestIdempotencyKeyOfAnotherProject(t *testing.T) {
	r := newRig(t, func(c *ci.Config) { c.Projects = append(c.Projects, mustProject("web", "acme/web")) })
	r.start("k", `{}`)
	a := r.call(ci.Operator, "POST", "/projects/web/runs", `{}`, "Idempotency-Key", "k")
	if a.status != 201 || mustDecode[ci.Run](t, a).ID != "web-1" {
		t.Errorf("answer %v", a)
	}
}

// Ensure that fifty requests at once under one key are one run.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	r := newRig(t)
	r.token(ci.Operator)
	second := r.mustListen(r.newServer().Handler("api"))
	var created atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		base := r.url
		if i%2 == 1 {
			base = second
		}
		wg.Go(func() {
			req := mustRequest(t, "POST", base+"/api/v1"+startPath, `{}`)
			req.Header.Set("Authorization", "Bearer "+r.token(ci.Operator))
			req.Header.Set("Idempotency-Key", "k")
			a := r.do(req)
			if a.status == 201 {
				created.Add(1)
			} else if a.status != 200 || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("answer %v", a)
			}
			if mustDecode[ci.Run](t, a).ID != "api-1" {
				t.Errorf("answer %v", a)
			}
		})
	}
	wg.Wait()
	if created.Load() != 1 || len(r.runs()) != 1 {
		t.Errorf("%d were told that they made it; %d runs", created.Load(), len(r.runs()))
	}
}

// Ensure that a bad request is told what is wrong, starts nothing and leaves
// its key free.
func TestRefusedRequests(t *testing.T) {
	type headers = []string
	key := headers{"Idempotency-Key", "k"}
	tests := map[string]struct {
		path, body string
		headers    headers
		status     int
	}{
		"no key":                       {startPath, `{}`, nil, 400},
		"an empty key":                 {startPath, `{}`, headers{"Idempotency-Key", ""}, 400},
		"a key over 255 bytes":         {startPath, `{}`, headers{"Idempotency-Key", strings.Repeat("k", 256)}, 400},
		"a key that is not printable":  {startPath, `{}`, headers{"Idempotency-Key", "k\u00e9"}, 400},
		"a body that is not JSON":      {startPath, `{"branch"`, key, 400},
		"something after the object":   {startPath, `{} {}`, key, 400},
		"a body that is not UTF-8":     {startPath, "{\"branch\":\"\xff\"}", key, 400},
		"a body of another type":       {startPath, `{}`, append(headers{"Content-Type", "text/plain"}, key...), 415},
		"a compressed body":            {startPath, `{}`, append(headers{"Content-Encoding", "gzip"}, key...), 415},
		"a body over 1 MiB":            {startPath, `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, key, 413},
		"a list":                       {startPath, `[]`, key, 422},
		"null":                         {startPath, `null`, key, 422},
		"an unknown field":             {startPath, `{"brunch":"main"}`, key, 422},
		"a field in other case":        {startPath, `{"Branch":"main"}`, key, 422},
		"a number where a name should": {startPath, `{"branch":7}`, key, 422},
		"an input that is no string":   {startPath, `{"inputs":{"target":7}}`, key, 422},
		"an undeclared input":          {startPath, `{"inputs":{"tarket":"staging"}}`, key, 422},
		"a value that is no option":    {startPath, `{"inputs":{"target":"moon"}}`, key, 422},
		"branch and tag at once":       {startPath, `{"branch":"main","tag":"v1"}`, key, 422},
		"an unknown project":           {"/projects/other/runs", `{}`, key, 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			wantProblem(t, r.call(ci.Operator, "POST", tt.path, tt.body, tt.headers...), tt.status)
			if n := len(r.runs()); n != 0 {
				t.Errorf("%d runs", n)
			}
			if a := r.start("k", `{"branch":"corrected"}`); a.status != 201 {
				t.Errorf("the key was used up: %v", a)
			}
		})
	}
}

func TestActionsOnRuns(t *testing.T) {
	r := newRig(t)
	r.start("k", `{"commit":"`+commitA+`"}`)
	act := func(action, key, body string) answer {
		return r.call(ci.Operator, "POST", "/runs/api-1/"+action, body, "Idempotency-Key", key)
	}
	wantProblem(t, r.call(ci.Operator, "POST", "/runs/api-1/cancel", ""), 400)
	wantProblem(t, act("approve", "a", ""), 409)
	wantProblem(t, act("cancel", "c", `{"why":"x"}`), 422)
	a := act("cancel", "c", `{"reason":"not now"}`)
	if got := mustDecode[ci.Run](t, a); a.status != 200 || got.State != ci.Cancelled {
		t.Fatalf("cancel: %v", a)
	}
	again := act("cancel", "c", `{"reason":"not now"}`)
	if again.status != 200 || again.header.Get("Idempotency-Replayed") != "true" || mustDecode[ci.Run](t, again).State != ci.Cancelled {
		t.Errorf("cancel again: %v", again)
	}
	wantProblem(t, act("cancel", "c2", ""), 409)
	rerun := act("rerun", "r", "")
	if got := mustDecode[ci.Run](t, rerun); rerun.status != 201 || rerun.header.Get("Location") != "/api/v1/runs/"+got.ID ||
		got.Cause.Kind != ci.CauseRerun || got.Cause.Run != "api-1" || got.Source.Commit != commitA {
		t.Errorf("rerun: %v", rerun)
	}
	rerun2 := act("rerun", "r", "")
	if got := mustDecode[ci.Run](t, rerun2); rerun2.status != 200 || got.ID != mustDecode[ci.Run](t, rerun).ID {
		t.Errorf("rerun again: %v", rerun2)
	}
	wantProblem(t, r.call(ci.Operator, "POST", "/runs/api-99/cancel", "", "Idempotency-Key", "x"), 404)
	wantProblem(t, r.call(ci.Operator, "POST", "/runs/nonsense/cancel", "", "Idempotency-Key", "x"), 404)

	decisions := mustDecode[struct{ Decisions []ci.Decision }](t, r.call(ci.Viewer, "GET", "/decisions?run=api-1", "")).Decisions
	found := false
	for _, d := range decisions {
		found = found || d.Kind == ci.DecisionCancelled && d.By == ci.By{Kind: ci.ByToken, Name: "the-operator"} && strings.Contains(d.Reason, "not now")
	}
	if !found {
		t.Errorf("the audit trail does not say who cancelled and why: %+v", decisions)
	}
}

func TestListings(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.start(fmt.Sprint("k", i), `{}`)
	}
	type list struct {
		Runs       []ci.Run
		NextCursor string `json:"next_cursor"`
	}
	var ids []string
	cursor := ""
	for range 5 {
		l := mustDecode[list](t, r.call(ci.Viewer, "GET", "/runs?limit=2&cursor="+cursor, ""))
		for _, run := range l.Runs {
			ids = append(ids, run.ID)
		}
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "api-5 api-4 api-3 api-2 api-1" {
		t.Errorf("pages: %s", got)
	}
	for _, noun := range []string{"runs", "receipts", "entries", "decisions", "projects", "refusals"} {
		path := "/" + strings.Replace(noun, "entries", "outbox", 1)
		a := r.call(ci.Viewer, "GET", path, "")
		if m := mustDecode[map[string]any](t, a); a.status != 200 || len(m) != 2 || m[noun] == nil || m["next_cursor"] != "" {
			t.Errorf("%s: %v", path, a)
		}
	}
	bad := map[string]int{
		"/runs?limit=0": 422, "/runs?limit=201": 422, "/runs?limit=x": 422, "/runs?limit=": 422, "/runs?state=fast": 422,
		"/runs?cursor=!": 422, "/receipts?outcome=maybe": 422, "/outbox?state=lost": 422, "/decisions?limit=-1": 422,
		"/refusals?limit=0": 422, "/runs?project=other": 404,
	}
	for path, status := range bad {
		if a := r.call(ci.Viewer, "GET", path, ""); a.status != status {
			t.Errorf("%s: %v, want %d", path, a, status)
		}
	}
	for path, n := range map[string]int{"/runs?project=api": 5, "/runs?state=failed": 0, "/runs?branch=main": 5, "/runs?branch=x": 0, "/runs?limit=200": 5} {
		if l := mustDecode[list](t, r.call(ci.Viewer, "GET", path, "")); len(l.Runs) != n {
			t.Errorf("%s: %d runs, want %d", path, len(l.Runs), n)
		}
	}
	r.reconfigure(func(c *ci.Config) { c.Projects = nil })
	if a := r.call(ci.Viewer, "GET", "/runs?project=api&state=failed", ""); a.status != 200 {
		t.Errorf("a project that is not configured any more: %v", a)
	}
}
