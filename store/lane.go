package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"docket/store/ci"
)

// A lane is what must be told in order, one thing at a time: the status of
// one commit under one context, or what one target hears of one run. Its
// record exists while there is anything to tell or anyone who might.
type lane struct {
	// speaker is the newest run that shares the lane; only it is listened to.
	// Its order of creation, 0 for a skipped one, and its id.
	speaker uint64
	run     string
	// users counts runs that have not ended and entries that are pending or
	// dead. At none the record goes: a later run is newer in any case.
	users uint32
	// sent stands for the status that was sent last, 0 for none or where it is
	// not known which one arrived last (see saying).
	sent uint64
	// queue holds the pending entries in order.
	queue []uint64

	changed bool
}

// parked stands for the time at which an entry behind its lane's first is due.
const parked = ^uint64(0)

func statusLane(integration, repository, commit, context string) string {
	return integration + "/" + repository + "@" + commit + "/" + context
}

func targetLane(kind, target, run string) string { return kind + " " + target + " " + run }

// lane returns a lane's record for reading and changing. A changed one is
// marked with touchLane and written back once, when the closure ends.
func (t *tx) lane(name string) (*lane, error) {
	if l, ok := t.lanes[name]; ok {
		return l, nil
	}
	l, err := decodeLane(t.get(bucketLanes, []byte(name)))
	if err != nil {
		return nil, err
	}
	if t.lanes == nil {
		t.lanes = map[string]*lane{}
	}
	t.lanes[name] = l
	return l, nil
}

func decodeLane(v []byte) (*lane, error) {
	l := &lane{}
	if v == nil {
		return l, nil
	}
	if len(v) < 14 {
		return l, errLane
	}
	l.speaker, l.users = fromBE64(v), binary.BigEndian.Uint32(v[8:])
	n := int(binary.BigEndian.Uint16(v[12:]))
	v = v[14:]
	if l.users&laneSent != 0 {
		if len(v) < 8 {
			return l, errLane
		}
		l.users &^= laneSent
		l.sent, v = fromBE64(v), v[8:]
	}
	if len(v) < n || (len(v)-n)%8 != 0 {
		return l, errLane
	}
	l.run, v = string(v[:n]), v[n:]
	for ; len(v) > 0; v = v[8:] {
		l.queue = append(l.queue, fromBE64(v))
	}
	return l, nil
}

// laneSent is set in the number of users where the record has a sent status.
const laneSent = 1 << 31

var errLane = errors.New("lane record is cut short")

func (t *tx) touchLane(l *lane) {
	t.wrote, l.changed = true, true
}

