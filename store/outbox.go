package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"docket/store/ci"
)

// entryPrefix begins the id of every entry that this store makes. It differs
// from store to store, so that a receiver that has seen one store's message
// never takes another's for it.
func (s *Store) entryPrefix() string { return "msg_" + s.instance + "_" }

// entrySeq reads the number at the end of an entry's id.
func entrySeq(id string) (uint64, error) {
	if i := strings.LastIndexByte(id, '_'); i > 0 && strings.HasPrefix(id, "msg_") {
		if seq, err := strconv.ParseUint(id[i+1:], 10, 64); err == nil && seq > 0 {
			return seq, nil
		}
	}
	return 0, noEntry(id)
}

func noEntry(id string) error {
	return ci.Errorf(ci.CodeNotFound, "no notification %q; `docket outbox list` shows those there are", id)
}

// entryAt reads an entry as it is kept: its payload is not presented, and its
// id has its number.
func (t *tx) entryAt(seq uint64) (e ci.OutboxEntry, err error) {
	v := t.get(bucketOutbox, be64(seq))
	if v == nil {
		return e, fmt.Errorf("outbox entry %d is missing", seq)
	}
	return decodeEntry(seq, v)
}

func decodeEntry(seq uint64, v []byte) (e ci.OutboxEntry, err error) {
	h, err := decodeEntryHead(v)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(h.body, &e); err != nil {
		return e, fmt.Errorf("outbox entry %d: %w", seq, err)
	}
	e.State, e.Run = h.state, h.run
	e.ID += strconv.FormatUint(seq, 10)
	return e, nil
}

func (t *tx) entryByID(id string) (e ci.OutboxEntry, seq uint64, err error) {
	if seq, err = entrySeq(id); err != nil {
		return e, 0, err
	}
	v := t.get(bucketOutbox, be64(seq))
	if v == nil {
		return e, 0, noEntry(id)
	}
	if e, err = decodeEntry(seq, v); err == nil && e.ID != id {
		err = noEntry(id)
	}
	return e, seq, err
}

// putEntry writes an entry back.
func (t *tx) putEntry(e *ci.OutboxEntry, seq uint64) error {
	kept := *e
	kept.ID = strings.TrimSuffix(e.ID, strconv.FormatUint(seq, 10))
	return t.put(bucketOutbox, be64(seq), encodeEntry(e.State, e.Run, holdOf(e), entryJSON(&kept)))
}

// finishEntry takes a pending entry to its end.
func (t *tx) finishEntry(e *ci.OutboxEntry, seq uint64, state ci.OutboxState, why string) error {
	if err := t.dequeue(e, seq, state == ci.OutboxDead); err != nil {
		return err
	}
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	if state == ci.OutboxSent {
		l.sent = saying(e)
	} else if e.Attempts > 0 {
		l.sent = 0 // it may have arrived all the same
	}
	e.State, e.LastError, e.FinishedAt, e.NextAttemptAt = state, why, ci.At(t.now), ci.Time{}
	if state == ci.OutboxDead {
		if err := t.put(bucketDead, be64(seq), nil); err != nil {
			return err
		}
	}
	t.noteEntry(e, NoTry, AttemptResult{})
	return t.putEntry(e, seq)
}

// skipEntry ends an entry that something newer made wrong to send, on record.
func (t *tx) skipEntry(e *ci.OutboxEntry, seq uint64, by, why string) error {
	if err := t.finishEntry(e, seq, ci.OutboxSkipped, why); err != nil {
		return err
	}
	d := ci.Decision{
		Kind: ci.DecisionSkipped, Run: e.Run, Entry: e.ID,
		By: ci.By{Kind: ci.ByDispatcher, Name: "outbox"}, Reason: why,
	}
	if by != e.Run {
		d.OtherRun = by
	}
	return t.decide(d)
}

// Entry returns an outbox entry, or CodeNotFound.
func (s *Store) Entry(id string) (e ci.OutboxEntry, err error) {
	err = s.view(func(t *tx) error {
		if e, _, err = t.entryByID(id); err != nil {
			return err
		}
		return s.present(&e)
	})
	return e, err
}

