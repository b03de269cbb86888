package store

import (
	"encoding/binary"

	"docket/store/ci"
)

// Of the runs of one concurrency group one runs at a time, and those that are
// queued have their turn in the order in which they were made, over all
// projects. The groups bucket says who runs, and whose turn it is:
//
//	group, 'h'      -> the run that holds the group: it runs
//	group, 'w', seq -> a run that is queued
//
// Both change in the write that changes the run's state. The key of a queued
// run in the states bucket has its group in the value, so that claiming passes
// over those whose turn it is not without reading them.
const (
	groupHolder = 'h'
	groupWaits  = 'w'
)

func groupKey(group string, kind byte) []byte {
	k := make([]byte, 0, 3+len(group)+8)
	k = binary.BigEndian.AppendUint16(k, uint16(len(group)))
	k = append(k, group...)
	return append(k, kind)
}

func groupTurnKey(group string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(groupKey(group, groupWaits), seq)
}

// stateValue is what a run's key in the states bucket has: its order of
// creation, and its group while it is queued.
func stateValue(r *ci.Run) []byte {
	v := be64(r.Internal.Seq)
	if r.State == ci.Queued {
		v = append(v, r.Internal.Group...)
	}
	return v
}

// changeGroup keeps a run's place in its group as it goes from one state, ""
// for a new run, to the one that it has now.
func (t *tx) changeGroup(r *ci.Run, from ci.State) error {
	group := r.Internal.Group
	if group == "" {
		return nil
	}
	for state, key := range map[ci.State][]byte{
		ci.Queued: groupTurnKey(group, r.Internal.Seq), ci.Running: groupKey(group, groupHolder),
	} {
		var err error
		switch state {
		case r.State:
			err = t.put(bucketGroups, key, runKey(r.Project, r.Number))
		case from:
			err = t.delete(bucketGroups, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turn returns who is next in a group or has it: held says which.
func (t *tx) turn(group string) (seq uint64, run []byte, held bool) {
	if v := t.get(bucketGroups, groupKey(group, groupHolder)); v != nil {
		return 0, v, true
	}
	prefix := groupKey(group, groupWaits)
	k, v := t.bucket(bucketGroups).Cursor().Seek(prefix)
	if len(k) != len(prefix)+8 || string(k[:len(prefix)]) != string(prefix) {
		return 0, nil, false
	}
	return fromBE64(k[len(prefix):]), v, false
}

// turns remembers during one choice whose turn it is in each group.
type turns struct {
	t    *tx
	next map[string]uint64 // 0: nobody's, one of it runs
}

// mayRun reports whether it is the turn of a queued run, by its value in the
// states bucket.
func (u *turns) mayRun(state []byte) bool {
	if len(state) <= 8 {
		return true
	}
	group := string(state[8:])
	next, ok := u.next[group]
	if !ok {
		next, _, _ = u.t.turn(group)
		if u.next == nil {
			u.next = map[string]uint64{}
		}
		u.next[group] = next
	}
	return next == fromBE64(state)
}

// showWaiting fills in what a run waits for.
func (t *tx) showWaiting(r *ci.Run) {
	if r.State != ci.Queued || r.Internal.Group == "" {
		return
	}
	_, key, _ := t.turn(r.Internal.Group)
	project, number, ok := splitRunKey(key)
	if id := ci.RunID(project, number); ok && id != r.ID {
		r.WaitingFor = &ci.Waiting{Group: r.Internal.Group, Run: id}
	}
}

// groups ensures that each group is held by a run of it that runs, and that
// those that are queued have their turn.
func (v *verifier) groups() error {
	if v.t.bucket(bucketGroups) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketGroups, func(k, val []byte) error {
		n := 0
		if len(k) >= 2 {
			n = 2 + int(binary.BigEndian.Uint16(k))
		}
		r, err := decodeRun(val, v.t.get(bucketRuns, val))
		if len(k) <= n || err != nil || r.Internal.Group != string(k[2:n]) {
			v.broken("groups: %q belongs to no run of the group: %v", k, err)
			return nil
		}
		switch kind := k[n]; {
		case kind == groupHolder && len(k) == n+1 && r.State == ci.Running:
		case kind == groupWaits && len(k) == n+9 && r.State == ci.Queued && fromBE64(k[n+1:]) == r.Internal.Seq:
		default:
			v.broken("groups: run %s of group %s is %s, and %q says otherwise", r.ID, r.Internal.Group, r.State, k[n:])
		}
		return nil
	})
}

// inGroup ensures that a run has its place in its group.
func (v *verifier) inGroup(r *ci.Run) {
	var key []byte
	switch r.State {
	case ci.Queued:
		key = groupTurnKey(r.Internal.Group, r.Internal.Seq)
	case ci.Running:
		key = groupKey(r.Internal.Group, groupHolder)
	}
	if key == nil || r.Internal.Group == "" {
		return
	}
	if got := v.t.get(bucketGroups, key); string(got) != string(runKey(r.Project, r.Number)) {
		v.broken("run %s: %s, and the place in its group %s has %q", r.ID, r.State, r.Internal.Group, got)
	}
	if got := v.t.get(bucketStates, stateKey(r.State, r.Project, r.Number)); string(got) != string(stateValue(r)) {
		v.broken("run %s: the index of states does not have its group %s", r.ID, r.Internal.Group)
	}
}
