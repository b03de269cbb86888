package scheduler

import (
	"context"
)

// pruneLimit is how many of each kind one scan removes at most: space is
// freed steadily, and no commit grows long.
const pruneLimit = 200

// prune removes what ended longer ago than the configured retention.
func (s *Scheduler) prune(ctx context.Context) error {
	keep := s.Config().Retention
	if keep <= 0 {
		return nil
	}
	p, err := s.Store.Prune(ctx, s.Now().Add(-keep), pruneLimit)
	if err != nil {
		return err
	}
	for _, run := range p.Runs {
		if err := s.Store.Logs().Remove(run); err != nil {
			s.Log.Warn("log left behind", "run", run, "error", err)
		}
	}
	if !p.None() {
		s.Log.Info("removed what ended long ago", "runs", len(p.Runs), "receipts", p.Receipts, "notifications", p.Entries, "decisions", p.Decisions)
	}
	return nil
}
