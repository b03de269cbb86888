package scheduler

import (
	"context"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// supersede decides on every scope where a run has joined another.
func (s *Scheduler) supersede(ctx context.Context) error {
	for {
		scopes, err := s.Store.Scopes(100)
		if err != nil || len(scopes) == 0 {
			return err
		}
		for _, sc := range scopes {
			if err := s.Store.Supersede(ctx, sc, s.verdicts(sc)); err != nil {
				return err
			}
		}
	}
}

func (s *Scheduler) verdicts(sc store.Scope) []store.Supersession {
	policy := ci.SupersedePending
	if p := s.Config().Project(sc.Project); p != nil {
		policy = p.Supersede
	}
	runs := make([]pipeline.Candidate, len(sc.Moves))
	for i, m := range sc.Moves {
		runs[i] = pipeline.Candidate{
			Push: m.Push, State: m.Run.State, Deploying: m.Run.Internal.Deploying,
			Event: m.Run.Internal.Scope != "", Fork: m.Run.Fork && !m.Run.Internal.Approved,
			Undecided: m.Run.Undecided(), Bridge: m.Run.ID == "",
		}
		if c := m.Run.CancelRequested; c != nil && c.Into == ci.Superseded {
			runs[i].State = ci.Superseded // it is being stopped
		}
	}
	var list []store.Supersession
	for _, v := range pipeline.Supersede(policy, runs) {
		list = append(list, store.Supersession{Run: v.Run, By: v.By, Reason: v.Reason})
	}
	return list
}
