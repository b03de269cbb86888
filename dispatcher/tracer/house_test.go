package tracer_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/dispatcher/tracer"
	"docket/dispatcher/tracer/collectortest"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a store with a tracer over it, and a collector.
type house struct {
	t      *testing.T
	store  *store.Store
	tracer *tracer.Tracer
	coll   *collectortest.Collector
	log    *lockedText
	stop   func() time.Duration // ends the tracer, and says how long that took
	n      int
	ahead  atomic.Int64 // of the store's clock

	mu  sync.Mutex
	cfg ci.Config
}

type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newHouse starts a tracer. change is called with its options before.
func newHouse(t *testing.T, change func(*house, *tracer.Options)) *house {
	t.Helper()
	h := &house{t: t, coll: collectortest.New(t), log: &lockedText{}}
	h.cfg = ci.Config{Traces: &ci.Traces{Endpoint: h.coll.URL + "/v1/traces", Sample: 1, Headers: map[string]ci.Secret{"X-Key": ci.NewSecret("k", "otlp-marker")}}}
	h.store = storetest.MustOpenAt(t, filepath.Join(t.TempDir(), "docket.db"), store.Options{
		Changed: func(c []store.Change) { h.tracer.Changed(c) },
		Now:     func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) },
	})
	o := tracer.Options{
		Store: h.store, Config: h.config, Log: slog.New(slog.NewTextHandler(h.log, nil)), Version: "test",
		Linger: time.Millisecond, Retry: time.Millisecond,
	}
	if change != nil {
		change(h, &o)
	}
	h.tracer = tracer.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.tracer.Run(ctx) }()
	h.stop = func() time.Duration {
		began := time.Now()
		cancel()
		<-done
		return time.Since(began)
	}
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *house) config() *ci.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	cfg := h.cfg
	return &cfg
}

const commitA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"

// deliver puts a delivery on record that starts a run.
func (h *house) deliver() ci.Run {
	h.t.Helper()
	h.n++
	id := fmt.Sprintf("d-%d", h.n)
	spec := ci.Spec{Version: 1, Steps: []ci.Step{{Name: "test", Run: "true"}, {Name: "deploy", Run: "true"}},
		Notify: []ci.NotifyTarget{{Kind: ci.OutboxWebhook, Target: "https://user.example/hook/secret-path", Events: []string{ci.RunFinished}}}}
	a, err := h.store.Accept(h.t.Context(), store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: id, Event: "push", Body: []byte(`{"n": "` + id + `"}`), ReceivedAt: time.Now()},
		Event:    ci.Event{Kind: "push", Ref: "refs/heads/main", Commit: commitA, Repository: ci.Repository{ID: 7, FullName: "acme/api"}},
		Drafts: []ci.Draft{{
			Project: "api", Integration: "github", State: ci.Queued, Spec: spec, Context: "docket/api",
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/" + id, Event: "push"},
			Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main", Commit: commitA},
		}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return a.Runs[0]
}

// claim takes the next run.
func (h *house) claim() ci.Run {
	h.t.Helper()
	r, ok, err := h.store.Claim(h.t.Context(), "boot", 10)
	if err != nil || !ok {
		h.t.Fatalf("nothing is claimed: %v", err)
	}
	return r
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// waitStats waits until the tracer's counts are as wanted.
func (h *house) waitStats(what string, ok func(tracer.Stats) bool) tracer.Stats {
	h.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		s := h.tracer.Stats()
		if ok(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			h.t.Fatalf("waited in vain for %s: %+v", what, s)
		}
	}
}
