package store

import (
	"context"

	"docket/store/ci"
)

// newRun is a run that is ready to be numbered, with what can be made of it
// outside the transaction.
type newRun struct {
	run    ci.Run
	spec   *ci.Spec
	digest string
	json   []byte
	policy ci.SupersedePolicy

	status     *ci.OutboxEntry // of its first state; nil if it has none
	statusJSON []byte
}

// prepareRun makes all of a run that does not depend on the store.
func (s *Store) prepareRun(d *ci.Draft, spec *ci.Spec, digest string, now ci.Time) *newRun {
	r := ci.Run{
		State: d.State, Cause: d.Cause, Source: d.Source, Fork: d.Fork, Spec: digest,
		Inputs: d.Inputs, CreatedAt: now, Project: d.Project,
		Internal: ci.Internal{
			Integration: d.Integration, Installation: d.Installation, Context: d.Context, Scope: d.Scope, Title: d.Title, Origin: d.Origin,
			Schedule: d.Schedule,
			Group:    d.Group, HoldFor: ci.Duration(d.HoldFor),
		},
	}
	beginHold(&r, now)
	if d.Job != nil {
		job := *d.Job
		if job.Resolve && r.Source.Commit != "" {
			job.Object, r.Source.Commit = r.Source.Commit, ""
		}
		r.Internal.Job = &job
	}
	r.Internal.Head = r.Source.Branch != "" && r.Source.PullRequest == nil && r.Cause.Event != ci.EventMergeGroup &&
		(r.Cause.Kind == ci.CauseDelivery || r.Cause.Kind == ci.CauseRecovery || d.Job != nil && d.Job.Resolve)
	r.Steps = pendingSteps(spec)
	if d.Skip {
		skipNew(&r, d.Reason)
	}
	n := &newRun{run: r, spec: spec, digest: digest, json: runJSON(&r), policy: d.Supersede}
	if lane, ok := runLane(&r, spec); ok && r.State != ci.Preparing {
		state, text := statusOf(&r)
		n.status = statusEntry(&r, spec, lane, state, text)
		s.stamp(n.status, now)
		n.statusJSON = entryJSON(n.status)
	}
	return n
}

func pendingSteps(spec *ci.Spec) []ci.StepResult {
	steps := make([]ci.StepResult, len(spec.Steps))
	for i, st := range spec.Steps {
		steps[i] = ci.StepResult{Name: st.Name, State: ci.StepPending}
	}
	return steps
}

// createRun numbers a run and writes it with everything that goes with it:
// its frozen spec, its index entries and what is to be told of it.
func (t *tx) createRun(n *newRun) (ci.Run, error) {
	r := n.run
	number, err := t.nextNumber(r.Project)
	if err != nil {
		return r, err
	}
	seq, err := t.next(bucketRuns)
	if err != nil {
		return r, err
	}
	r.Number, r.ID, r.Internal.Seq = number, ci.RunID(r.Project, number), seq
	body := n.json
	if foreign, err := t.isForkCommit(&r); err != nil {
		return r, err
	} else if foreign && !r.Fork {
		r.Fork = true // asking for it by hand does not make a fork's commit ours
		if r.State == ci.Queued {
			r.State = ci.Held
			beginHold(&r, r.CreatedAt)
		}
		body = runJSON(&r)
	}
	if err := t.putSpec(n.digest, n.spec); err != nil {
		return r, err
	}
	if err := t.put(bucketRuns, runKey(r.Project, number), encodeRun(seq, r.State, body)); err != nil {
		return r, err
	}
	if err := t.put(bucketStates, stateKey(r.State, r.Project, number), stateValue(&r)); err != nil {
		return r, err
	}
	if err := t.changeGroup(&r, ""); err != nil {
		return r, err
	}
	if err := t.fileHold(&r); err != nil {
		return r, err
	}
	if err := t.markScope(&r, n.policy); err != nil {
		return r, err
	}
	if err := t.fileRef(&r); err != nil {
		return r, err
	}
	if err := t.fileKind(&r); err != nil {
		return r, err
	}
	if err := t.noteForkCommit(&r); err != nil {
		return r, err
	}
	t.wake(TopicRuns)
	if err := t.joinLane(&r, n.spec); err != nil {
		return r, err
	}
	if err := t.announceNew(&r, n); err != nil {
		return r, err
	}
	t.noteRun(&r, "", false)
	if r.State.Final() {
		if r.Source.Branch != "" {
			if err := t.lookAgain(r.Project, r.Source.Branch, r.Source.Commit); err != nil {
				return r, err
			}
		}
		return r, t.closeRun(&r, n.spec)
	}
	return r, nil
}

// announceNew is announce for a new run, with what was made of it before.
func (t *tx) announceNew(r *ci.Run, n *newRun) error {
	if n.status == nil || r.State != n.run.State {
		return t.announce(r, n.spec, eventOf(r.State))
	}
	status := *n.status
	status.Run = r.ID
	if err := t.enterJSON(&status, holdOf(&status), n.statusJSON); err != nil {
		return err
	}
	return t.notify(r, n.spec, eventOf(r.State))
}

