package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

// told keeps what a server tells of its requests.
type told struct {
	mu   sync.Mutex
	list []ci.Handled
}

func (t *told) traces() *server.Traces {
	return &server.Traces{
		Handled: func(h ci.Handled) { t.mu.Lock(); defer t.mu.Unlock(); t.list = append(t.list, h) },
		Run:     func(r *ci.Run) string { return "trace of " + r.ID }, Receipt: func(id string) string { return "trace of " + id },
		State: func() server.TraceState {
			return server.TraceState{Exported: 3, Dropped: map[string]uint64{"full": 1}, Problem: "it hangs"}
		},
	}
}

// take returns what was told since the last time.
func (t *told) take() (list []ci.Handled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, t.list = t.list, nil
	return list
}

// Ensure that each delivery on record is told of once, the first time as the
// one that it is known by, with times in order; and that no refusal is told of,
// whatever its reason, so that no stranger makes spans.
func TestTracedDeliveries(t *testing.T) {
	var heard told
	r := newRig(t)
	r.server = server.New(server.Options{Store: r.store, Config: r.config, Pages: renderer(), Traces: heard.traces()})
	r.url = r.mustListen(r.server.Handler())
	tell := func(what string, status int, outcome string, first bool) {
		t.Helper()
		list := heard.take()
		if len(list) != 1 {
			t.Fatalf("%s is told of %d times: %+v", what, len(list), list)
		}
		h := list[0]
		inOrder := !h.Began.IsZero() && !h.Verified.Before(h.Began) && !h.Judged.Before(h.Verified) && !h.Committed.Before(h.Judged) && !h.Ended.Before(h.Committed)
		if h.Status != status || h.Outcome != outcome || h.First != first || h.Receipt != "github/-/d-1" || h.Event != "push" || h.Route != "/hooks/{integration}" || !inOrder {
			t.Errorf("%s: %+v", what, h)
		}
	}
	r.reconfigure(func(c *ci.Config) { c.Projects[0].On.Push.Branches = []string{"other"} })
	r.deliver("push", "d-1", mainPush())
	tell("an ignored one", 202, "ignored", true)
	r.reconfigure()
	r.deliver("push", "d-1", mainPush())
	tell("an ignored one that is accepted", 202, "accepted", false)
	r.deliver("push", "d-1", mainPush())
	tell("a duplicate", 200, "duplicate", false)

	unsigned := r.delivery(r.url, "push", "d-2", mainPush())
	unsigned.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
	stranger := strings.NewReplacer("acme/api", "acme/web", fmt.Sprint(repoID), "9").Replace(mainPush())
	for what, req := range map[string]*http.Request{
		"a wrong signature": unsigned, "other bytes": r.delivery(r.url, "push", "d-1", mainPush()+" "),
		"no JSON": r.delivery(r.url, "push", "d-3", "{"), "another repository": r.delivery(r.url, "push", "d-4", stranger),
	} {
		a := r.do(req)
		if list := heard.take(); a.status < 400 || len(list) != 0 {
			t.Errorf("%s: %v is told of as %+v", what, a, list)
		}
	}
	a := r.call(ci.Viewer, "GET", "/receipts/github/-/d-1", "")
	if b := r.call(ci.Viewer, "GET", "/runs/api-1", ""); !strings.Contains(string(a.body), `"trace_id":"trace of github/-/d-1"`) || !strings.Contains(string(b.body), `"trace_id":"trace of api-1"`) {
		t.Errorf("%v\n%v", a, b)
	}
	if a := r.call(ci.Viewer, "GET", "/state", ""); !strings.Contains(string(a.body), `"traces":{"exported":3,"dropped":{"full":1},"problem":"it hangs"}`) {
		t.Errorf("%v", a)
	}
}

// Ensure that a commit that failed is told of as a failure.
func TestTracedFailure(t *testing.T) {
	var heard told
	st, err := store.Open(filepath.Join(t.TempDir(), "docket.db"), store.Options{Failpoint: func(string) error { return io.ErrShortWrite }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	cfg := mustConfig()
	h := server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }, Pages: renderer(), Traces: heard.traces()}).Handler()
	r := &rig{t: t}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.delivery("http://docket.test", "push", "d-1", mainPush()))
	list := heard.take()
	if w.Code != http.StatusServiceUnavailable || len(list) != 1 || list[0].Status != 503 || list[0].First || list[0].Outcome != "failed" {
		t.Errorf("%d, %+v", w.Code, list)
	}
}

// Ensure that a request by hand is told of with its run, and what it says of
// its caller's trace.
func TestTracedRequests(t *testing.T) {
	var heard told
	r := newRig(t)
	r.server = server.New(server.Options{Store: r.store, Config: r.config, Pages: renderer(), Traces: heard.traces()})
	r.url = r.mustListen(r.server.Handler())
	for _, first := range []bool{true, false} {
		r.call(ci.Operator, "POST", "/projects/api/runs", "{}", "Idempotency-Key", "K", "Traceparent", "00-aa")
		list := heard.take()
		if len(list) != 1 || list[0].Run != "api-1" || list[0].First != first || list[0].Receipt != "" || list[0].Traceparent != "00-aa" || list[0].Route != "/api/v1/projects/{project}/runs" {
			t.Errorf("%+v", list)
		}
	}
	r.call(ci.Operator, "POST", "/projects/api/runs", `{"inputs": {"nope": "1"}}`, "Idempotency-Key", "L")
	r.call(ci.Viewer, "POST", "/projects/api/runs", "{}", "Idempotency-Key", "M")
	if list := heard.take(); len(list) != 0 {
		t.Errorf("refusals are told of: %+v", list)
	}
}

// duplicates returns a function that delivers what is on record once more,
// which needs no disk.
func duplicates(tb testing.TB, traces *server.Traces) func() {
	tb.Helper()
	st, err := store.Open(filepath.Join(tb.TempDir(), "docket.db"), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { st.Close() })
	cfg := mustConfig()
	h := server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }, Pages: renderer(), Log: slog.New(slog.DiscardHandler), Traces: traces}).Handler()
	body, signature := mainPush(), sign(hookSecret, mainPush())
	deliver := func() int {
		req := httptest.NewRequest("POST", "/hooks/github", strings.NewReader(body))
		req.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"push"}, "X-Github-Delivery": {"d-1"}, "X-Hub-Signature-256": {signature}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code
	}
	if code := deliver(); code != http.StatusAccepted {
		tb.Fatalf("%d", code)
	}
	return func() {
		if code := deliver(); code != http.StatusOK {
			panic(fmt.Sprint(code))
		}
	}
}

// Ensure that without traces no goroutine is there for them.
func TestWithoutTracesNothingRuns(t *testing.T) {
	before := runtime.NumGoroutine()
	duplicates(t, nil)()
	if n := runtime.NumGoroutine() - before; n > 1 { // the store's own
		t.Errorf("%d goroutines", n)
	}
}

// BenchmarkDuplicate is the handler of a delivery that needs no disk: without
// traces, and with a tracer that does nothing.
func BenchmarkDuplicate(b *testing.B) {
	for name, traces := range map[string]*server.Traces{"off": nil, "on": {Handled: func(ci.Handled) {}}} {
		b.Run(name, func(b *testing.B) {
			deliver := duplicates(b, traces)
			b.ReportAllocs()
			for b.Loop() {
				deliver()
			}
		})
	}
}