// flushLanes writes the closure's changed lanes; one without users goes.
func (t *tx) flushLanes() error {
	for name, l := range t.lanes {
		if !l.changed {
			continue
		}
		l.changed = false
		key := []byte(name)
		if l.users == 0 {
			if err := t.delete(bucketLanes, key); err != nil {
				return err
			}
			continue
		}
		if err := t.put(bucketLanes, key, l.encode()); err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) encode() []byte {
	b := make([]byte, 0, 22+len(l.run)+8*len(l.queue))
	b = binary.BigEndian.AppendUint64(b, l.speaker)
	users := l.users
	if l.sent != 0 {
		users |= laneSent
	}
	b = binary.BigEndian.AppendUint32(b, users)
	b = binary.BigEndian.AppendUint16(b, uint16(len(l.run)))
	if l.sent != 0 {
		b = binary.BigEndian.AppendUint64(b, l.sent)
	}
	b = append(b, l.run...)
	for _, seq := range l.queue {
		b = binary.BigEndian.AppendUint64(b, seq)
	}
	return b
}

// runLane is the lane of a run's commit status; ok is false if it has none, or
// none yet: a run that a filter may still stop says nothing and silences nobody.
func runLane(r *ci.Run, spec *ci.Spec) (name string, ok bool) {
	if !spec.Report || r.Source.Commit == "" || r.Undecided() || r.Internal.Silent {
		return "", false
	}
	return statusLane(r.Internal.Integration, r.Source.Repository, r.Source.Commit, r.Internal.Context), true
}

// joinLane makes a run the speaker of its commit and context, once its commit
// is known.
func (t *tx) joinLane(r *ci.Run, spec *ci.Spec) error {
	name, ok := runLane(r, spec)
	if !ok {
		return nil
	}
	l, err := t.lane(name)
	if err != nil {
		return err
	}
	switch {
	case r.Internal.Skip: // it speaks where nobody does, and every other run before it
		if l.run == "" {
			l.run = r.ID
		}
	case r.Internal.Seq > l.speaker:
		l.speaker, l.run = r.Internal.Seq, r.ID
	}
	l.users++
	t.touchLane(l)
	return nil
}

// joinLaneLate is joinLane for a run that was made before it had a lane.
func (t *tx) joinLaneLate(r *ci.Run, spec *ci.Spec) error {
	if err := t.joinLane(r, spec); err != nil {
		return err
	}
	return t.joinLate(r, spec)
}

// handOver gives the lane of a run that gave way to the run that it gave way
// to, if that one shares it though it is older: the commit was pushed again, and
// it is the older run's result that stands. Where it has ended, its end is told
// again: the younger one may have been heard in between.
func (t *tx) handOver(r *ci.Run, spec *ci.Spec) error {
	name, ok := runLane(r, spec)
	if !ok || r.SupersededBy == "" {
		return nil
	}
	by, err := t.run(r.SupersededBy)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	bySpec, err := t.spec(by.Spec)
	if err != nil {
		return err
	}
	l, err := t.lane(name)
	if err != nil {
		return err
	}
	if lane, ok := runLane(&by, bySpec); !ok || lane != name || l.run != r.ID {
		return nil
	}
	l.speaker, l.run = by.Internal.Seq, by.ID
	t.touchLane(l)
	if by.State.Final() {
		return t.announceStatus(&by, bySpec)
	}
	return nil
}

// changeLane follows a run that leaves the state Preparing into the lane that
// it has now, from the one that it had, if any.
func (t *tx) changeLane(r *ci.Run, spec *ci.Spec, had string, wasIn bool) error {
	name, isIn := runLane(r, spec)
	switch {
	case isIn && !wasIn:
		return t.joinLaneLate(r, spec)
	case wasIn && !isIn:
		return t.leave(had)
	case wasIn && had != name:
		return ci.Errorf(ci.CodeInternal, "run %s would change its lane", r.ID)
	}
	return nil
}

// joinLate makes up for a commit that became known only now: a newer run of
// the same commit and context may have come and ended meanwhile, and the
// lane's record gone with it. It is that one's result that stands. The cost
// depends on how many runs of the project are newer.
func (t *tx) joinLate(r *ci.Run, spec *ci.Spec) error {
	name, ok := runLane(r, spec)
	if !ok {
		return nil
	}
	prefix := projectPrefix(r.Project)
	c := t.bucket(bucketRuns).Cursor()
	own := runKey(r.Project, r.Number)
	for k, v := last(c, prefix); bytes.Compare(k, own) > 0; k, v = c.Prev() {
		if !bytes.Contains(v, []byte(r.Source.Commit)) {
			continue
		}
		other, err := decodeRun(k, v)
		if err != nil {
			return err
		}
		if other.Internal.Skip || other.SupersededBy == r.ID {
			continue // this run speaks before it
		}
		spec, err := t.spec(other.Spec)
		if err != nil {
			return err
		}
		if lane, ok := runLane(&other, spec); !ok || lane != name {
			continue
		}
		l, err := t.lane(name)
		if err != nil || l.speaker >= other.Internal.Seq {
			return err
		}
		l.speaker, l.run = other.Internal.Seq, other.ID
		t.touchLane(l)
		return nil
	}
	return nil
}

// leaveLane lets go of the lane of a run that has ended.
func (t *tx) leaveLane(r *ci.Run, spec *ci.Spec) error {
	name, ok := runLane(r, spec)
	if !ok {
		return nil
	}
	return t.leave(name)
}

func (t *tx) leave(name string) error {
	l, err := t.lane(name)
	if err != nil {
		return err
	}
	l.users--
	t.touchLane(l)
	return nil
}

// dueKey is where a pending entry waits: for its time if it is the first of
// its lane, else parked.
func dueKey(queue []uint64, seq uint64, at ci.Time) []byte {
	when := parked
	if len(queue) > 0 && queue[0] == seq {
		when = dueTime(at.Time)
	}
	return binary.BigEndian.AppendUint64(be64(when), seq)
}

func dueTime(at time.Time) uint64 {
	if at.IsZero() || at.UnixMilli() < 0 {
		return 0
	}
	return uint64(at.UnixMilli())
}

// enqueue puts an entry into its lane, in order of its sequence.
func (t *tx) enqueue(e *ci.OutboxEntry, seq uint64) error {
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	old := slices.Clone(l.queue)
	i, _ := slices.BinarySearch(l.queue, seq)
	l.queue = slices.Insert(l.queue, i, seq)
	l.users++
	if i == 0 && len(old) > 0 { // it goes before the one that was first
		if err := t.repark(old, l.queue, old[0]); err != nil {
			return err
		}
	}
	t.touchLane(l)
	t.wake(TopicOutbox)
	return t.put(bucketDue, dueKey(l.queue, seq, e.NextAttemptAt), nil)
}

// dequeue takes an entry that is not pending any more out of its lane; the
// next one becomes due. Dead ones go on to count as users.
func (t *tx) dequeue(e *ci.OutboxEntry, seq uint64, dead bool) error {
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	if err := t.delete(bucketDue, dueKey(l.queue, seq, e.NextAttemptAt)); err != nil {
		return err
	}
	i, ok := slices.BinarySearch(l.queue, seq)
	if !ok {
		return errLane
	}
	old := slices.Clone(l.queue)
	l.queue = slices.Delete(l.queue, i, i+1)
	if i == 0 && len(l.queue) > 0 {
		if err := t.repark(old, l.queue, l.queue[0]); err != nil {
			return err
		}
	}
	if !dead {
		l.users--
	}
	t.touchLane(l)
	t.wake(TopicOutbox)
	return nil
}

// repark moves an entry's due key from its place in one state of the lane to
// its place in another.
func (t *tx) repark(from, to []uint64, seq uint64) error {
	e, err := t.entryAt(seq)
	if err != nil {
		return err
	}
	if err := t.delete(bucketDue, dueKey(from, seq, e.NextAttemptAt)); err != nil {
		return err
	}
	return t.put(bucketDue, dueKey(to, seq, e.NextAttemptAt), nil)
}
