package scheduler

import (
	"context"
	"time"
)

const (
	// pruneLimit is how many of each kind are removed at once: space is freed
	// steadily, and no commit grows long.
	pruneLimit = 200
	// sweepEvery is how often the logs are looked through.
	sweepEvery = time.Hour
	// catchUp is how many times as fast as time passes the retention's time may
	// run after the clock: a clock that is wrong by years ages nothing by more
	// than a day in an hour, and somebody has time to see it.
	catchUp = 24
	// markEvery is how far the retention's time runs before it is written down.
	markEvery = 10 * time.Minute
)

// pruner is what one scheduler remembers of its retention.
type pruner struct {
	time   time.Time     // ages are counted to it; zero before the first look
	marked time.Time     // what of it is on record
	at     time.Duration // of the last look
	swept  time.Duration // of the last look through the logs
	looked bool
	sweeps chan struct{} // holds a token while the logs are looked through
}

// retentionTime moves the time that ages are counted to. It is the clock's,
// unless that ran ahead of what has passed.
func retentionTime(last, now time.Time, passed time.Duration) time.Time {
	if last.IsZero() {
		return now
	}
	if most := last.Add(catchUp * passed); now.After(most) {
		return most
	}
	return now
}

// prune removes what ended longer ago than the configured retention, at most
// once in a scan's interval.
func (s *Scheduler) prune(ctx context.Context, every time.Duration) error {
	keep := s.Config().Retention
	if s.KeepBodies > 0 {
		keep.Bodies = s.KeepBodies
	}
	passed := s.Elapsed()
	p := &s.pruner
	if p.looked && passed-p.at < every {
		return nil
	}
	if err := s.moveRetentionTime(ctx, passed); err != nil {
		return err
	}
	if keep.Runs > 0 {
		if err := s.pruneRecords(ctx, p.time.Add(-keep.Runs)); err != nil {
			return err
		}
	}
	if keep.Bodies > 0 {
		n, err := s.Store.PruneBodies(ctx, p.time.Add(-keep.Bodies), pruneLimit)
		if err != nil {
			return err
		}
		if n > 0 {
			s.Passing(PointPruned)
			s.Log.Info("removed the bodies of old deliveries", keyBodies, n)
		}
	}
	if keep.Logs > 0 && (p.swept == 0 || passed-p.swept >= sweepEvery) {
		p.swept = max(passed, 1)
		s.sweepLogs(ctx, p.time.Add(-keep.Logs))
	}
	return nil
}

// moveRetentionTime lets the time that ages are counted to follow the clock.
func (s *Scheduler) moveRetentionTime(ctx context.Context, passed time.Duration) (err error) {
	p, now := &s.pruner, s.Now()
	if !p.looked {
		if p.time, err = s.Store.RetentionTime(); err != nil {
			return err
		}
		p.marked, p.at = p.time, passed
		if now.Sub(p.time) > 24*time.Hour && !p.time.IsZero() {
			s.Log.Warn("the clock is far ahead of what was last seen, so ages follow it slowly; correct it if it is wrong", keyNow, now, keySeen, p.time)
		}
	}
	p.time = retentionTime(p.time, now, passed-p.at)
	p.at, p.looked = passed, true
	if d := p.time.Sub(p.marked); d >= markEvery || d < 0 || p.marked.IsZero() {
		if err := s.Store.SetRetentionTime(ctx, p.time); err != nil {
			return err
		}
		p.marked = p.time
	}
	return nil
}

func (s *Scheduler) pruneRecords(ctx context.Context, before time.Time) error {
	p, err := s.Store.Prune(ctx, before, pruneLimit)
	if err != nil {
		return err
	}
	if !p.None() {
		s.Passing(PointPruned)
	}
	for _, run := range p.Runs {
		if err := s.Store.Logs().Remove(run); err != nil {
			s.Log.Warn("log left behind", keyRun, run, keyError, err)
		}
	}
	if !p.None() {
		s.Log.Info("removed what ended long ago", keyRuns, len(p.Runs), keyReceipts, p.Receipts, keyEntries, p.Entries, keyDecisions, p.Decisions)
	}
	return nil
}

// sweepLogs removes old logs beside the scans: there may be many.
func (s *Scheduler) sweepLogs(ctx context.Context, before time.Time) {
	select {
	case s.pruner.sweeps <- struct{}{}:
	default:
		return // the last sweep is still at it
	}
	s.workers.Go(func() {
		defer func() { <-s.pruner.sweeps }()
		n, err := s.Store.Logs().Prune(ctx, before)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("old logs left behind", keyError, err)
		}
		if n > 0 {
			s.Log.Info("removed old logs", keyRuns, n)
		}
	})
}
