package store

import (
	"context"

	"docket/store/ci"
)

// pauseKey is where, beside the schema, a pause stands.
func pauseKey(w ci.Work) []byte { return []byte("paused " + string(w)) }

// Pauses returns what is paused.
func (s *Store) Pauses() (p ci.Pauses, err error) {
	err = s.view(func(t *tx) (err error) {
		p, err = t.pauses()
		return err
	})
	return p, err
}

// Pause stops a part of docket before its next piece of work, also over
// restarts, until Resume. Intake, runs under way and messages that have just
// left go on. Pausing what is paused changes nothing. It returns what is
// paused then.
func (s *Store) Pause(ctx context.Context, w ci.Work, by ci.By, reason string) (p ci.Pauses, err error) {
	return s.changePause(ctx, w, func(t *tx) error { return t.pause(w, by, reason) })
}

// Resume lets a part go on. Resuming what is not paused changes nothing.
func (s *Store) Resume(ctx context.Context, w ci.Work, by ci.By, reason string) (p ci.Pauses, err error) {
	return s.changePause(ctx, w, func(t *tx) error {
		if !t.paused(w) {
			return nil
		}
		if err := t.delete(bucketMeta, pauseKey(w)); err != nil {
			return err
		}
		t.wake(TopicRuns)
		t.wake(TopicOutbox)
		return t.decide(ci.Decision{Kind: ci.DecisionResumed, By: by, Reason: said(w, "go on", reason)})
	})
}

func (s *Store) changePause(ctx context.Context, w ci.Work, change func(*tx) error) (p ci.Pauses, err error) {
	if w != ci.WorkRuns && w != ci.WorkOutbox {
		return p, ci.Errorf(ci.CodeInvalid, "%q cannot be paused; name %s or %s", w, ci.WorkRuns, ci.WorkOutbox)
	}
	err = s.update(ctx, func(t *tx) (err error) {
		if err := change(t); err != nil {
			return err
		}
		p, err = t.pauses()
		return err
	})
	return p, err
}

func (t *tx) pause(w ci.Work, by ci.By, reason string) error {
	if t.paused(w) {
		return nil
	}
	if err := t.put(bucketMeta, pauseKey(w), mustJSON(ci.Pause{Since: ci.At(t.now), By: by, Reason: reason})); err != nil {
		return err
	}
	return t.decide(ci.Decision{Kind: ci.DecisionPaused, By: by, Reason: said(w, "are held back", reason)})
}

// said makes a decision's sentence: what it is about, and why if that was said.
func said(w ci.Work, what, reason string) string {
	text := "runs " + what
	if w == ci.WorkOutbox {
		text = "notifications " + what
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

func (t *tx) paused(w ci.Work) bool { return t.get(bucketMeta, pauseKey(w)) != nil }

func (t *tx) pauses() (p ci.Pauses, err error) {
	for w, to := range map[ci.Work]**ci.Pause{ci.WorkRuns: &p.Runs, ci.WorkOutbox: &p.Outbox} {
		v := t.get(bucketMeta, pauseKey(w))
		if v == nil {
			continue
		}
		pause, err := decodeJSON[ci.Pause]("pause", v)
		if err != nil {
			return p, err
		}
		*to = &pause
	}
	return p, nil
}
