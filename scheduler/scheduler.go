// Package scheduler does what was asked: it settles what an earlier process
// left behind, prepares runs, lets newer ones take the place of older ones,
// claims what is queued and carries it, cancels and times out.
//
// It knows nothing but what the store says. Each scan reads the store again;
// a wakeup only makes the next scan come sooner.
package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
)

// Defaults of Options.
const (
	DefaultScan    = 5 * time.Second
	DefaultWorkers = 4
	DefaultGrace   = 30 * time.Second
)

// Points at which a test may kill the process.
const (
	PointClaimed     = "claimed"      // a run is claimed, and nothing of it has begun
	PointStepBegins  = "step begins"  // a step's start is on record, and nothing of it has begun
	PointStepEnded   = "step ended"   // a step has ended, and that is not on record
	PointRunEnded    = "run ended"    // a run has ended, its workspace is gone, and its end is not on record
	PointRunFinished = "run finished" // a run's end is on record
	PointReaped      = "reaped"       // the processes of a run that was lost are ended, and it counts as running
	PointSettled     = "settled"      // a run that was lost is settled, and others may not be
	PointPruned      = "pruned"       // records are removed, and what lies beside the store is not
)

// Runner is what carries runs: runner.Runner, and in tests one that a test
// steps through.
type Runner interface {
	Carry(ctx context.Context, w runner.Work, rec runner.Recorder) runner.Result
	Resolve(ctx context.Context, cloneURL, ref string) (commit string, err error)
	Peel(ctx context.Context, cloneURL, ref, object string) (commit string, err error)
	ReadFile(ctx context.Context, project, cloneURL, ref, commit, file string, limit int64) ([]byte, error)
	Changed(ctx context.Context, project, cloneURL string, span runner.Span) (files []string, why string, err error)
	Reap(ctx context.Context, run ci.Run) (killed int, err error)
	Remove(run ci.Run) error
	Sweep(keep map[string]bool) error
}

// Options are what a scheduler works with. Store, Config, Runner and Boot are required.
type Options struct {
	Store  *store.Store
	Config func() *ci.Config // the configuration in force, asked at every scan
	Runner Runner
	Log    *slog.Logger
	Now    func() time.Time
	// Elapsed returns the time that has passed, whatever is done to the clock;
	// default: since New.
	Elapsed func() time.Duration
	// Boot names this process of the server: what runs under another name has
	// lost its process.
	Boot string
	// FreeSpace returns the bytes free for runs; default: those of the data directory.
	FreeSpace func() (int64, error)
	// Provider is asked for deliveries that did not arrive and for heads; nil: nobody is.
	Provider Provider
	// RecoverEvery, where it is set, takes the place of every integration's
	// own; below 0 nothing is compared but by hand. For tests.
	RecoverEvery time.Duration
	// KeepBodies, where it is set, takes the place of the configured retention
	// of bodies. For tests.
	KeepBodies time.Duration
	// Passing is called at each Point. For tests.
	Passing func(point string)
	// Workers bounds how many inbox jobs are done at once.
	Workers int
	// NoWakeups switches the store's wakeups off: the scan alone finds work.
	// For tests.
	NoWakeups bool
}

// Scheduler is one scheduler over a store. Run one per store.
type Scheduler struct {
	Options
	lastScan atomic.Int64 // Unix milliseconds
	lowSpace atomic.Bool
	fewFiles bool // of the scan alone

	mu       sync.Mutex
	carrying map[string]context.CancelCauseFunc // by run id
	jobs     map[string]bool                    // run ids whose job a worker has
	workers  sync.WaitGroup
	again    chan struct{} // something of ours ended: look again
	clock    clockwork     // of the scan alone
	pruner   pruner        // of the scan alone, but for its sweeps
	recoverer
}

// New returns a scheduler that does nothing until Run.
func New(o Options) *Scheduler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Elapsed == nil {
		start := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(start) }
	}
	if o.FreeSpace == nil {
		o.FreeSpace = func() (int64, error) { return freeSpace(o.Config().DataDir) }
	}
	if o.Passing == nil {
		o.Passing = func(string) {}
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	return &Scheduler{
		Options: o, carrying: map[string]context.CancelCauseFunc{}, jobs: map[string]bool{},
		again: make(chan struct{}, 1), pruner: pruner{sweeps: make(chan struct{}, 1)}, recoverer: newRecoverer(),
	}
}