// Entries lists outbox entries, newest first; state "" means all.
func (s *Store) Entries(state ci.OutboxState, p Page) (list []ci.OutboxEntry, next string, err error) {
	list = []ci.OutboxEntry{}
	limit, before, err := p.read()
	if err != nil {
		return nil, "", err
	}
	bucket := bucketOutbox
	if state == ci.OutboxDead {
		bucket = bucketDead
	}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucket).Cursor()
		var from []byte
		if before > 0 {
			from = be64(before)
		}
		k, _ := lastBefore(c, nil, from)
		for looked := 0; k != nil; k, _ = c.Prev() {
			if looked++; len(list) == limit || looked > maxLooked {
				next = cursor(before)
				return nil
			}
			before = fromBE64(k)
			v := t.get(bucketOutbox, k)
			if state != "" && (len(v) == 0 || v[0] != outboxLetters[state]) {
				continue
			}
			e, err := decodeEntry(before, v)
			if err != nil {
				return err
			}
			if err := s.present(&e); err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, next, err
}

// DueEntries returns, for up to limit lanes, the first entry of each that may
// be sent at now, and when the next one will be due (zero: none waits). It
// leaves out lanes that a hold keeps waiting; while the outbox is paused, all.
func (s *Store) DueEntries(now time.Time, limit int) (due []ci.OutboxEntry, next time.Time, err error) {
	err = s.view(func(t *tx) error {
		if t.paused(ci.WorkOutbox) {
			return nil
		}
		holds, err := t.holds(now)
		if err != nil {
			return err
		}
		sooner := func(at time.Time) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		c := t.bucket(bucketDue).Cursor()
		for k, _ := c.First(); len(k) == 16 && len(due) < limit; k, _ = c.Next() {
			when, seq := binary.BigEndian.Uint64(k), fromBE64(k[8:])
			if when == parked {
				break
			}
			if at := time.UnixMilli(int64(when)); at.After(now) {
				sooner(at)
				break
			}
			v := t.get(bucketOutbox, be64(seq))
			h, err := decodeEntryHead(v)
			if err != nil {
				return err
			}
			if hold, ok := holds[h.hold]; ok {
				sooner(hold.Until.Time)
				continue
			}
			e, err := decodeEntry(seq, v)
			if err != nil {
				return err
			}
			if err := s.present(&e); err != nil {
				return err
			}
			due = append(due, e)
		}
		return nil
	})
	return due, next, err
}

// BeginAttempt records that an entry is about to be sent, attempt + 1. ok is
// false if it is not to be sent after all: not pending any more, not first in
// its lane, the outbox paused, or just skipped because something newer speaks.
func (s *Store) BeginAttempt(ctx context.Context, id string) (e ci.OutboxEntry, ok bool, err error) {
	err = s.update(ctx, func(t *tx) error {
		ok = false
		var seq uint64
		if e, seq, err = t.entryByID(id); err != nil {
			return err
		}
		if e.State != ci.OutboxPending || t.paused(ci.WorkOutbox) {
			return nil
		}
		l, err := t.lane(e.Lane)
		if err != nil {
			return err
		}
		if len(l.queue) == 0 || l.queue[0] != seq {
			return nil
		}
		by, why, err := t.stale(&e, l)
		if err != nil {
			return err
		}
		if why != "" {
			return t.skipEntry(&e, seq, by, why)
		}
		if unfinished(&e) {
			t.noteEntry(&e, TryLost, AttemptResult{})
		}
		e.Attempts++
		e.AttemptedAt = ci.At(t.now)
		if e.FirstAttemptAt.IsZero() {
			e.FirstAttemptAt = e.AttemptedAt
		}
		ok = true
		return t.putEntry(&e, seq)
	})
	if err == nil && ok {
		err = s.present(&e)
	}
	return e, ok, err
}

// saying stands for what a status shows at the provider: two of one run with
// the same text are equal. 0 for what is no status.
func saying(e *ci.OutboxEntry) uint64 {
	if !ci.IsStatus(e.Kind) {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(e.Run))
	h.Write([]byte{0})
	h.Write(e.Payload)
	return h.Sum64() | 1
}

