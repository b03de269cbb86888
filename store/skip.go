package store

import (
	"strings"

	"docket/store/ci"
)

// A run that a filter keeps from running is a run that is born at its end, so
// that its commit's status can say so: cancelled, marked as a skip, told as a
// success. It is nobody's result: it never becomes its branch's latest, takes
// nobody's place, makes no notification, and is silent beside any other run of
// its commit and context.

// skipNew makes a new run one that is skipped.
func skipNew(r *ci.Run, reason string) {
	r.State, r.Internal.Skip, r.Internal.Scope = ci.Cancelled, true, ""
	r.Internal.Job = nil
	r.Reason, r.FinishedAt = skipReason(reason), r.CreatedAt
	endSteps(r)
}

func skipReason(why string) string { return "skipped: " + strings.TrimPrefix(why, "skipped: ") }

// maySay reports whether a skipped run's status is to be told: its project
// reports, and no other run of its commit and context is on record, whose
// result stands.
func (t *tx) maySay(r *ci.Run, spec *ci.Spec) (bool, error) {
	probe := *r
	probe.Internal.Job = nil // that a filter had to decide is over
	name, ok := runLane(&probe, spec)
	if !ok || t.get(bucketCommits, commitKey(r)) != nil {
		return false, nil
	}
	l, err := t.lane(name)
	return err == nil && l.users == 0, err
}

// skipPreparing ends a run whose job found that a filter stops it. Its status
// is told where its project wants that and no other run speaks for the commit.
func (t *tx) skipPreparing(r *ci.Run, res Resolution) error {
	if !r.Undecided() {
		return ci.Errorf(ci.CodeInternal, "run %s was to be skipped, and no filter had a say in it", r.ID)
	}
	spec, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	if err := t.unfileRef(r); err != nil {
		return err
	}
	if r.Source.Commit == "" {
		r.Source.Commit = res.Commit
	}
	say := r.Internal.Job.OnSkip == ci.OnSkipReport
	if say {
		if say, err = t.maySay(r, spec); err != nil {
			return err
		}
	}
	r.Internal.Skip, r.Internal.Silent, r.Internal.Scope = true, !say, ""
	if err := t.moveRun(r, ci.Cancelled, skipReason(res.Skipped)); err != nil {
		return err
	}
	if err := t.fileRef(r); err != nil {
		return err
	}
	return t.decide(ci.Decision{
		Kind: ci.DecisionSkipped, Run: r.ID, Project: r.Project,
		By: ci.By{Kind: ci.ByScheduler, Name: "paths"}, Reason: r.Reason,
	})
}

// skips reports whether all of a receipt's runs are skips, so that it may be
// judged again like one that was ignored.
func skips(runs []ci.Run) bool {
	for i := range runs {
		if !runs[i].Internal.Skip {
			return false
		}
	}
	return true
}
