package store

import (
	"encoding/binary"
	"time"

	"docket/store/ci"
)

// Stats are counts of what is alive. They cost as much as there is of it,
// whatever is in the store besides.
type Stats struct {
	Queued, Running, Held, Preparing int
	OutboxPending, OutboxDead        int
	OldestQueued                     time.Time // when the longest queued run was made; zero for none
	OldestPending                    time.Time // when the oldest unsent entry was made; zero for none
	FileBytes                        int64
	FreeBytes                        int64 // of them: not in use, to be filled again
}

// Stats returns counts for metrics and the overview.
func (s *Store) Stats() (st Stats, err error) {
	err = s.view(func(t *tx) error {
		st.FileBytes = t.b.Size()
		db := s.db.Stats()
		st.FreeBytes = int64(db.FreePageN+db.PendingPageN) * int64(s.db.Info().PageSize)
		oldest, err := t.countStates(map[ci.State]*int{
			ci.Queued: &st.Queued, ci.Running: &st.Running, ci.Held: &st.Held, ci.Preparing: &st.Preparing,
		})
		if err != nil {
			return err
		}
		st.OldestQueued = oldest
		c := t.bucket(bucketDead).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			st.OutboxDead++
		}
		first := uint64(0)
		c = t.bucket(bucketDue).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			st.OutboxPending++
			if seq := binary.BigEndian.Uint64(k[len(k)-8:]); first == 0 || seq < first {
				first = seq
			}
		}
		if first == 0 {
			return nil
		}
		e, err := t.entryAt(first)
		st.OldestPending = e.CreatedAt.Time
		return err
	})
	return st, err
}

// countStates counts the runs in each state, and returns when the oldest
// queued one was made.
func (t *tx) countStates(counts map[ci.State]*int) (oldest time.Time, err error) {
	var first uint64
	var key []byte
	for state, n := range counts {
		letter := stateBytes[state]
		c := t.bucket(bucketStates).Cursor()
		for k, v := c.Seek([]byte{letter}); len(k) > 0 && k[0] == letter; k, v = c.Next() {
			*n++
			if seq := fromBE64(v); state == ci.Queued && (key == nil || seq < first) {
				first, key = seq, append([]byte(nil), k[1:]...)
			}
		}
	}
	if key == nil {
		return oldest, nil
	}
	r, err := decodeRun(key, t.get(bucketRuns, key))
	return r.CreatedAt.Time, err
}