// stale says why an entry must not be sent any more, and because of which
// run: among runs of one commit and context only the newest speaks, and what
// is not final never follows what is.
func (t *tx) stale(e *ci.OutboxEntry, l *lane) (by, why string, err error) {
	if ci.IsStatus(e.Kind) && l.run != "" && l.run != e.Run {
		if outlives, err := t.outlives(e); err != nil || outlives {
			return "", "", err
		}
		return l.run, "run " + l.run + " of the same commit is newer and speaks for it", nil
	}
	if said := saying(e); said != 0 && said == l.sent {
		return e.Run, "the status that was sent before it says the same", nil
	}
	if e.Final || !ci.IsStatus(e.Kind) && !e.Retried {
		return "", "", nil
	}
	r, err := t.run(e.Run)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return e.Run, "run " + e.Run + " is not on record any more", nil
	}
	if err != nil {
		return "", "", err
	}
	if r.State.Final() {
		return e.Run, "run " + e.Run + " has ended, and its final state was queued", nil
	}
	return "", "", nil
}

// AttemptResult is what came of an attempt.
type AttemptResult struct {
	State  ci.OutboxState // sent, dead, skipped, or pending for another try
	Error  string         // for people; "" when sent
	NextAt time.Time      // of another try
	Status int            // the answer's HTTP status, 0 for none; told, and not kept
}

// FinishAttempt records what came of the attempt that BeginAttempt counted. A
// result of any other attempt, or of an entry that has ended, changes nothing.
func (s *Store) FinishAttempt(ctx context.Context, id string, attempt int, res AttemptResult) error {
	return s.update(ctx, func(t *tx) error {
		e, seq, err := t.entryByID(id)
		if err != nil {
			return err
		}
		if e.State != ci.OutboxPending || e.Attempts != attempt {
			return nil
		}
		noteTry(&e, res)
		t.noteEntry(&e, TryOver, res)
		if res.State != ci.OutboxPending {
			return t.finishEntry(&e, seq, res.State, res.Error)
		}
		e.Failures++
		return t.reschedule(&e, seq, ci.At(res.NextAt), res.Error)
	})
}

// noteTry remembers how an attempt ended.
func noteTry(e *ci.OutboxEntry, res AttemptResult) {
	answer := res.Error
	if answer == "" {
		answer = string(res.State)
	}
	e.Tries = append(e.Tries, ci.Try{At: e.AttemptedAt, Answer: answer})
	if n := len(e.Tries); n > ci.MaxTries {
		e.Tries = e.Tries[n-ci.MaxTries:]
	}
}

// reschedule gives a pending entry another time.
func (t *tx) reschedule(e *ci.OutboxEntry, seq uint64, at ci.Time, why string) error {
	l, err := t.lane(e.Lane)
	if err != nil {
		return err
	}
	if err := t.delete(bucketDue, dueKey(l.queue, seq, e.NextAttemptAt)); err != nil {
		return err
	}
	e.NextAttemptAt, e.LastError = at, why
	if err := t.put(bucketDue, dueKey(l.queue, seq, at), nil); err != nil {
		return err
	}
	t.wake(TopicOutbox)
	return t.putEntry(e, seq)
}

// HoldInfo is one hold in force.
type HoldInfo struct {
	Until  ci.Time `json:"until"`
	Reason string  `json:"reason"`
}

// Hold keeps every lane of a key (an integration's name or a target) waiting
// until a time, across restarts. A hold is never shortened.
func (s *Store) Hold(ctx context.Context, key string, until time.Time, reason string) error {
	return s.update(ctx, func(t *tx) error {
		if v := t.get(bucketHolds, []byte(key)); v != nil {
			h, err := decodeJSON[HoldInfo]("hold", v)
			if err != nil {
				return err
			}
			if h.Until.After(until) && !h.Until.After(t.now.Add(maxDueWait)) {
				return nil
			}
		}
		t.wake(TopicOutbox)
		return t.put(bucketHolds, []byte(key), mustJSON(HoldInfo{ci.At(until), reason}))
	})
}

// Holds returns the holds in force at now, by key.
func (s *Store) Holds(now time.Time) (m map[string]HoldInfo, err error) {
	err = s.view(func(t *tx) error {
		m, err = t.holds(now)
		return err
	})
	return m, err
}

func (t *tx) holds(now time.Time) (map[string]HoldInfo, error) {
	m := map[string]HoldInfo{}
	c := t.bucket(bucketHolds).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		h, err := decodeJSON[HoldInfo]("hold", v)
		if err != nil {
			return nil, err
		}
		if h.Until.After(now) && !h.Until.After(now.Add(maxDueWait)) {
			m[string(k)] = h
		}
	}
	return m, nil
}
