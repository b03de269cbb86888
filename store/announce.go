package store

import (
	"encoding/json"
	"slices"

	"docket/store/ci"
)

// eventOf names what it means for the world that a run enters a state.
func eventOf(to ci.State) string {
	switch {
	case to == ci.Queued:
		return ci.RunQueued
	case to == ci.Running:
		return ci.RunStarted
	case to.Final():
		return ci.RunFinished
	}
	return ""
}

// announce puts into the outbox what is to be told of the state that a run
// has just entered, in the same write.
func (t *tx) announce(r *ci.Run, spec *ci.Spec, event string) error {
	if err := t.announceStatus(r, spec); err != nil {
		return err
	}
	return t.notify(r, spec, event)
}

// notify queues what the configured targets hear of it.
func (t *tx) notify(r *ci.Run, spec *ci.Spec, event string) error {
	if len(spec.Notify) == 0 || event == "" || r.Internal.Skip {
		return nil
	}
	events := []string{event}
	if event == ci.RunFinished {
		beside, err := t.besideFinished(r)
		if err != nil {
			return err
		}
		if beside != "" {
			events = append(events, beside)
		}
	}
	for _, target := range spec.Notify {
		for _, ev := range events {
			if !slices.Contains(target.Events, ev) {
				continue
			}
			if err := t.announceTo(target, r, ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// announceStatus queues the commit status of a run's state. Once a final one
// is queued, those that were never tried and only say "pending" are skipped.
func (t *tx) announceStatus(r *ci.Run, spec *ci.Spec) error {
	name, ok := runLane(r, spec)
	if !ok || r.State == ci.Preparing {
		return nil
	}
	state, text := statusOf(r)
	if r.State.Final() {
		if err := t.skipPending(name, r); err != nil {
			return err
		}
	}
	e := statusEntry(r, spec, name, state, text)
	return t.enter(e, holdOf(e))
}

// statusEntry makes the entry of a commit status. What depends on the run's
// number is filled in when it is entered or read.
func statusEntry(r *ci.Run, spec *ci.Spec, lane, state, text string) *ci.OutboxEntry {
	return &ci.OutboxEntry{
		Kind: spec.StatusKind(), Run: r.ID, Lane: lane,
		Target: r.Source.Repository + "@" + r.Source.Commit,
		Event:  state, Final: r.State.Final(),
		Integration: r.Internal.Integration, Installation: r.Internal.Installation,
		Payload: mustJSON(ci.StatusPayload{
			Project: r.Project, Repository: r.Source.Repository, Commit: r.Source.Commit,
			Context: r.Internal.Context, State: state, Description: text, RunState: r.State,
		}),
	}
}

// statusOf says a run's state in a provider's four words and one sentence,
// which the run's id is put before when it is read.
func statusOf(r *ci.Run) (state, text string) {
	why := r.ReasonLine()
	with := func(s string) string {
		if why != "" {
			return s + ": " + why
		}
		return s
	}
	if r.Internal.Skip {
		return "success", "was " + r.Reason
	}
	switch r.State {
	case ci.Held:
		return "pending", "waits for approval"
	case ci.Queued, ci.Preparing:
		return "pending", "is queued"
	case ci.Running:
		return "pending", "is running"
	case ci.Succeeded:
		return "success", "succeeded"
	case ci.Failed:
		if why != r.Reason { // the place of a mistake in a file; there is little room, and it says the rest
			return "failure", why
		}
		return "failure", with("failed")
	case ci.Superseded:
		if r.Reason != "" {
			return "error", "was " + r.Reason
		}
		return "error", "was superseded"
	case ci.Interrupted:
		return "error", with("was interrupted")
	default:
		return "error", with("was cancelled")
	}
}

// skipPending skips the entries of a lane that were never tried and do not
// tell a run's end, now that an end is known.
func (t *tx) skipPending(name string, by *ci.Run) error {
	l, err := t.lane(name)
	if err != nil {
		return err
	}
	for _, seq := range slices.Clone(l.queue) {
		e, err := t.entryAt(seq)
		if err != nil {
			return err
		}
		if e.Final || e.Attempts > 0 || e.Run != by.ID {
			continue
		}
		if err := t.skipEntry(&e, seq, by.ID, "run "+by.ID+" has ended, and its final status is queued"); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) announceTo(target ci.NotifyTarget, r *ci.Run, event string) error {
	run := r.Public()
	run.URL = "" // filled in when it is read, with the public URL of that day
	return t.enter(&ci.OutboxEntry{
		Kind: target.Kind, Run: r.ID, Lane: targetLane(target.Kind, target.Target, r.ID),
		Target: target.Target, Event: event, Final: r.State.Final(),
		Payload: mustJSON(ci.NotificationPayload{Type: event, Timestamp: ci.At(t.now), Data: run}),
	}, target.Target)
}

// besideFinished tells which event goes beside run.finished: the run failed,
// or it succeeded and the one before it on the same branch and context failed.
func (t *tx) besideFinished(r *ci.Run) (string, error) {
	switch r.State {
	case ci.Failed:
		return ci.RunFailed, nil
	case ci.Succeeded:
		kind, name, ok := refOf(r)
		if !ok {
			return "", nil
		}
		list, err := t.moves(r.Project, kind, name, func(m move) bool { return m.seq < r.Internal.Seq })
		if err != nil {
			return "", err
		}
		for i := len(list) - 1; i >= 0; i-- {
			switch runState(t.get(bucketRuns, runKey(r.Project, list[i].number))) {
			case ci.Failed:
				return ci.RunRecovered, nil
			case ci.Succeeded:
				return "", nil
			}
		}
	}
	return "", nil
}

// enter writes a new entry and puts it into its lane. hold is what a rate
// limit would hold it by.
func (t *tx) enter(e *ci.OutboxEntry, hold string) error {
	t.s.stamp(e, ci.At(t.now))
	return t.enterJSON(e, hold, entryJSON(e))
}

// stamp makes an entry a new one.
func (s *Store) stamp(e *ci.OutboxEntry, now ci.Time) {
	e.State, e.CreatedAt, e.NextAttemptAt = ci.OutboxPending, now, now
	e.ID = s.entryPrefix()
}

// enterJSON is enter for an entry whose record was made before.
func (t *tx) enterJSON(e *ci.OutboxEntry, hold string, body []byte) error {
	seq, err := t.next(bucketOutbox)
	if err != nil {
		return err
	}
	if err := t.put(bucketOutbox, be64(seq), encodeEntry(e.State, e.Run, hold, body)); err != nil {
		return err
	}
	if err := t.fileEntry(e.Run, seq); err != nil {
		return err
	}
	return t.enqueue(e, seq)
}

// present fills in what is only known when an entry is read: its id's number,
// and in its payload the run's page and, for a status, the run's name.
func (s *Store) present(e *ci.OutboxEntry) error {
	if len(e.Payload) == 0 {
		return nil
	}
	if ci.IsStatus(e.Kind) {
		var p ci.StatusPayload
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return err
		}
		p.Description, p.TargetURL = e.Run+" "+p.Description, s.runURL(e.Run)
		e.Payload = mustJSON(p)
		return nil
	}
	var p ci.NotificationPayload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return err
	}
	p.Data.URL = s.runURL(e.Run)
	e.Payload = mustJSON(p)
	return nil
}