// closeRun lets go of what a run had a part in, now that it has ended.
func (t *tx) closeRun(r *ci.Run, spec *ci.Spec) error {
	if err := t.fileCommit(r); err != nil {
		return err
	}
	return t.leaveLane(r, spec)
}

// nextNumber counts up from the project's newest run, which retention keeps.
func (t *tx) nextNumber(project string) (uint64, error) {
	n, ok := t.numbers[project]
	if !ok {
		if k, _ := last(t.bucket(bucketRuns).Cursor(), projectPrefix(project)); k != nil {
			_, n, _ = splitRunKey(k)
		}
	}
	n++
	t.numbers[project] = n
	return n, nil
}

// run reads one run, or CodeNotFound.
func (t *tx) run(id string) (ci.Run, error) {
	key, err := runKeyOf(id)
	if err != nil {
		return ci.Run{}, err
	}
	v := t.get(bucketRuns, key)
	if v == nil {
		return ci.Run{}, ci.Errorf(ci.CodeNotFound, "no run %q; `docket runs list` shows those there are", id)
	}
	return decodeRun(key, v)
}

// Run returns a run, or CodeNotFound.
func (s *Store) Run(id string) (r ci.Run, err error) {
	err = s.view(func(t *tx) error {
		r, err = t.run(id)
		t.showWaiting(&r)
		return err
	})
	return r, err
}

// putRun writes a changed run that keeps its state.
func (t *tx) putRun(r *ci.Run) error {
	return t.put(bucketRuns, runKey(r.Project, r.Number), encodeRun(r.Internal.Seq, r.State, runJSON(r)))
}

// noteEnd remembers a run's end for who watches commits.
func (t *tx) noteEnd(r *ci.Run) {
	e := Ended{Project: r.Project, State: r.State}
	if !r.StartedAt.IsZero() {
		e.Ran = max(0, t.now.Sub(r.StartedAt.Time))
	}
	t.ended = append(t.ended, e)
}

// moveRun takes a run to another state, if the table of transitions allows
// it, with the index entry and what is to be told of it.
func (t *tx) moveRun(r *ci.Run, to ci.State, reason string) error {
	if !ci.CanMove(r.State, to) {
		return ci.Errorf(ci.CodeConflict, "run %s is %s and cannot become %s", r.ID, r.State, to)
	}
	spec, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	from, outside := r.State, r.Undecided()
	if err := t.delete(bucketStates, stateKey(from, r.Project, r.Number)); err != nil {
		return err
	}
	if err := t.endHold(r); err != nil {
		return err
	}
	r.State, r.Reason = to, reason
	beginHold(r, ci.At(t.now))
	if to.Final() {
		r.FinishedAt = ci.At(t.now)
		r.CancelRequested = nil
		r.Internal.Process = nil
		if to != ci.Superseded { // which may have to be made anew
			r.Internal.Job = nil
		}
		endSteps(r)
		t.noteEnd(r)
	}
	if err := t.put(bucketStates, stateKey(to, r.Project, r.Number), stateValue(r)); err != nil {
		return err
	}
	if err := t.changeGroup(r, from); err != nil {
		return err
	}
	if err := t.fileHold(r); err != nil {
		return err
	}
	if err := t.putRun(r); err != nil {
		return err
	}
	t.noteRun(r, from, false)
	t.wake(TopicRuns)
	if from == ci.Running && to == ci.Superseded { // what it was stopped for may be seen otherwise by now
		if err := t.listScope(r); err != nil {
			return err
		}
	}
	if outside { // its end is told, and told of what stands for its commit
		if err := t.joinLaneLate(r, spec); err != nil {
			return err
		}
	}
	if to == ci.Superseded {
		if err := t.handOver(r, spec); err != nil {
			return err
		}
	}
	if err := t.announce(r, spec, eventOf(to)); err != nil {
		return err
	}
	if to.Final() {
		return t.closeRun(r, spec)
	}
	return nil
}

// endSteps closes the steps of a run that has ended.
func endSteps(r *ci.Run) {
	for i := range r.Steps {
		st := &r.Steps[i]
		switch st.State {
		case ci.StepPending:
			st.State = ci.StepSkipped
		case ci.StepRunning:
			st.State, st.FinishedAt = ci.StepCancelled, r.FinishedAt
			if r.State == ci.Failed {
				st.State = ci.StepFailed
			}
		}
	}
}

// fromProvider reports whether the provider says what the run's commit is and
// whose, in a signed delivery, be it for the first time or again, or when asked.
func fromProvider(r *ci.Run) bool {
	switch r.Cause.Kind {
	case ci.CauseDelivery, ci.CauseReplay, ci.CauseRecovery:
		return true
	}
	return false
}

// changeRun runs fn on a run in a write; fn changes it through t.
func (s *Store) changeRun(ctx context.Context, id string, fn func(t *tx, r *ci.Run) error) (r ci.Run, err error) {
	err = s.update(ctx, func(t *tx) error {
		r, err = t.run(id)
		if err != nil {
			return err
		}
		return fn(t, &r)
	})
	return r, err
}
