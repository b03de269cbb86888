package server_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func TestAcceptedDelivery(t *testing.T) {
	r := newRig(t)
	a := r.deliver("push", "d-1", mainPush())
	got := mustDecode[hookAnswer](t, a)
	if a.status != 202 || got.Outcome != "accepted" || got.Duplicate || got.Receipt != "github/-/d-1" || len(got.Runs) != 1 {
		t.Fatalf("answer %v", a)
	}
	if run := got.Runs[0]; run.ID != "api-1" || run.Project != "api" || run.Number != 1 || run.URL != "https://ci.example.org/runs/api-1" {
		t.Errorf("run %+v", run)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-1", ""))
	if run.Source.Commit != commitA || run.Cause.Kind != ci.CauseDelivery || run.Cause.Receipt != "github/-/d-1" || run.State != ci.Queued {
		t.Errorf("run %+v", run)
	}
	again := mustDecode[hookAnswer](t, r.deliver("push", "d-1", mainPush()))
	if !again.Duplicate || again.Receipt != got.Receipt || len(again.Runs) != 1 || again.Runs[0] != got.Runs[0] {
		t.Errorf("the duplicate's answer %+v", again)
	}
	wantProblem(t, r.deliver("push", "d-1", mainPush()+" "), 409)
	if n := len(r.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// Ensure that what starts nothing is on record with its reason, and that runs
// is a list all the same.
func TestIgnoredDeliveries(t *testing.T) {
	named := fmt.Sprintf(`{"repository":{"id":%d,"full_name":"acme/api"}}`, repoID)
	tests := map[string]struct{ event, body string }{
		"a ping":                          {"ping", `{"zen":"x"}`},
		"a ping of the repository":        {"ping", named},
		"an event nobody asked for":       {"issues", named},
		"an event nobody ever heard of":   {"no such thing", named},
		"a branch that is filtered":       {"push", pushBody("refs/heads/other", commitB, commitA)},
		"a deleted branch":                {"push", pushBody("refs/heads/main", commitA, zeros)},
		"a push without anything":         {"push", `{}`},
		"a push with no repository":       {"push", `{"repository":null}`},
		"a list":                          {"push", `[]`},
		"a string":                        {"push", `"x"`},
		"a push of our own without a ref": {"push", named},
		"a push with a byte order mark":   {"push", "\ufeff{}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := r.deliver(tt.event, "d-1", tt.body)
			got := mustDecode[hookAnswer](t, a)
			if a.status != 202 || got.Outcome != "ignored" || got.Reason == "" || got.Duplicate {
				t.Fatalf("answer %v", a)
			}
			if !strings.Contains(string(a.body), `"runs":[]`) {
				t.Errorf("runs is no empty list: %s", a.body)
			}
			if strings.HasPrefix(got.Reason, "api: ") {
				t.Errorf("the reason of one project names it: %q", got.Reason)
			}
			again := r.deliver(tt.event, "d-1", tt.body)
			if got := mustDecode[hookAnswer](t, again); again.status != 200 || !got.Duplicate || got.Outcome != "ignored" {
				t.Errorf("again: %v", again)
			}
			if n := len(r.receipts()); n != 1 {
				t.Errorf("%d receipts", n)
			}
		})
	}
}

// Ensure that an ignored delivery is judged again when it is delivered again.
func TestIgnoredIsJudgedAgain(t *testing.T) {
	r := newRig(t)
	body := pushBody("refs/heads/dev", commitB, commitA)
	if a := r.deliver("push", "d-1", body); a.status != 202 || mustDecode[hookAnswer](t, a).Outcome != "ignored" {
		t.Fatalf("answer %v", a)
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].On.Push.Branches = []string{"dev"} })
	a := r.deliver("push", "d-1", body)
	if got := mustDecode[hookAnswer](t, a); a.status != 202 || got.Outcome != "accepted" || len(got.Runs) != 1 {
		t.Errorf("after the filter was mended: %v", a)
	}
}

// Ensure that one delivery is one commit for all projects of its repository.
func TestSeveralProjects(t *testing.T) {
	both := func(c *ci.Config) { c.Projects = append(c.Projects, mustProject("web", "Acme/API.git")) }
	r := newRig(t, both)
	got := mustDecode[hookAnswer](t, r.deliver("push", "d-1", mainPush()))
	if len(got.Runs) != 2 || got.Runs[0].ID != "api-1" || got.Runs[1].ID != "web-1" {
		t.Errorf("runs %+v", got.Runs)
	}
	ignored := mustDecode[hookAnswer](t, r.deliver("push", "d-2", pushBody("refs/heads/x", commitB, commitA)))
	if !strings.HasPrefix(ignored.Reason, "api: ") || !strings.Contains(ignored.Reason, "; web: ") {
		t.Errorf("reason %q", ignored.Reason)
	}
}

