package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"docket/store/ci"
)

// The lapses bucket has, in order of time, the held runs that wait for
// approval no longer than until then.

func lapseKey(r *ci.Run) []byte {
	return binary.BigEndian.AppendUint64(be64(dueTime(r.Internal.LapsesAt.Time)), r.Internal.Seq)
}

// beginHold says from when a held run waits, and until when.
func beginHold(r *ci.Run, now ci.Time) {
	r.Internal.LapsesAt = ci.Time{}
	if r.State == ci.Held && r.Internal.HoldFor > 0 {
		r.Internal.LapsesAt = ci.At(now.Add(time.Duration(r.Internal.HoldFor)))
	}
}

// fileHold files a run that has just become held, if it is to lapse.
func (t *tx) fileHold(r *ci.Run) error {
	if r.State != ci.Held || r.Internal.LapsesAt.IsZero() {
		return nil
	}
	return t.put(bucketLapses, lapseKey(r), runKey(r.Project, r.Number))
}

// endHold takes a run that leaves the state Held off the list.
func (t *tx) endHold(r *ci.Run) error {
	if r.State != ci.Held || r.Internal.LapsesAt.IsZero() {
		return nil
	}
	return t.delete(bucketLapses, lapseKey(r))
}

// Lapse ends up to limit held runs for which approval was waited for long
// enough at now, the longest first: cancelled, with their final statuses and a
// decision each, in one write. next is when another will be due; zero if none
// waits, and not later than now if there are more.
func (s *Store) Lapse(ctx context.Context, now time.Time, limit int) (lapsed []string, next time.Time, err error) {
	if next, err = s.nextLapse(); err != nil || next.IsZero() || next.After(now) {
		return nil, next, err
	}
	err = s.update(ctx, func(t *tx) error {
		lapsed = nil
		for _, key := range t.lapsing(now, limit) {
			r, err := decodeRun(key, t.get(bucketRuns, key))
			if err != nil {
				return err
			}
			reason := "approval was waited for " + time.Duration(r.Internal.HoldFor).String()
			if err := t.moveRun(&r, ci.Cancelled, reason); err != nil {
				return err
			}
			if err := t.decide(ci.Decision{
				Kind: ci.DecisionLapsed, Run: r.ID, Project: r.Project,
				By: ci.By{Kind: ci.ByScheduler, Name: "approval"}, Reason: reason,
			}); err != nil {
				return err
			}
			lapsed = append(lapsed, r.ID)
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	next, err = s.nextLapse()
	return lapsed, next, err
}

func (s *Store) nextLapse() (next time.Time, err error) {
	err = s.view(func(t *tx) error {
		if k, _ := t.bucket(bucketLapses).Cursor().First(); k != nil {
			next = time.UnixMilli(int64(fromBE64(k)))
		}
		return nil
	})
	return next, err
}

func (t *tx) lapsing(now time.Time, limit int) (keys [][]byte) {
	c := t.bucket(bucketLapses).Cursor()
	for k, v := c.First(); k != nil && len(keys) < limit && fromBE64(k) <= dueTime(now); k, v = c.Next() {
		keys = append(keys, bytes.Clone(v))
	}
	return keys
}

// lapses ensures that each run on the list is held until that time.
func (v *verifier) lapses() error {
	if v.t.bucket(bucketLapses) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketLapses, func(k, val []byte) error {
		r, err := decodeRun(val, v.t.get(bucketRuns, val))
		if err != nil || r.State != ci.Held || !bytes.Equal(k, lapseKey(&r)) {
			v.broken("lapses: %x is of no held run: %v", k, err)
		}
		return nil
	})
}
