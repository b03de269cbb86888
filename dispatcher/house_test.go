package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// house is a store, a configuration and receivers, with dispatchers coming
// and going.
type house struct {
	t        *testing.T
	path     string
	clock    *clock
	store    *store.Store
	refuse   atomic.Bool // commits fail
	github   *receiver
	hook     *receiver
	config   *ci.Config
	requests int
}

// hookTarget is the target's name in the outbox; its address is the receiver's.
const hookTarget = "https://hooks.example.org/ci"

func mustHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, path: filepath.Join(t.TempDir(), "docket.db"), clock: &clock{t: noon}}
	h.github = mustReceive(t, reply{status: http.StatusCreated, body: `{}`})
	h.hook = mustReceive(t)
	h.config = githubConfig(h.github.URL + "/")
	h.config.Projects[0].Notify = []ci.Notify{h.target(hookTarget, h.hook)}
	h.mustOpen()
	return h
}

func (h *house) target(name string, r *receiver) ci.Notify {
	return ci.Notify{
		Kind: ci.OutboxWebhook, Target: name, URL: ci.NewSecret(name, r.URL), Secret: ci.NewSecret("s", "sesame"),
		Events: []string{ci.RunQueued, ci.RunFinished},
	}
}

func (h *house) mustOpen() {
	h.t.Helper()
	h.store = storetest.MustOpenAt(h.t, h.path, store.Options{Now: h.clock.now, RunURL: runURL, Failpoint: func(point string) error {
		if point == store.FailBeforeCommit && h.refuse.Load() {
			return errors.New("no space left")
		}
		return nil
	}})
}

func runURL(id string) string { return "https://ci.example.org/runs/" + id }

func (h *house) mustReopen() {
	h.t.Helper()
	storetest.MustClose(h.t, h.store)
	h.mustOpen()
}

func (h *house) options() dispatcher.Options {
	return dispatcher.Options{
		Store: h.store, Config: func() *ci.Config { return h.config }, Now: h.clock.now,
		Scan: 20 * time.Millisecond, Jitter: func() float64 { return 0 },
	}
}

// mustRun runs a dispatcher until stop, or the test's end.
func (h *house) mustRun(o dispatcher.Options) (d *dispatcher.Dispatcher, stop func()) {
	h.t.Helper()
	d = dispatcher.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					h.t.Error(err)
				}
			case <-time.After(20 * time.Second):
				h.t.Error("the dispatcher does not stop")
			}
		})
	}
	h.t.Cleanup(stop)
	return d, stop
}

// commitOf returns a commit that only n has.
func commitOf(n int) string { return fmt.Sprintf("%040x", n+1) }

// mustRequest queues a run of its own commit. It reports to GitHub, and to
// the targets that are given.
func (h *house) mustRequest(report bool, targets ...string) ci.Run {
	h.t.Helper()
	h.requests++
	d := h.draft(commitOf(h.requests), report, targets...)
	run, _, err := h.store.Request(h.t.Context(), store.Request{Project: "api", Key: fmt.Sprint("key", h.requests), Digest: fmt.Sprint(h.requests), Draft: d})
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

func (h *house) draft(commit string, report bool, targets ...string) ci.Draft {
	d := ci.Draft{
		Project: "api", Integration: "github", State: ci.Queued,
		Cause:   ci.Cause{Kind: ci.CauseRequest, Event: ci.EventManual, Actor: "octocat"},
		Source:  ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main", Commit: commit},
		Context: ci.StatusContext("api", ci.EventManual),
		Spec:    ci.Spec{Version: 1, Report: report, Steps: []ci.Step{{Name: "test", Run: "true"}}},
	}
	for _, name := range targets {
		d.Spec.Notify = append(d.Spec.Notify, ci.NotifyTarget{Kind: ci.OutboxWebhook, Target: name, Events: []string{ci.RunQueued, ci.RunFinished}})
	}
	return d
}

func (h *house) mustCancel(run ci.Run) {
	h.t.Helper()
	_, _, err := h.store.CancelRun(h.t.Context(), store.Action{Run: run.ID, Key: "cancel " + run.ID, By: ci.By{Kind: ci.ByToken, Name: "ops"}})
	if err != nil {
		h.t.Fatal(err)
	}
}

// mustFind returns a run's only entry of a kind.
func (h *house) mustFind(run ci.Run, kind string) ci.OutboxEntry {
	h.t.Helper()
	list, _, err := h.store.Entries("", store.Page{Limit: 200})
	if err != nil {
		h.t.Fatal(err)
	}
	var found []ci.OutboxEntry
	for _, e := range list {
		if e.Run == run.ID && e.Kind == kind {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("%s has %d entries of the kind %s", run.ID, len(found), kind)
	}
	return found[0]
}

// mustBecome waits until an entry is as wanted.
func (h *house) mustBecome(id, what string, as func(ci.OutboxEntry) bool) ci.OutboxEntry {
	h.t.Helper()
	var e ci.OutboxEntry
	h.eventually(id+" is not "+what, func() bool {
		var err error
		if e, err = h.store.Entry(id); err != nil {
			h.t.Fatal(err)
		}
		return as(e)
	})
	return e
}

func (h *house) mustState(id string, s ci.OutboxState) ci.OutboxEntry {
	h.t.Helper()
	return h.mustBecome(id, string(s), func(e ci.OutboxEntry) bool { return e.State == s })
}

func (h *house) mustWait(id string, attempts int) ci.OutboxEntry {
	h.t.Helper()
	return h.mustBecome(id, "waiting for another try", func(e ci.OutboxEntry) bool {
		return e.State == ci.OutboxPending && e.Attempts == attempts && e.NextAttemptAt.After(h.clock.now())
	})
}

func (h *house) eventually(or string, cond func() bool) {
	h.t.Helper()
	tick, end := time.NewTicker(2*time.Millisecond), time.NewTimer(10*time.Second)
	defer tick.Stop()
	defer end.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end.C:
			h.t.Fatal(or)
		}
	}
}

// mustPass proves that a running dispatcher has looked at all that was due:
// something younger arrives.
func (h *house) mustPass() {
	h.t.Helper()
	n := len(h.hook.requests())
	run := h.mustRequest(false, hookTarget)
	h.mustState(h.mustFind(run, ci.OutboxWebhook).ID, ci.OutboxSent)
	if got := len(h.hook.requests()); got <= n {
		h.t.Fatalf("%d requests at the receiver, want more than %d", got, n)
	}
}
