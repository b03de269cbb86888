package scheduler

import (
	"context"
	"time"
)

// lapseLimit is how many held runs one write ends at most.
const lapseLimit = 100

// lapse ends the held runs for which approval was waited for long enough. next
// is when another will be due.
func (s *Scheduler) lapse(ctx context.Context) (next time.Time, err error) {
	for {
		runs, next, err := s.Store.Lapse(ctx, s.Now(), lapseLimit)
		for _, run := range runs {
			s.Log.Info("held run lapsed: nobody approved it in time", keyRun, run)
		}
		if err != nil || next.IsZero() || next.After(s.Now()) {
			return next, err
		}
	}
}
