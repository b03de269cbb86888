package scheduler

import (
	"context"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// maxRounds bounds how often one look goes back to scopes that pushes have
// touched meanwhile: under pushes without end the rest of a scan gets its turn
// too. No run is claimed while its scope is undecided.
const maxRounds = 10

// supersede decides on every scope where a run has joined another.
func (s *Scheduler) supersede(ctx context.Context) error {
	for range maxRounds {
		scopes, err := s.Store.Scopes(100)
		if err != nil || len(scopes) == 0 {
			return err
		}
		for _, sc := range scopes {
			if ctx.Err() != nil {
				return nil // the next start decides
			}
			verdicts, restore := s.verdicts(sc)
			if err := s.Store.Supersede(ctx, sc, verdicts, restore...); err != nil {
				return err
			}
		}
	}
	s.lookAgain()
	return nil
}

// verdicts decides which runs of a scope give way, and which one is to be made
// anew.
func (s *Scheduler) verdicts(sc store.Scope) (list []store.Supersession, restore []string) {
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
		runs[i].SupersededBy = m.Run.SupersededBy
		if c := m.Run.CancelRequested; c != nil && c.Into == ci.Superseded {
			runs[i].State, runs[i].SupersededBy = ci.Superseded, c.ByRun // it is being stopped
		}
	}
	for _, v := range pipeline.Supersede(policy, runs) {
		list = append(list, store.Supersession{Run: v.Run, By: v.By, Reason: v.Reason})
	}
	if run := pipeline.Restore(policy, runs); run != "" {
		restore = append(restore, run)
	}
	return list, restore
}
