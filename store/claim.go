package store

import (
	"bytes"
	"context"
	"slices"

	"docket/store/ci"
)

// Claim takes the next queued run, in one write: queued to running, attempt
// + 1, under the name of this process of the server. ok is false if nothing
// is queued, if max runs are running, if runs are paused, or if the next run's
// scope is still to be decided on (see Scopes).
//
// Projects take turns: the one with the fewest running runs comes first, and
// among equals the one whose run has waited longest. In a project the order
// is that of creation; a run whose concurrency group is taken, or that is not
// the next of its group, is passed over.
func (s *Store) Claim(ctx context.Context, boot string, max int) (run ci.Run, ok bool, err error) {
	return s.claim(ctx, boot, max, func(t *tx, r *ci.Run) bool {
		key, scoped := scopeKey(r)
		return !scoped || t.get(bucketScopes, key) == nil // else who gives way is decided first
	})
}

func (s *Store) claim(ctx context.Context, boot string, max int, may func(*tx, *ci.Run) bool) (run ci.Run, ok bool, err error) {
	err = s.update(ctx, func(t *tx) error {
		ok = false
		if t.paused(ci.WorkRuns) {
			return nil
		}
		key := t.nextQueued(max)
		if key == nil {
			return nil
		}
		if run, err = decodeRun(key, t.get(bucketRuns, key)); err != nil {
			return err
		}
		if !may(t, &run) {
			return nil
		}
		spec, err := t.spec(run.Spec)
		if err != nil {
			return err
		}
		run.Attempt++
		run.StartedAt = ci.At(t.now)
		run.Steps = pendingSteps(spec)
		run.Internal.Boot, run.Internal.Process = boot, nil
		ok = true
		return t.moveRun(&run, ci.Running, "")
	})
	return run, ok && err == nil, err
}

// nextQueued chooses the run to claim.
func (t *tx) nextQueued(max int) []byte {
	running := map[string]int{}
	total := 0
	c := t.bucket(bucketStates).Cursor()
	r := stateBytes[ci.Running]
	for k, _ := c.Seek([]byte{r}); len(k) > 0 && k[0] == r; k, _ = c.Next() {
		project, _, _ := splitRunKey(k[1:])
		running[project]++
		total++
	}
	if total >= max {
		return nil
	}
	var best []byte
	var bestRunning int
	var bestSeq uint64
	groups := turns{t: t}
	q := stateBytes[ci.Queued]
	for k, v := c.Seek([]byte{q}); len(k) > 0 && k[0] == q; {
		project, _, ok := splitRunKey(k[1:])
		if !ok {
			return nil
		}
		if !groups.mayRun(v) {
			k, v = c.Next()
			continue
		}
		n, seq := running[project], fromBE64(v)
		if best == nil || n < bestRunning || n == bestRunning && seq < bestSeq {
			best, bestRunning, bestSeq = bytes.Clone(k[1:]), n, seq
		}
		k, v = c.Seek(after(append([]byte{q}, projectPrefix(project)...)))
	}
	return best
}

// Active returns the runs that are running, at most limit.
func (s *Store) Active(limit int) (runs []ci.Run, err error) {
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketStates).Cursor()
		r := stateBytes[ci.Running]
		for k, _ := c.Seek([]byte{r}); len(k) > 0 && k[0] == r && len(runs) < limit; k, _ = c.Next() {
			run, err := decodeRun(k[1:], t.get(bucketRuns, k[1:]))
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		return nil
	})
	return runs, err
}

// ErrLate is returned for what an older attempt, or one that has ended, still
// wants to record. Nothing was changed.
var ErrLate = &ci.Error{Code: ci.CodeConflict, Message: "this attempt of the run is not the current one any more"}

// current looks a run up for its running attempt, or returns ErrLate.
func (t *tx) current(id string, attempt int) (ci.Run, error) {
	r, err := t.run(id)
	if err != nil {
		return r, err
	}
	if r.State != ci.Running || r.Attempt != attempt {
		return r, ErrLate
	}
	return r, nil
}

