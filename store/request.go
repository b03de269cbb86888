package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"docket/store/ci"
)

// answered identifies a request by its idempotency key. Keys are scoped to a
// project; a key on record with another digest was used for something else.
type answered struct {
	scope, key, digest string
}

// answerRecord is what a key is on record with.
type answerRecord struct {
	Digest string          `json:"digest"`
	Run    string          `json:"run,omitempty"` // the run that the request made or concerned
	Answer json.RawMessage `json:"answer,omitempty"`
	At     ci.Time         `json:"at"`
}

func digestOf(op, subject, detail string) string {
	h := sha256.New()
	for _, s := range []string{op, subject, detail} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (a answered) dbKey() []byte { return append(projectPrefix(a.scope), a.key...) }

// known looks a key up. CodeConflict if it stands for another request.
func (t *tx) known(a answered) (rec answerRecord, ok bool, err error) {
	if a.key == "" {
		return rec, false, nil
	}
	v := t.get(bucketRequests, a.dbKey())
	if v == nil {
		return rec, false, nil
	}
	if rec, err = decodeJSON[answerRecord]("request", v); err != nil {
		return rec, false, err
	}
	if rec.Digest != a.digest {
		e := ci.Errorf(ci.CodeConflict, "the idempotency key was used for another request of %s; send this one under a new key", a.scope)
		e.ExistingRun = rec.Run
		if rec.Run != "" {
			e.Message = "the idempotency key was used for another request, which run " + rec.Run + " belongs to; send this one under a new key"
		}
		return rec, false, e
	}
	return rec, true, nil
}

// answer gives the first answer to a repeated request.
func (t *tx) answer(a answered, into any) (replayed bool, err error) {
	rec, ok, err := t.known(a)
	if err != nil || !ok {
		return false, err
	}
	return true, json.Unmarshal(rec.Answer, into)
}

// remember puts a request's answer on record, in the write that made it true.
func (t *tx) remember(a answered, run string, answer any) error {
	if a.key == "" {
		return nil
	}
	rec := answerRecord{Digest: a.digest, Run: run, At: ci.At(t.now)}
	if answer != nil {
		rec.Answer = mustJSON(answer)
	}
	return t.put(bucketRequests, a.dbKey(), mustJSON(rec))
}

// Request is a request for a run, normalized and frozen.
type Request struct {
	Project string
	Key     string
	Digest  string // of the normalized request
	Draft   ci.Draft
	By      ci.By
}

// Request makes the run, or returns the one that this key already made
// (replayed). CodeConflict, with ExistingRun, if the key was used for another
// request. A refused request does not use up the key.
func (s *Store) Request(ctx context.Context, r Request) (run ci.Run, replayed bool, err error) {
	n := s.prepareRun(&r.Draft, &r.Draft.Spec, r.Draft.Spec.Digest(), ci.At(s.now()))
	a := answered{scope: r.Project, key: r.Key, digest: digestOf("start", r.Project, r.Digest)}
	err = s.update(ctx, func(t *tx) error {
		replayed = false
		rec, ok, err := t.known(a)
		if err != nil {
			return err
		}
		if ok {
			replayed = true
			run, err = t.run(rec.Run)
			return err
		}
		if run, err = t.createRun(n); err != nil {
			return err
		}
		return t.remember(a, run.ID, nil)
	})
	return run, replayed, err
}

// Action is what a person asks of a run.
type Action struct {
	Run    string
	Key    string // idempotency key
	By     ci.By
	Reason string
}

// act runs fn once for an action's key; later the first answer is given.
func (s *Store) act(ctx context.Context, op string, a Action, fn func(t *tx, r *ci.Run) error) (run ci.Run, replayed bool, err error) {
	project, _, err := ci.ParseRunID(a.Run)
	if err != nil {
		return run, false, err
	}
	req := answered{scope: project, key: a.Key, digest: digestOf(op, a.Run, a.Reason)}
	err = s.update(ctx, func(t *tx) error {
		run = ci.Run{}
		if replayed, err = t.answer(req, &run); replayed || err != nil {
			return err
		}
		if run, err = t.run(a.Run); err != nil {
			return err
		}
		if err := fn(t, &run); err != nil {
			return err
		}
		return t.remember(req, run.ID, run)
	})
	return run, replayed, err
}

// CancelRun ends a pending run at once and asks a running one to stop.
// CodeConflict if it has ended.
func (s *Store) CancelRun(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	reason := "cancelled by " + a.By.Name
	if a.Reason != "" {
		reason += ": " + a.Reason
	}
	return s.act(ctx, "cancel", a, func(t *tx, r *ci.Run) error {
		switch {
		case r.State.Pending():
			if err := t.moveRun(r, ci.Cancelled, reason); err != nil {
				return err
			}
		case r.State == ci.Running:
			if r.CancelRequested != nil && r.CancelRequested.Into == ci.Cancelled {
				return nil // asked for already
			}
			r.CancelRequested = &ci.CancelRequest{At: ci.At(t.now), By: a.By, Reason: reason, Into: ci.Cancelled}
			if err := t.putRun(r); err != nil {
				return err
			}
			t.wake(TopicRuns)
		default:
			return ci.Errorf(ci.CodeConflict, "run %s has ended (%s), so there is nothing to cancel", r.ID, r.State)
		}
		return t.decide(ci.Decision{Kind: ci.DecisionCancelled, Run: r.ID, Project: r.Project, By: a.By, Reason: reason})
	})
}

// Approve lets a held run go on.
func (s *Store) Approve(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	return s.act(ctx, "approve", a, func(t *tx, r *ci.Run) error {
		if r.State != ci.Held {
			return ci.Errorf(ci.CodeConflict, "run %s is %s, and only a held run can be approved", r.ID, r.State)
		}
		r.Internal.Approved = true
		if err := t.moveRun(r, ci.Queued, ""); err != nil {
			return err
		}
		reason := "approved for commit " + r.Source.Commit
		if a.Reason != "" {
			reason += ": " + a.Reason
		}
		return t.decide(ci.Decision{Kind: ci.DecisionApproved, Run: r.ID, Project: r.Project, By: a.By, Reason: reason})
	})
}

// Rerun makes a new run of the same commit and the same frozen spec; a fork's
// is held again.
func (s *Store) Rerun(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	project, _, err := ci.ParseRunID(a.Run)
	if err != nil {
		return run, false, err
	}
	req := answered{scope: project, key: a.Key, digest: digestOf("rerun", a.Run, a.Reason)}
	err = s.update(ctx, func(t *tx) error {
		replayed = false
		rec, ok, err := t.known(req)
		if err != nil {
			return err
		}
		if ok {
			replayed = true
			run, err = t.run(rec.Run)
			return err
		}
		n, err := t.rerunOf(a.Run, ci.Cause{Actor: a.By.Name, Reason: a.Reason})
		if err != nil {
			return err
		}
		if run, err = t.createRun(n); err != nil {
			return err
		}
		reason := "rerun of " + a.Run
		if a.Reason != "" {
			reason += ": " + a.Reason
		}
		if err := t.decide(ci.Decision{Kind: ci.DecisionRerun, Run: run.ID, OtherRun: a.Run, Project: project, By: a.By, Reason: reason}); err != nil {
			return err
		}
		return t.remember(req, run.ID, nil)
	})
	return run, replayed, err
}

// rerunOf repeats a run. cause says who asks and why, and which delivery did
// where one did.
func (t *tx) rerunOf(id string, cause ci.Cause) (*newRun, error) {
	old, err := t.run(id)
	if err != nil {
		return nil, err
	}
	if !old.State.Final() {
		return nil, ci.Errorf(ci.CodeConflict, "run %s is %s; wait for its end, or cancel it, before running it again", old.ID, old.State)
	}
	spec, err := t.spec(old.Spec)
	if err != nil {
		return nil, err
	}
	if old.Source.Commit == "" || len(spec.Steps) == 0 {
		return nil, ci.Errorf(ci.CodeConflict, "run %s ended before it had a commit and steps, so there is nothing to repeat; start a new run instead", old.ID)
	}
	origin := old.Internal.Origin
	if cause.Receipt == "" {
		cause.Receipt, cause.Event, cause.Action = old.Cause.Receipt, old.Cause.Event, old.Cause.Action
	} else if origin == nil {
		origin = &ci.Origin{Receipt: old.Cause.Receipt, Event: old.Cause.Event}
	}
	cause.Kind, cause.Run = ci.CauseRerun, old.ID
	d := ci.Draft{
		Project: old.Project, Integration: old.Internal.Integration, Installation: old.Internal.Installation, State: ci.Queued,
		Cause: cause, Origin: origin,
		Source: old.Source, Fork: old.Fork, Inputs: old.Inputs, Context: old.Internal.Context, Title: old.Internal.Title,
		Group: old.Internal.Group, HoldFor: time.Duration(old.Internal.HoldFor),
	}
	if old.Fork {
		d.State = ci.Held
	}
	return t.s.prepareRun(&d, spec, old.Spec, ci.At(t.now)), nil
}

// EntryAction is what a person asks of an outbox entry.
type EntryAction struct {
	ID     string
	Key    string // may be ""
	By     ci.By
	Reason string
}

// RetryEntry makes a dead entry, or a pending one that waits, due now. What
// came after it keeps its right: BeginAttempt may still skip it.
func (s *Store) RetryEntry(ctx context.Context, a EntryAction) (e ci.OutboxEntry, replayed bool, err error) {
	return s.actOnEntry(ctx, "retry", a, func(t *tx, e *ci.OutboxEntry, seq uint64) error {
		switch e.State {
		case ci.OutboxPending:
			if err := t.reschedule(e, seq, ci.At(t.now), e.LastError); err != nil {
				return err
			}
		case ci.OutboxDead:
			if err := t.revive(e, seq); err != nil {
				return err
			}
		default:
			return ci.Errorf(ci.CodeConflict, "notification %s was %s, so there is nothing to retry", e.ID, e.State)
		}
		return t.decide(ci.Decision{Kind: ci.DecisionRetried, Run: e.Run, Entry: e.ID, By: a.By, Reason: "retried by " + a.By.Name + orReason(a.Reason)})
	})
}

// revive makes a dead entry pending again.
func (t *tx) revive(e *ci.OutboxEntry, seq uint64) error {
	if err := t.delete(bucketDead, be64(seq)); err != nil {
		return err
	}
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	l.users-- // it was counted as dead; enqueue counts it as pending
	e.State, e.Retried, e.NextAttemptAt, e.FinishedAt = ci.OutboxPending, true, ci.At(t.now), ci.Time{}
	e.FirstAttemptAt, e.Failures = ci.Time{}, 0
	if err := t.putEntry(e, seq); err != nil {
		return err
	}
	return t.enqueue(e, seq)
}

// DiscardEntry gives a pending or dead entry up for good.
func (s *Store) DiscardEntry(ctx context.Context, a EntryAction) (e ci.OutboxEntry, replayed bool, err error) {
	why := "discarded by " + a.By.Name + orReason(a.Reason)
	return s.actOnEntry(ctx, "discard", a, func(t *tx, e *ci.OutboxEntry, seq uint64) error {
		switch {
		case e.State == ci.OutboxPending:
			if err := t.finishEntry(e, seq, ci.OutboxSkipped, why); err != nil {
				return err
			}
		case e.State == ci.OutboxDead:
			if err := t.buryEntry(e, seq, why); err != nil {
				return err
			}
		default:
			return ci.Errorf(ci.CodeConflict, "notification %s was %s, so there is nothing to discard", e.ID, e.State)
		}
		return t.decide(ci.Decision{Kind: ci.DecisionDiscarded, Run: e.Run, Entry: e.ID, By: a.By, Reason: why})
	})
}

// buryEntry takes a dead entry off the list of those that wait for a person.
func (t *tx) buryEntry(e *ci.OutboxEntry, seq uint64, why string) error {
	if err := t.delete(bucketDead, be64(seq)); err != nil {
		return err
	}
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	l.users--
	t.touchLane(l)
	e.State, e.LastError, e.FinishedAt = ci.OutboxSkipped, why, ci.At(t.now)
	return t.putEntry(e, seq)
}

func (s *Store) actOnEntry(ctx context.Context, op string, a EntryAction, fn func(*tx, *ci.OutboxEntry, uint64) error) (e ci.OutboxEntry, replayed bool, err error) {
	err = s.update(ctx, func(t *tx) error {
		var seq uint64
		if e, seq, err = t.entryByID(a.ID); err != nil {
			return err
		}
		project, _, err := ci.ParseRunID(e.Run)
		if err != nil {
			return err
		}
		req := answered{scope: project, key: a.Key, digest: digestOf(op, a.ID, a.Reason)}
		var first ci.OutboxEntry
		if replayed, err = t.answer(req, &first); replayed {
			e = first
		}
		if replayed || err != nil {
			return err
		}
		if err := fn(t, &e, seq); err != nil {
			return err
		}
		if err := s.present(&e); err != nil {
			return err
		}
		return t.remember(req, e.Run, e)
	})
	return e, replayed, err
}
