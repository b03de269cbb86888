package store

import (
	"time"

	"docket/store/ci"
)

// renew makes a run anew that gave way to an older one: what shows that it is
// the newest arrived after that. The new run stands in its place, also for
// superseding. Nothing is done where the run did not give way, or its commit
// has another run on the branch that did not.
func (t *tx) renew(id string) error {
	old, err := t.run(id)
	if err != nil || old.State != ci.Superseded {
		return err
	}
	if other, err := t.standsIn(&old); err != nil || other {
		return err
	}
	n, err := t.renewed(&old)
	if err != nil {
		return err
	}
	run, err := t.createRun(n)
	if err != nil {
		return err
	}
	if err := t.listScope(&run); err != nil { // it may take a place at once
		return err
	}
	return t.decide(ci.Decision{
		Kind: ci.DecisionRecovered, Run: run.ID, OtherRun: old.ID, Project: run.Project,
		By:     ci.By{Kind: ci.ByScheduler, Name: "supersede"},
		Reason: "run " + old.ID + " gave way to " + old.SupersededBy + ", and what arrived since shows that it is the newer one",
	})
}

// renewed is a run as it was when it was made, to be made again.
func (t *tx) renewed(old *ci.Run) (*newRun, error) {
	spec, err := t.spec(old.Spec)
	if err != nil {
		return nil, err
	}
	d := ci.Draft{
		Project: old.Project, Integration: old.Internal.Integration, State: ci.Queued,
		Cause: old.Cause, Origin: old.Internal.Origin, Source: old.Source, Fork: old.Fork, Inputs: old.Inputs,
		Context: old.Internal.Context, Scope: old.Internal.Scope, Title: old.Internal.Title,
		Group: old.Internal.Group, HoldFor: time.Duration(old.Internal.HoldFor), Supersede: ci.SupersedePending,
	}
	d.Cause.Kind, d.Cause.Run = ci.CauseRerun, old.ID
	switch {
	case old.Internal.Job != nil:
		job := *old.Internal.Job
		job.Attempts, job.NextAt, job.LastErr = 0, ci.Time{}, ""
		d.State, d.Job = ci.Preparing, &job
	case old.Fork:
		d.State = ci.Held // approval was for one run
	}
	n := t.s.prepareRun(&d, spec, old.Spec, ci.At(t.now))
	n.run.Internal.Head = old.Internal.Head
	n.json = mustJSON(n.run)
	return n, nil
}

// standsIn reports whether the commit of a run has another run on its branch
// that did not give way.
func (t *tx) standsIn(r *ci.Run) (found bool, err error) {
	kind, name, ok := refOf(r)
	if !ok {
		return false, nil
	}
	err = t.eachMove(r.Project, kind, name, func(p placed) bool {
		found = p.after == r.Source.Commit && p.number != r.Number &&
			runState(t.get(bucketRuns, runKey(r.Project, p.number))) != ci.Superseded
		return !found
	})
	return found, err
}