// StepStarted records that a step of an attempt is about to run, and the
// process that will carry it. It is on disk before anything of the step
// happens. step -1 is the preparation of the workspace.
//
// Entering a deploy step is refused with CodeConflict if the run has been
// asked to stop; once entered, nothing supersedes the run any more.
func (s *Store) StepStarted(ctx context.Context, id string, attempt, step int, deploy bool, p ci.Process) error {
	return s.update(ctx, func(t *tx) error {
		r, err := t.current(id, attempt)
		if err != nil {
			return err
		}
		if deploy {
			if r.CancelRequested != nil {
				return ci.Errorf(ci.CodeConflict, "run %s has been asked to stop, so its deploy step does not begin", id)
			}
			r.Internal.Deploying = true
		}
		r.Internal.Process = &p
		if step >= 0 && step < len(r.Steps) {
			r.Steps[step].State, r.Steps[step].StartedAt = ci.StepRunning, ci.At(t.now)
		}
		t.wake(TopicRuns)
		return t.putRun(&r)
	})
}

// StepFinished records how a step of an attempt ended.
func (s *Store) StepFinished(ctx context.Context, id string, attempt, step int, res ci.StepResult) error {
	return s.update(ctx, func(t *tx) error {
		r, err := t.current(id, attempt)
		if err != nil {
			return err
		}
		if step < 0 || step >= len(r.Steps) {
			return nil
		}
		if res.StartedAt.IsZero() {
			res.StartedAt = r.Steps[step].StartedAt
		}
		res.Name = r.Steps[step].Name
		r.Steps[step] = res
		t.wake(TopicRuns)
		return t.putRun(&r)
	})
}

// Result is how an attempt ended.
type Result struct {
	State  ci.State
	Reason string
	Steps  []ci.StepResult // nil leaves what StepFinished recorded
}

// FinishRun ends a running attempt, with its final status and notifications
// in the same write, and with a decision where it did not end by itself but
// was interrupted. ErrLate if the attempt is not the current one.
func (s *Store) FinishRun(ctx context.Context, id string, attempt int, res Result) error {
	return s.update(ctx, func(t *tx) error {
		r, err := t.current(id, attempt)
		if err != nil {
			return err
		}
		if res.Steps != nil {
			r.Steps = slices.Clone(res.Steps)
		}
		if res.State == ci.Superseded && r.CancelRequested != nil {
			r.SupersededBy = r.CancelRequested.ByRun
		}
		if err := t.moveRun(&r, res.State, res.Reason); err != nil {
			return err
		}
		kind := ""
		switch {
		case res.State == ci.Interrupted:
			kind = ci.DecisionInterrupted
		case res.State == ci.Failed && res.Reason == ci.ReasonTimedOut:
			kind = ci.DecisionTimedOut
		default:
			return nil
		}
		return t.decide(ci.Decision{
			Kind: kind, Run: r.ID, Project: r.Project,
			By: ci.By{Kind: ci.ByScheduler, Name: "runner"}, Reason: res.Reason,
		})
	})
}

// Lost settles a run whose process was lost with an earlier process of the
// server: cancelled if that had been asked for, else interrupted, or queued
// again where its project wants that and it had not begun to deploy.
func (s *Store) Lost(ctx context.Context, id string, attempt int, requeue bool, reason string) (ci.Run, error) {
	return s.changeRun(ctx, id, func(t *tx, r *ci.Run) error {
		if r.State != ci.Running || r.Attempt != attempt {
			return nil
		}
		d := ci.Decision{
			Kind: ci.DecisionInterrupted, Run: r.ID, Project: r.Project,
			By: ci.By{Kind: ci.ByScheduler, Name: "recovery"}, Reason: reason,
		}
		was, to := *r, ci.Interrupted
		switch c := r.CancelRequested; {
		case c != nil:
			to, reason = c.Into, c.Reason
			r.SupersededBy = c.ByRun
		case requeue && !r.Internal.Deploying:
			to, d.Kind = ci.Queued, ci.DecisionRequeued
			r.Internal.Process, r.StartedAt = nil, ci.Time{}
			r.Steps, reason = nil, ""
		}
		if err := t.moveRun(r, to, reason); err != nil {
			return err
		}
		t.noteRun(&was, ci.Running, true)
		if to == ci.Queued {
			// It waits again, and a newer run may have come while it ran.
			if err := t.listScope(r); err != nil {
				return err
			}
		}
		return t.decide(d)
	})
}

// AnyQueued reports whether a run is queued that may start, without a write:
// while runs are paused none may.
func (s *Store) AnyQueued() (queued bool, err error) {
	err = s.view(func(t *tx) error {
		q := stateBytes[ci.Queued]
		k, _ := t.bucket(bucketStates).Cursor().Seek([]byte{q})
		queued = len(k) > 0 && k[0] == q && !t.paused(ci.WorkRuns)
		return nil
	})
	return queued, err
}
