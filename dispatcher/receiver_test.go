package dispatcher_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/dispatcher"
	"docket/dispatcher/forge"
	"docket/store/ci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of tests that need none of their own.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const commit = "6dcb09b5b57875f334f61aebed695e2e4193db5e"

// reply is one scripted answer. The zero reply is a 200 without a body.
type reply struct {
	status int
	header map[string]string
	body   string
	hang   bool // no answer until the receiver closes or the caller leaves
}

// got is one request as a receiver saw it.
type got struct {
	method, path string
	header       http.Header
	body         []byte
}

// receiver is a real listener that answers from a script, and with its last
// line from then on.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	script []reply
	answer func(got) (reply, bool) // asked before the script, if set
	seen   []got
	change chan struct{} // closed at the next request
	closed chan struct{}
	once   sync.Once
}

func mustReceive(t *testing.T, script ...reply) *receiver {
	t.Helper()
	r := &receiver{script: script, change: make(chan struct{}), closed: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.release()
		r.Server.Close()
	})
	return r
}

// release ends what hangs.
func (r *receiver) release() { r.once.Do(func() { close(r.closed) }) }

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	g := got{req.Method, req.URL.Path, req.Header.Clone(), body}
	a := r.next(g)
	if a.hang {
		select {
		case <-r.closed:
		case <-req.Context().Done():
		}
		return
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (r *receiver) next(g got) reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, g)
	close(r.change)
	r.change = make(chan struct{})
	if r.answer != nil {
		if a, ok := r.answer(g); ok {
			return a
		}
	}
	if len(r.script) == 0 {
		return reply{}
	}
	a := r.script[0]
	if len(r.script) > 1 {
		r.script = r.script[1:]
	}
	return a
}

func (r *receiver) requests() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.seen...)
}

// mustSee waits until n requests have come.
func (r *receiver) mustSee(t *testing.T, n int) []got {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		seen, change := append([]got(nil), r.seen...), r.change
		r.mu.Unlock()
		if len(seen) >= n {
			return seen
		}
		select {
		case <-change:
		case <-deadline.C:
			t.Fatalf("%d requests came, want %d", len(seen), n)
		}
	}
}

func mustClient(t *testing.T) *http.Client {
	t.Helper()
	c := forge.Outward(nil, dispatcher.MaxAnswer)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// judged is what a row of a classification table expects.
type judged struct {
	outcome dispatcher.Outcome
	wait    time.Duration // until RetryAt; 0: the backoff decides
	hold    bool
	text    string // part of the detail
}

func (j judged) check(t *testing.T, r dispatcher.Result) {
	t.Helper()
	if r.Outcome != j.outcome {
		t.Errorf("outcome %s, want %s (%s)", r.Outcome, j.outcome, r.Detail)
	}
	var wait time.Duration
	if !r.RetryAt.IsZero() {
		wait = r.RetryAt.Sub(noon)
	}
	if wait != j.wait {
		t.Errorf("waits %s, want %s", wait, j.wait)
	}
	if r.Hold != j.hold {
		t.Errorf("hold %t, want %t", r.Hold, j.hold)
	}
	if !contains(r.Detail, j.text) {
		t.Errorf("detail %q, want %q in it", r.Detail, j.text)
	}
	if (r.Detail == "") != (r.Outcome == dispatcher.Sent) {
		t.Errorf("outcome %s with the detail %q", r.Outcome, r.Detail)
	}
}

func entry(kind, target string) ci.OutboxEntry {
	return ci.OutboxEntry{
		ID: "ob_1", Kind: kind, Run: "api-42", Lane: "lane", Target: target, Attempts: 1,
		FirstAttemptAt: ci.At(noon), AttemptedAt: ci.At(noon), CreatedAt: ci.At(noon),
	}
}

func at(t time.Time) func() time.Time { return func() time.Time { return t } }