// Run works until ctx ends. Then it claims nothing more, gives running steps
// the configured shutdown grace, ends what still runs as interrupted, and
// returns when all of it is on record.
func (s *Scheduler) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s.began(ctx)
	if err := s.recoverLost(ctx); err != nil {
		return err
	}
	var recovering sync.WaitGroup
	recovering.Go(func() { s.recoverLoop(ctx) })
	s.loop(ctx, work)
	if err := s.Store.Stopped(work, s.Now()); err != nil {
		s.Log.Error("time of the shutdown not recorded", keyError, err)
	}
	recovering.Wait()
	s.shutDown(stop)
	return nil
}

func (s *Scheduler) loop(ctx, work context.Context) {
	wake := (<-chan struct{})(nil)
	if !s.NoWakeups {
		c, stop := s.Store.Watch(store.TopicRuns)
		defer stop()
		wake = c
	}
	for ctx.Err() == nil {
		next := s.scan(ctx, work)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-s.again:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// shutDown waits for what runs, for as long as the configuration grants.
func (s *Scheduler) shutDown(stop context.CancelCauseFunc) {
	grace := s.Config().ShutdownGrace
	done := make(chan struct{})
	go func() { s.workers.Wait(); close(done) }()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	stop(&runner.Stop{State: ci.Interrupted, Reason: "docket was shut down"})
	<-done
}

// scan rereads the store and acts on what it finds. It returns how long the
// next look may wait.
func (s *Scheduler) scan(ctx, work context.Context) time.Duration {
	wait := s.Config().ScanInterval
	if wait <= 0 {
		wait = DefaultScan
	}
	every := wait
	slot, err := s.runSchedules(ctx)
	s.report(ctx, "schedule", err)
	if !slot.IsZero() {
		wait = min(wait, max(slot.Sub(s.Now()), time.Millisecond))
	}
	s.report(ctx, "supersede", s.supersede(ctx))
	s.report(ctx, "cancel", s.stopRequested())
	sooner := func(next time.Time) {
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(s.Now()), time.Millisecond))
		}
	}
	next, err := s.prepare(work)
	s.report(ctx, "prepare", err)
	sooner(next)
	next, err = s.lapse(ctx)
	s.report(ctx, "lapse", err)
	sooner(next)
	s.report(ctx, "claim", s.claim(ctx, work))
	s.report(ctx, "retention", s.prune(ctx, every))
	s.lastScan.Store(s.Now().UnixMilli())
	return wait
}

// report logs a fault; what the end of the scheduler cut short is none.
func (s *Scheduler) report(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.Log.Error("scan failed, and is repeated", keyPart, what, keyError, err)
	}
}

// about returns the log for lines about a run, with the delivery that made it
// where there is one.
func (s *Scheduler) about(r *ci.Run) *slog.Logger {
	log := s.Log.With(keyRun, r.ID, keyProject, r.Project)
	if r.Cause.Receipt != "" {
		log = log.With(keyReceipt, r.Cause.Receipt)
	}
	return log
}

// LastScan returns when the last scan ended; zero before the first.
func (s *Scheduler) LastScan() time.Time {
	if ms := s.lastScan.Load(); ms > 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// LowSpace reports whether the last scan started nothing for want of disk space.
func (s *Scheduler) LowSpace() bool { return s.lowSpace.Load() }

// lookAgain asks for a scan.
func (s *Scheduler) lookAgain() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// stopRequested passes cancel requests on to the runs that this process carries.
func (s *Scheduler) stopRequested() error {
	runs, err := s.Store.Active(maxActive)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range runs {
		if c := r.CancelRequested; c != nil && s.carrying[r.ID] != nil {
			s.carrying[r.ID](&runner.Stop{State: c.Into, Reason: c.Reason})
		}
	}
	return nil
}

// maxActive bounds how many running runs one look reads.
const maxActive = 10_000