// Ensure that two servers over one store, as two processes' listeners would
// be, make one of many copies of a delivery.
func TestOneDeliveryManyTimesAtOnce(t *testing.T) {
	r := newRig(t)
	second := r.mustListen(r.newServer().Handler(server.PartHooks))
	const copies = 50
	var wg sync.WaitGroup
	var fresh atomic.Int32
	for i := range copies {
		base := r.url
		if i%2 == 1 {
			base = second
		}
		req := r.delivery(base, "push", "d-1", mainPush())
		wg.Go(func() {
			a := r.do(req)
			got := mustDecode[hookAnswer](t, a)
			if a.status == 202 {
				fresh.Add(1)
			} else if a.status != 200 || !got.Duplicate {
				t.Errorf("answer %v", a)
			}
			if got.Receipt != "github/-/d-1" || len(got.Runs) != 1 || got.Runs[0].ID != "api-1" {
				t.Errorf("answer %v", a)
			}
		})
	}
	wg.Wait()
	entries, _, err := r.store.Entries("", store.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Load() != 1 || len(r.receipts()) != 1 || len(r.runs()) != 1 {
		t.Errorf("%d fresh, %d receipts, %d runs", fresh.Load(), len(r.receipts()), len(r.runs()))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if k := e.Kind + e.Target + e.Event; seen[k] {
			t.Errorf("the entry %s is there twice", k)
		} else {
			seen[k] = true
		}
	}
}

// Ensure that the hooks' listener has hooks and nothing else.
func TestPartsOfAListener(t *testing.T) {
	r := newRig(t)
	hooks := r.mustListen(r.server.Handler(server.PartHooks))
	api := r.mustListen(r.server.Handler("api"))
	if a := r.do(r.delivery(hooks, "push", "d-1", mainPush())); a.status != 202 {
		t.Errorf("hooks: %v", a)
	}
	wantProblem(t, r.do(r.delivery(api, "push", "d-2", mainPush())), 404)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 404, "/metrics": 404, "/": 404, "/api/v1/runs": 404} {
		if a := r.do(mustRequest(t, "GET", hooks+path, "")); a.status != want {
			t.Errorf("hooks %s: %v", path, a)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/": 200, "/api/v1/runs": 401} {
		if a := r.do(mustRequest(t, "GET", api+path, "")); a.status != want {
			t.Errorf("api %s: %v", path, a)
		}
	}
}

// Ensure that a repository is known by its id once it has been seen.
func TestRepositoryIsPinned(t *testing.T) {
	r := newRig(t)
	mine := mainPush()
	if a := r.deliver("push", "d-1", mine); a.status != 202 {
		t.Fatal(a)
	}
	renamed := strings.Replace(mine, "acme/api", "acme/renamed", 1)
	if a := r.deliver("push", "d-2", renamed); a.status != 202 || mustDecode[hookAnswer](t, a).Outcome != "accepted" {
		t.Errorf("renamed: %v", a)
	}
	stranger := strings.Replace(mine, fmt.Sprint(repoID), "99", 1)
	if p := wantProblem(t, r.deliver("push", "d-3", stranger), 403); !strings.Contains(p.Detail, "docket projects repin api") {
		t.Errorf("the refusal does not say how to mend it: %s", p.Detail)
	}
	wantProblem(t, r.deliver("push", "d-3", strings.Replace(mine, fmt.Sprintf(`"id":%d,`, repoID), "", 1)), 403)

	// Another project under the same name must not let the stranger in.
	r.reconfigure(func(c *ci.Config) { c.Projects = append(c.Projects, mustProject("web", "acme/api")) })
	wantProblem(t, r.deliver("push", "d-3", stranger), 403)
	r.reconfigure()

	a := r.call(ci.Admin, "POST", "/projects/api/repin", `{"id": 99}`)
	if p := mustDecode[map[string]any](t, a); a.status != 200 || p["repository_id"] != 99.0 {
		t.Fatalf("repin: %v", a)
	}
	if a := r.deliver("push", "d-3", stranger); a.status != 202 {
		t.Errorf("after the repin: %v", a)
	}
	wantProblem(t, r.deliver("push", "d-4", mine), 403)
	if a := r.call(ci.Admin, "POST", "/projects/api/repin", ``); a.status != 200 {
		t.Fatal(a)
	}
	if a := r.deliver("push", "d-4", mine); a.status != 202 {
		t.Errorf("after the pin was taken away: %v", a)
	}
}

func TestConfiguredRepositoryID(t *testing.T) {
	r := newRig(t, func(c *ci.Config) { c.Projects[0].RepositoryID = 7 })
	wantProblem(t, r.deliver("push", "d-1", mainPush()), 403)
	ours := strings.Replace(strings.Replace(mainPush(), fmt.Sprint(repoID), "7", 1), "acme/api", "new/name", 1)
	if a := r.deliver("push", "d-1", ours); a.status != 202 {
		t.Errorf("the configured id: %v", a)
	}
	wantProblem(t, r.call(ci.Admin, "POST", "/projects/api/repin", `{"id": 99}`), 409)
}

func TestInstallations(t *testing.T) {
	with := func(id int) string {
		return strings.Replace(mainPush(), `"ref"`, fmt.Sprintf(`"installation":{"id":%d},"ref"`, id), 1)
	}
	r := newRig(t, func(c *ci.Config) { c.Integrations[0].Installations = []int64{12345} })
	a := r.deliver("push", "d-1", with(12345))
	if got := mustDecode[hookAnswer](t, a); a.status != 202 || got.Receipt != "github/12345/d-1" {
		t.Errorf("a configured installation: %v", a)
	}
	wantProblem(t, r.deliver("push", "d-1", with(99)), 403)
	wantProblem(t, r.deliver("push", "d-1", mainPush()), 403)
	if a := r.deliver("ping", "d-2", `{"zen":"x"}`); a.status != 202 {
		t.Errorf("the ping of a new App: %v", a)
	}
}

// Ensure that a deleted branch ends what waits for it.
func TestDeletedBranchCancels(t *testing.T) {
	r := newRig(t)
	r.deliver("push", "d-1", mainPush())
	a := r.deliver("push", "d-2", pushBody("refs/heads/main", commitA, zeros))
	if mustDecode[hookAnswer](t, a).Outcome != "ignored" {
		t.Fatal(a)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-1", ""))
	if run.State != ci.Cancelled || !strings.Contains(run.Reason, "main was deleted") {
		t.Errorf("the pending run: %+v", run)
	}
}

// Ensure that a commit that fails promises nothing and says when to try again.
func TestCommitFails(t *testing.T) {
	var failing atomic.Bool
	st := storetest.MustOpenAt(t, filepath.Join(t.TempDir(), "docket.db"), store.Options{Failpoint: func(point string) error {
		if failing.Load() && point == store.FailBeforeCommit {
			return errors.New("no space left on device")
		}
		return nil
	}})
	r := newRigOver(t, st)
	r.token(ci.Operator) // made while it can be
	failing.Store(true)
	for what, a := range map[string]answer{
		"delivery": r.deliver("push", "d-1", mainPush()),
		"request":  r.call(ci.Operator, "POST", "/projects/api/runs", "{}", "Idempotency-Key", "k"),
		"ready":    r.do(mustRequest(t, "GET", r.url+"/readyz", "")),
	} {
		p := wantProblem(t, a, 503)
		if a.header.Get("Retry-After") != "5" {
			t.Errorf("%s: Retry-After is %q", what, a.header.Get("Retry-After"))
		}
		if strings.Contains(p.Detail, "no space left on device") {
			t.Errorf("%s: the cause reached the client: %s", what, p.Detail)
		}
	}
	failing.Store(false)
	if len(r.receipts()) != 0 || len(r.runs()) != 0 {
		t.Error("something was stored")
	}
	if !strings.Contains(r.log.String(), "no space left on device") {
		t.Error("the log lacks the cause")
	}
	if a := r.deliver("push", "d-1", mainPush()); a.status != 202 {
		t.Errorf("afterwards: %v", a)
	}
}

// Ensure that large bodies and chunked ones come through as they were sent.
func TestBodiesAreKeptExactly(t *testing.T) {
	r := newRig(t, func(c *ci.Config) { c.Limits.Body = 4 << 20 })
	sizes := []int{0, 1, 60 << 10, 64<<10 + 1, 457522, 2 << 20}
	for i, size := range sizes {
		for _, chunked := range []bool{false, true} {
			body := strings.Replace(mainPush(), `"ref"`, `"x":"`+strings.Repeat("y", size)+`","ref"`, 1)
			id := fmt.Sprintf("d-%d-%t", i, chunked)
			req := r.delivery(r.url, "push", id, body)
			if chunked {
				req.ContentLength = -1
			}
			if a := r.do(req); a.status != 202 {
				t.Fatalf("%d bytes: %v", len(body), a)
			}
			if a := r.call(ci.Viewer, "GET", "/receipts/github/-/"+id+"/body", ""); string(a.body) != body {
				t.Errorf("%d bytes came back as %d", len(body), len(a.body))
			}
		}
	}
	limit := strings.Replace(mainPush(), `"ref"`, `"x":"`+strings.Repeat("y", 4<<20-len(mainPush())-len(`"x":"",`))+`","ref"`, 1)
	if a := r.deliver("push", "limit", limit); len(limit) != 4<<20 || a.status != 202 {
		t.Errorf("exactly the limit (%d): %v", len(limit), a)
	}
	wantProblem(t, r.deliver("push", "limit+1", limit+" "), 413)
}
