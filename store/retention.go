package store

import (
	"bytes"
	"context"
	"time"

	"docket/store/ci"
)

// metaPruned is where the last look through the idempotency keys ended.
var metaPruned = []byte("pruned")

// Pruned is what one call of Prune removed.
type Pruned struct {
	Runs                                   []string // their logs are the caller's to remove
	Receipts, Entries, Decisions, Requests int
}

// None reports whether nothing was left to remove.
func (p Pruned) None() bool {
	return len(p.Runs)+p.Receipts+p.Entries+p.Decisions+p.Requests == 0
}

// Prune removes what ended before a time, oldest first and at most limit of
// each kind, in one write: call it again and again, so that space is freed
// steadily. What is alive stays, and so does each project's newest run, which
// numbers are counted from. A delivery id is forgotten with its receipt: keep
// receipts longer than any provider redelivers.
func (s *Store) Prune(ctx context.Context, before time.Time, limit int) (p Pruned, err error) {
	err = s.update(ctx, func(t *tx) error {
		p = Pruned{}
		for _, part := range []func(time.Time, int, *Pruned) error{
			t.pruneRuns, t.pruneReceipts, t.pruneEntries, t.pruneDecisions, t.pruneRequests,
		} {
			if err := part(before, limit, &p); err != nil {
				return err
			}
		}
		return nil
	})
	return p, err
}

// maxPruneLook bounds how many keys one call passes over that have to stay, or
// that belong to others.
const maxPruneLook = 10_000

// oldest returns the first keys of a bucket whose records ended before a time.
// fn says when one ended, or that it has to stay. A record from the future was
// written while the clock was wrong: it is as old as the next one that was not.
func (t *tx) oldest(bucket int, prefix []byte, before time.Time, limit int, fn func(k, v []byte) (at ci.Time, stays bool, err error)) (keys [][]byte, err error) {
	c := t.bucket(bucket).Cursor()
	c.steps = maxPruneLook
	looked := 0
	var ahead [][]byte // from the future
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(keys)+len(ahead) < limit && looked < maxPruneLook; k, v = c.Next() {
		looked++
		at, stays, err := fn(k, v)
		switch {
		case err != nil:
			return nil, err
		case stays:
		case at.After(t.now):
			ahead = append(ahead, bytes.Clone(k))
		case !at.Before(before):
			return keys, nil
		default:
			keys = append(append(keys, ahead...), bytes.Clone(k))
			ahead = nil
		}
	}
	return keys, nil
}

func (t *tx) pruneRuns(before time.Time, limit int, p *Pruned) error {
	for _, project := range t.projects() {
		prefix := projectPrefix(project)
		newest, _ := last(t.bucket(bucketRuns).Cursor(), prefix)
		newest = bytes.Clone(newest)
		keys, err := t.oldest(bucketRuns, prefix, before, limit-len(p.Runs), func(k, v []byte) (at ci.Time, stays bool, err error) {
			if bytes.Equal(k, newest) || !runState(v).Final() {
				return at, true, nil
			}
			r, err := decodeRun(k, v)
			return r.FinishedAt, false, err
		})
		if err != nil {
			return err
		}
		for _, key := range keys {
			r, err := decodeRun(key, t.get(bucketRuns, key))
			if err != nil {
				return err
			}
			if err := t.removeRun(&r); err != nil {
				return err
			}
			p.Runs = append(p.Runs, r.ID)
		}
	}
	return nil
}

func (t *tx) removeRun(r *ci.Run) error {
	type place struct {
		bucket int
		key    []byte
	}
	places := []place{
		{bucketRuns, runKey(r.Project, r.Number)},
		{bucketStates, stateKey(r.State, r.Project, r.Number)},
		{bucketChecks, runKey(r.Project, r.Number)},
	}
	for _, key := range refKeys(r) {
		places = append(places, place{bucketRefs, key})
	}
	if key := commitKey(r); fromBE64(t.get(bucketCommits, key)) == r.Number {
		places = append(places, place{bucketCommits, key})
	}
	if kind, ok := filedKind(r); ok {
		places = append(places, place{bucketKinds, kindKey(r.Project, kind, r.Number)})
	}
	if key := forkKey(r.Project, r.Source.Commit); r.Fork && string(t.get(bucketForks, key)) == r.ID {
		places = append(places, place{bucketForks, key})
	}
	for _, x := range places {
		if err := t.delete(x.bucket, x.key); err != nil {
			return err
		}
	}
	return t.forgetIgnored(r)
}

