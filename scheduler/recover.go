package scheduler

import (
	"context"
	"fmt"
	"time"

	"docket/store/ci"
)

// recoverLost settles every run that an earlier process of the server left
// running: first what is left of its processes is ended, then the run. It
// goes on until all of it is on record; killed on the way, it does the same
// again at the next start.
func (s *Scheduler) recoverLost(ctx context.Context) error {
	for {
		err := s.settleLost(ctx)
		if err == nil {
			return s.Runner.Sweep(nil)
		}
		s.Log.Error("recovery failed, and is repeated", keyError, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func (s *Scheduler) settleLost(ctx context.Context) error {
	runs, err := s.Store.Active(maxActive)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Internal.Boot == s.Boot {
			continue
		}
		killed, err := s.Runner.Reap(ctx, r)
		if err != nil {
			return fmt.Errorf("end the processes of run %s: %w", r.ID, err)
		}
		if err := s.Runner.Remove(r); err != nil {
			s.about(&r).Warn("workspace left behind", keyError, err)
		}
		s.Passing(PointReaped)
		p := s.Config().Project(r.Project)
		requeue := p != nil && p.OnInterrupt == ci.OnInterruptRequeue
		reason := "docket stopped while it ran"
		if killed > 0 {
			reason += fmt.Sprintf("; %d leftover processes were ended", killed)
		}
		after, err := s.Store.Lost(ctx, r.ID, r.Attempt, requeue, reason)
		if err != nil {
			return fmt.Errorf("settle run %s: %w", r.ID, err)
		}
		s.Passing(PointSettled)
		s.about(&r).Warn("run lost its process", keyState, after.State, keyProcesses, killed)
	}
	return nil
}
