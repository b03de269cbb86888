package store

import "docket/store/ci"

// Stats are counts of what is alive. They cost as much as there is of it,
// whatever is in the store besides.
type Stats struct {
	Queued, Running, Held, Preparing int
	OutboxPending, OutboxDead        int
	FileBytes                        int64
}

// Stats returns counts for metrics and the overview.
func (s *Store) Stats() (st Stats, err error) {
	err = s.view(func(t *tx) error {
		st.FileBytes = t.b.Size()
		for state, n := range map[ci.State]*int{
			ci.Queued: &st.Queued, ci.Running: &st.Running, ci.Held: &st.Held, ci.Preparing: &st.Preparing,
		} {
			letter := stateBytes[state]
			c := t.bucket(bucketStates).Cursor()
			for k, _ := c.Seek([]byte{letter}); len(k) > 0 && k[0] == letter; k, _ = c.Next() {
				*n++
			}
		}
		for bucket, n := range map[int]*int{bucketDue: &st.OutboxPending, bucketDead: &st.OutboxDead} {
			c := t.bucket(bucket).Cursor()
			for k, _ := c.First(); k != nil; k, _ = c.Next() {
				*n++
			}
		}
		return nil
	})
	return st, err
}
