package store

import (
	"context"
	"encoding/binary"
	"time"

	"docket/store/ci"
)

// What waits for a time waits no longer than this, whatever it waits for. A
// time that is further ahead was reckoned while the clock was wrong, and is
// not waited for.
const (
	maxDueWait = 3*24*time.Hour + time.Hour // a notification is tried for three days
	maxJobWait = time.Hour                  // an inbox job is tried again within minutes
	mendPiece  = 500                        // entries at once
)

// MendDue makes the pending entries due at now that wait for a time which no
// notification waits for, and returns how many: a clock that was ahead for a
// while must not hold them up until it is there again. It writes only where
// there are any; call it again while it returns some.
func (s *Store) MendDue(ctx context.Context, now time.Time) (n int, err error) {
	any := false
	if err := s.view(func(t *tx) error {
		any = len(t.farDue(now, 1)) > 0
		return nil
	}); err != nil || !any {
		return 0, err
	}
	err = s.update(ctx, func(t *tx) error {
		n = 0
		for _, seq := range t.farDue(now, mendPiece) {
			e, err := t.entryAt(seq)
			if err != nil {
				return err
			}
			if err := t.reschedule(&e, seq, ci.At(now), e.LastError); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// farDue returns entries that are due too far ahead to be true.
func (t *tx) farDue(now time.Time, limit int) (seqs []uint64) {
	c := t.bucket(bucketDue).Cursor()
	from := be64(dueTime(now.Add(maxDueWait)) + 1)
	for k, _ := c.Seek(from); len(k) == 16 && len(seqs) < limit && binary.BigEndian.Uint64(k) != parked; k, _ = c.Next() {
		seqs = append(seqs, fromBE64(k[8:]))
	}
	return seqs
}
