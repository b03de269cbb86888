// Package tracer tells of docket's work in spans of OpenTelemetry: a trace for
// each delivery and each request by hand, from its arrival to the last word
// about its runs.
//
// It follows the store's commits like another worker, and calls none of the
// others. What it tells is made of records that are on disk, and so are the
// ids: a trace goes on in another life of the process. It never holds work up.
// What is not told for lack of a collector is dropped and counted.
package tracer

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"docket/store"
	"docket/store/ci"
)

const (
	// maxNews is how many commits and requests may wait to be made spans of.
	maxNews = 4096
	// maxSpans is how many spans may wait for the collector.
	maxSpans = 4096
	// FlushTime is how long Run may go on after its context has ended.
	FlushTime = 3 * time.Second
)

// Log keys.
const (
	keyError   = "error"
	keyStack   = "stack"
	keyReason  = "reason"
	keyDropped = "dropped"
)

// Options are what a tracer works with. Store and Config are required.
type Options struct {
	Store   *store.Store
	Config  func() *ci.Config // in force; asked for each trace and each request
	Log     *slog.Logger      // default: nothing is logged
	Version string            // of docket
	Client  *http.Client      // its Transport is used; redirects are never followed
	Now     func() time.Time  // default time.Now

	Linger time.Duration // how long spans are gathered for a request, default a second
	Retry  time.Duration // the first wait after a failed one, default a second
	// Timeout is how long a collector may take to answer, default 10 s.
	Timeout time.Duration
}

// Tracer makes spans and sends them. Its methods may be called at any time.
type Tracer struct {
	store  *store.Store
	config func() *ci.Config
	log    *slog.Logger
	now    func() time.Time
	client *client
	linger time.Duration
	retry  time.Duration

	ids   identity
	sdk   trace.Tracer
	began time.Time       // this life of the process
	open  map[string]seen // runs that have not ended, by id; of the maker alone

	news  chan news
	spans chan sdk.ReadOnlySpan
	counters
}

// news is what spans are made of: one of the two.
type news struct {
	changes []store.Change
	handled *ci.Handled
}

// New returns a tracer that does nothing until Run.
func New(o Options) *Tracer {
	t := &Tracer{
		store: o.Store, config: o.Config, log: o.Log, now: o.Now, linger: o.Linger, retry: o.Retry,
		ids: identity{o.Store.Instance()}, open: map[string]seen{},
		news: make(chan news, maxNews), spans: make(chan sdk.ReadOnlySpan, maxSpans),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.now == nil {
		t.now = time.Now
	}
	if t.linger <= 0 {
		t.linger = time.Second
	}
	if t.retry <= 0 {
		t.retry = time.Second
	}
	t.began = t.now()
	t.client = newClient(o.Client, o.Version)
	if o.Timeout > 0 {
		t.client.timeout = o.Timeout
	}
	t.sdk = t.newSDK(o.Version)
	return t
}

// Changed takes what a commit changed; see store.Options. It never blocks.
func (t *Tracer) Changed(c []store.Change) { t.tell(news{changes: c}) }

// Handled takes a request that was answered. It never blocks.
func (t *Tracer) Handled(h ci.Handled) { t.tell(news{handled: &h}) }

func (t *Tracer) tell(n news) {
	select {
	case t.news <- n:
	default:
		t.dropped.busy.Add(1)
	}
}

// RunTrace returns the id of the trace that tells of a run; "" if its trace is
// not sampled.
func (t *Tracer) RunTrace(r *ci.Run) string { return t.shown(t.ids.ofRun(r).trace) }

// ReceiptTrace returns the id of the trace that tells of a delivery; "" if it
// is not sampled.
func (t *Tracer) ReceiptTrace(id string) string { return t.shown(t.ids.ofReceipt(id).trace) }

func (t *Tracer) shown(id trace.TraceID) string {
	if !t.sampled(id) {
		return ""
	}
	return id.String()
}

// sampled reports whether a trace is kept: for one share the same answer in
// every life, and for a larger share those of a smaller one too.
func (t *Tracer) sampled(id trace.TraceID) bool {
	cfg := t.config().Traces
	return cfg != nil && sdk.TraceIDRatioBased(cfg.Sample).ShouldSample(sdk.SamplingParameters{TraceID: id}).Decision == sdk.RecordAndSample
}

// Run makes spans and sends them until ctx ends, then what is left for up to
// FlushTime.
func (t *Tracer) Run(ctx context.Context) {
	var making sync.WaitGroup
	made := make(chan struct{})
	making.Go(func() {
		defer close(made)
		t.makeAll(ctx)
	})
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(FlushTime)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-work.Done():
		}
	})
	defer stop()
	t.sendAll(ctx, work, made)
	making.Wait()
	t.client.close()
}

// makeAll makes spans of all news until ctx ends, then of those that wait.
func (t *Tracer) makeAll(ctx context.Context) {
	for {
		select {
		case n := <-t.news:
			t.make(n)
		case <-ctx.Done():
			for {
				select {
				case n := <-t.news:
					t.make(n)
				default:
					return
				}
			}
		}
	}
}

// make makes the spans of one piece of news. A fault costs those alone.
func (t *Tracer) make(n news) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("making spans met a fault of docket's own", keyError, p, keyStack, string(debug.Stack()))
		}
	}()
	if n.handled != nil {
		t.ofHandled(n.handled)
	}
	for _, c := range n.changes {
		switch {
		case c.Run != nil:
			t.ofRun(c.At, c.Run)
		case c.Entry != nil:
			t.ofEntry(c.At, c.Entry)
		}
	}
}

// counters are the live form of Stats.
type counters struct {
	exported, failures atomic.Uint64
	dropped            struct{ busy, full, refused, shutdown atomic.Uint64 }
	problem            atomic.Pointer[string]
	lastExport         atomic.Int64 // Unix milliseconds
}

// Stats is how sending went since the process started.
type Stats struct {
	Exported uint64 // spans that the collector took
	Failures uint64 // requests that it did not take
	// Dropped counts what it will never get, by reason: busy (commits and
	// requests that spans could not be made of in time), full (too many spans
	// waited), refused (also what no try got through), and shutdown.
	Dropped    map[string]uint64
	Problem    string    // why the last request failed; "" after one that did not
	LastExport time.Time // zero for none
}

// Stats returns the counts. It costs little and may be called at any time.
func (t *Tracer) Stats() Stats {
	s := Stats{Exported: t.exported.Load(), Failures: t.failures.Load(), Dropped: map[string]uint64{
		"busy": t.dropped.busy.Load(), "full": t.dropped.full.Load(),
		"refused": t.dropped.refused.Load(), "shutdown": t.dropped.shutdown.Load(),
	}}
	if p := t.problem.Load(); p != nil {
		s.Problem = *p
	}
	if ms := t.lastExport.Load(); ms > 0 {
		s.LastExport = time.UnixMilli(ms)
	}
	return s
}
