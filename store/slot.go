package store

import (
	"bytes"
	"context"

	"docket/store/ci"
)

// SlotKey names a schedule's record.
type SlotKey struct {
	Project string
	Key     string // ci.Schedule.Key
}

func (k SlotKey) dbKey() []byte { return append(projectPrefix(k.Project), k.Key...) }

// Slots returns how far each schedule has come, those that the configuration
// has no more included; project "" means all projects.
func (s *Store) Slots(project string) (map[SlotKey]ci.SlotRecord, error) {
	m := map[SlotKey]ci.SlotRecord{}
	var prefix []byte
	if project != "" {
		prefix = projectPrefix(project)
	}
	err := s.view(func(t *tx) error {
		table := t.bucket(bucketSlots)
		if table == nil {
			return nil // a store from before there were schedules, opened for reading
		}
		c := table.Cursor()
		for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			rec, err := decodeJSON[ci.SlotRecord]("slot", v)
			if err != nil {
				return err
			}
			key, _ := splitSlotKey(k)
			m[key] = rec
		}
		return nil
	})
	return m, err
}

func splitSlotKey(k []byte) (key SlotKey, ok bool) {
	project, digest, ok := bytes.Cut(k, []byte{0})
	return SlotKey{Project: string(project), Key: string(digest)}, ok
}

// Settlement is what is decided about a schedule: a slot runs, is left out,
// or the schedule is seen for the first time or is gone.
type Settlement struct {
	SlotKey
	// Before is the record that the decision was made from; nil for none.
	Before *ci.SlotRecord
	// After takes its place; nil forgets the schedule.
	After *ci.SlotRecord
	// Draft is the run of the slot that After settles; nil for none.
	Draft *ci.Draft
	// Reason says why slots were left out, for the record; "" for none.
	Reason string
}

// Settle writes a decision about a schedule, and with it the slot's run: both
// or neither. done is false, and nothing happens, where the record is not the
// one that the decision was made from: whatever was decided there counts.
func (s *Store) Settle(ctx context.Context, st Settlement) (run ci.Run, done bool, err error) {
	var n *newRun
	if st.Draft != nil {
		n = s.prepareRun(st.Draft, &st.Draft.Spec, st.Draft.Spec.Digest(), ci.At(s.now()))
	}
	var before []byte
	if st.Before != nil {
		before = mustJSON(st.Before)
	}
	err = s.update(ctx, func(t *tx) error {
		run, done = ci.Run{}, false
		if !bytes.Equal(t.get(bucketSlots, st.dbKey()), before) {
			return nil
		}
		done = true
		return t.settle(&run, st, n)
	})
	return run, done, err
}

func (t *tx) settle(run *ci.Run, st Settlement, n *newRun) (err error) {
	if st.After == nil {
		return t.delete(bucketSlots, st.dbKey())
	}
	after := *st.After
	if n != nil {
		if *run, err = t.createRun(n); err != nil {
			return err
		}
		after.Run = run.ID
	}
	if err := t.put(bucketSlots, st.dbKey(), mustJSON(after)); err != nil {
		return err
	}
	if st.Reason == "" {
		return nil
	}
	return t.decide(ci.Decision{
		Kind: ci.DecisionScheduled, Project: st.Project, Run: run.ID,
		By: ci.By{Kind: ci.ByScheduler, Name: "schedule"}, Reason: st.Reason,
	})
}

// slots checks the schedules' records and that no slot has two runs.
func (v *verifier) slots() error {
	if v.t.bucket(bucketSlots) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketSlots, func(k, val []byte) error {
		key, ok := splitSlotKey(k)
		rec, err := decodeJSON[ci.SlotRecord]("slot", val)
		switch {
		case !ok || key.Project == "" || err != nil:
			v.broken("slots: %q: %v", k, err)
			return nil
		case rec.Schedule.Key() != key.Key:
			v.broken("slots: %q is filed under another schedule than its own", k)
		case !rec.Valid():
			v.broken("slots: schedule %s of %s is settled by %v", rec.Schedule.Cron, key.Project, rec.Spans)
		}
		if rec.Run == "" {
			return nil
		}
		r, err := v.t.run(rec.Run)
		if err != nil && !v.pruned(rec.Run) {
			v.broken("slots: schedule %s of %s: run %s: %v", rec.Schedule.Cron, key.Project, rec.Run, err)
		}
		if err == nil && (r.Project != key.Project || r.Cause.Kind != ci.CauseSchedule || r.Internal.Schedule != key.Key) {
			v.broken("slots: schedule %s of %s: run %s is not its own", rec.Schedule.Cron, key.Project, rec.Run)
		}
		return nil
	})
}

// slotOf checks that a scheduled run's slot is its own alone.
func (v *verifier) slotOf(r *ci.Run) {
	id := r.Project + "\x00" + r.Internal.Schedule + "\x00" + r.Cause.Slot
	if other, twice := v.slotRuns[id]; twice {
		v.broken("run %s: its slot %s has run %s already", r.ID, r.Cause.Slot, other)
	}
	v.slotRuns[id] = r.ID
}