func (t *tx) pruneReceipts(before time.Time, limit int, p *Pruned) error {
	keys, err := t.oldest(bucketReceipts, nil, before, limit, func(_, v []byte) (ci.Time, bool, error) {
		r, err := decodeReceipt(v)
		return r.ReceivedAt, err == nil && t.anyRun(r.Runs), err
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		r, err := decodeReceipt(t.get(bucketReceipts, key))
		if err != nil {
			return err
		}
		if err := t.removeReceipt(key, &r); err != nil {
			return err
		}
		p.Receipts++
	}
	return nil
}

// anyRun reports whether one of the runs is on record.
func (t *tx) anyRun(ids []string) bool {
	for _, id := range ids {
		if _, err := t.run(id); err == nil {
			return true
		}
	}
	return false
}

func (t *tx) removeReceipt(key []byte, r *ci.Receipt) error {
	if digest := digestKey(r.PushedAt, r.BodySHA256); bytes.Equal(t.get(bucketDigests, digest), key) {
		if err := t.delete(bucketDigests, digest); err != nil {
			return err
		}
	}
	if err := t.delete(bucketIdentities, identityKey(r.ReceiptID())); err != nil {
		return err
	}
	if err := t.delete(bucketBodies, key); err != nil {
		return err
	}
	return t.delete(bucketReceipts, key)
}

func (t *tx) pruneEntries(before time.Time, limit int, p *Pruned) error {
	keys, err := t.oldest(bucketOutbox, nil, before, limit, func(k, v []byte) (at ci.Time, stays bool, err error) {
		if len(v) > 0 && v[0] != outboxLetters[ci.OutboxSent] && v[0] != outboxLetters[ci.OutboxSkipped] {
			return at, true, nil
		}
		e, err := decodeEntry(fromBE64(k), v)
		return e.FinishedAt, false, err
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		e, err := t.entryAt(fromBE64(key))
		if err != nil {
			return err
		}
		if err := t.unfileEntry(e.Run, fromBE64(key)); err != nil {
			return err
		}
	}
	p.Entries = len(keys)
	return t.deleteAll(bucketOutbox, keys)
}

func (t *tx) pruneDecisions(before time.Time, limit int, p *Pruned) error {
	keys, err := t.oldest(bucketDecisions, nil, before, limit, func(_, v []byte) (ci.Time, bool, error) {
		d, err := decodeJSON[ci.Decision]("decision", v)
		return d.At, false, err
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		d, err := decodeJSON[ci.Decision]("decision", t.get(bucketDecisions, key))
		if err != nil {
			return err
		}
		for _, run := range []string{d.Run, d.OtherRun} {
			if err := t.delete(bucketRunDecisions, runDecisionKey(run, fromBE64(key))); err != nil {
				return err
			}
		}
	}
	p.Decisions = len(keys)
	return t.deleteAll(bucketDecisions, keys)
}

// pruneRequests looks through the idempotency keys a piece at a time: they
// are in no order of time.
func (t *tx) pruneRequests(before time.Time, limit int, p *Pruned) error {
	c := t.bucket(bucketRequests).Cursor()
	k, v := c.Seek(t.get(bucketMeta, metaPruned))
	var keys [][]byte
	var at []byte
	for looked := 0; k != nil && looked < limit; k, v = c.Next() {
		looked++
		rec, err := decodeJSON[answerRecord]("request", v)
		if err != nil {
			return err
		}
		if rec.At.Before(before) {
			keys = append(keys, bytes.Clone(k))
		}
		at = append(bytes.Clone(k), 0)
	}
	if k == nil {
		at = nil // begin again
	}
	p.Requests = len(keys)
	if err := t.deleteAll(bucketRequests, keys); err != nil || at == nil && t.get(bucketMeta, metaPruned) == nil {
		return err
	}
	if at == nil {
		return t.delete(bucketMeta, metaPruned)
	}
	return t.put(bucketMeta, metaPruned, at)
}

func (t *tx) deleteAll(bucket int, keys [][]byte) error {
	for _, k := range keys {
		if err := t.delete(bucket, k); err != nil {
			return err
		}
	}
	return nil
}
