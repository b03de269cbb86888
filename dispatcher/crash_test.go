package dispatcher_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store/ci"
)

// Ensure that a process lost after the receiver acted and before the record
// sends again under the same id, and that it is recorded once.
func TestKilledBetweenTheAnswerAndTheRecord(t *testing.T) {
	h := mustHouse(t)
	run := h.mustRequest(false, hookTarget)
	id := h.mustFind(run, ci.OutboxWebhook).ID

	o := h.options()
	lost := make(chan struct{})
	var once sync.Once
	o.Scan = time.Hour
	o.AfterSend = func(ci.OutboxEntry) {
		once.Do(func() { close(lost) })
		runtime.Goexit() // nothing after this line of the worker happens
	}
	_, stop := h.mustRun(o)
	<-lost
	stop()
	if e, err := h.store.Entry(id); err != nil || e.State != ci.OutboxPending || e.Attempts != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	h.mustReopen()

	h.mustRun(h.options())
	e := h.mustState(id, ci.OutboxSent)
	h.mustPass()
	if e.Attempts != 2 {
		t.Errorf("%d attempts, want 2", e.Attempts)
	}
	n := 0
	for _, g := range h.hook.requests() {
		if g.header.Get("webhook-id") == id {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the receiver saw the id %d times, want 2", n)
	}
	if r, err := h.store.Run(run.ID); err != nil || r.State != ci.Queued {
		t.Errorf("the run is %s, %v", r.State, err)
	}
}

func TestNothingIsSentThatIsNotOnRecord(t *testing.T) {
	h := mustHouse(t)
	run := h.mustRequest(false, hookTarget)
	h.refuse.Store(true)
	o := h.options()
	began := time.Now()
	o.Now = func() time.Time { return noon.Add(time.Since(began)) }
	h.mustRun(o)
	h.eventually("no commit was tried", func() bool { return h.store.Health() != nil })
	if n := len(h.hook.requests()); n != 0 {
		t.Errorf("%d requests left without a record", n)
	}
	h.refuse.Store(false)
	h.mustState(h.mustFind(run, ci.OutboxWebhook).ID, ci.OutboxSent)
}

func TestAnOutcomeThatCannotBeRecordedIsNotSentAgain(t *testing.T) {
	h := mustHouse(t)
	run := h.mustRequest(false, hookTarget)
	o := h.options()
	o.AfterSend = func(ci.OutboxEntry) { h.refuse.Store(true) }
	_, stop := h.mustRun(o)
	h.eventually("no commit failed", func() bool { return h.store.Health() != nil })
	h.refuse.Store(false)
	e := h.mustState(h.mustFind(run, ci.OutboxWebhook).ID, ci.OutboxSent)
	stop()
	if n := len(h.hook.requests()); n != 1 || e.Attempts != 1 {
		t.Errorf("%d requests, %d attempts, want 1", n, e.Attempts)
	}
}

type panics struct{ next http.RoundTripper }

func (p panics) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.Path, "/statuses/") {
		panic("a fault")
	}
	return p.next.RoundTrip(req)
}

func TestAPanicIsARecordedResult(t *testing.T) {
	h := mustHouse(t)
	run := h.mustRequest(true)
	o := h.options()
	next := &http.Transport{}
	t.Cleanup(next.CloseIdleConnections)
	o.Client = &http.Client{Transport: panics{next}}
	h.mustRun(o)
	e := h.mustWait(h.mustFind(run, ci.OutboxGitHubStatus).ID, 1)
	if !contains(e.LastError, "fault of its own") {
		t.Errorf("recorded %q", e.LastError)
	}
	h.mustPass()
}

func TestStoppingWaitsForWhatIsUnderWayAndRecordsIt(t *testing.T) {
	h := mustHouse(t)
	release := make(chan struct{})
	h.github.answer = func(got) (reply, bool) {
		h.github.mu.Unlock()
		<-release
		h.github.mu.Lock()
		return reply{}, false
	}
	run := h.mustRequest(true)
	d := dispatcher.New(h.options())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	h.github.mustSee(t, 1)
	cancel()
	later := h.mustRequest(true)
	select {
	case <-ended:
		t.Error("it did not wait")
	default:
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if e := h.mustFind(run, ci.OutboxGitHubStatus); e.State != ci.OutboxSent {
		t.Errorf("recorded as %s", e.State)
	}
	if e := h.mustFind(later, ci.OutboxGitHubStatus); e.Attempts != 0 {
		t.Errorf("%d attempts began after the end", e.Attempts)
	}
}
