package store

import (
	"bytes"
	"cmp"
	"slices"

	"docket/store/ci"
)

// counted bounds what is counted only to show a number to people.
const counted = 10_000

// Attention is what needs a person, each counted up to 10,000.
type Attention struct {
	Held int // runs that wait for approval
	Dead int // notifications that were given up
}

// Attention counts what needs a person.
func (s *Store) Attention() (a Attention, err error) {
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketStates).Cursor()
		held := []byte{stateBytes[ci.Held]}
		for k, _ := c.Seek(held); bytes.HasPrefix(k, held) && a.Held < counted; k, _ = c.Next() {
			a.Held++
		}
		c = t.bucket(bucketDead).Cursor()
		for k, _ := c.First(); k != nil && a.Dead < counted; k, _ = c.Next() {
			a.Dead++
		}
		return nil
	})
	return a, err
}

// Progress is how far a new store has come.
type Progress struct {
	Delivered bool // a delivery has arrived
	Started   bool // there is a run
	Succeeded bool // one has succeeded
}

// Progress says how far a new store has come.
func (s *Store) Progress() (p Progress, err error) {
	err = s.view(func(t *tx) error {
		has := func(bucket int, prefix []byte) bool {
			k, _ := t.bucket(bucket).Cursor().Seek(prefix)
			return k != nil && bytes.HasPrefix(k, prefix)
		}
		p.Delivered = has(bucketReceipts, nil)
		p.Started = has(bucketRuns, nil)
		p.Succeeded = has(bucketStates, []byte{stateBytes[ci.Succeeded]})
		return nil
	})
	return p, err
}

// Waiting returns the runs that have not begun, the oldest first and at most
// limit, and how many more there are, counted up to 10,000.
func (s *Store) Waiting(limit int) (runs []ci.Run, more int, err error) {
	err = s.view(func(t *tx) error {
		type entry struct {
			seq uint64
			key []byte
		}
		var list []entry
		total := 0
		for _, state := range []ci.State{ci.Preparing, ci.Held, ci.Queued} {
			letter := []byte{stateBytes[state]}
			project, of := "", 0
			c := t.bucket(bucketStates).Cursor()
			for k, v := c.Seek(letter); bytes.HasPrefix(k, letter) && total < counted; k, v = c.Next() {
				total++
				p, _, _ := splitRunKey(k[1:])
				if p != project {
					project, of = p, 0
				}
				if of++; of <= limit { // within a project the order is that of creation
					list = append(list, entry{fromBE64(v), bytes.Clone(k[1:])})
				}
			}
		}
		slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
		for _, e := range list[:min(limit, len(list))] {
			r, err := decodeRun(e.key, t.get(bucketRuns, e.key))
			if err != nil {
				return err
			}
			t.showWaiting(&r)
			runs = append(runs, r)
		}
		more = total - len(runs)
		return nil
	})
	return runs, more, err
}

// Ahead counts, up to 10,000, the queued runs that were made before a run.
func (s *Store) Ahead(r ci.Run) (n int, err error) {
	err = s.view(func(t *tx) error {
		letter := []byte{stateBytes[ci.Queued]}
		c := t.bucket(bucketStates).Cursor()
		looked := 0
		for k, v := c.Seek(letter); bytes.HasPrefix(k, letter) && looked < counted; k, v = c.Next() {
			if looked++; fromBE64(v) < r.Internal.Seq {
				n++
			}
		}
		return nil
	})
	return n, err
}

// OpenReads returns how many reads are under way. Each lasts as long as it
// takes to copy what was asked for, never as long as somebody takes to read it.
func (s *Store) OpenReads() int { return s.db.Stats().OpenTxN }
