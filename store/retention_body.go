package store

import (
	"bytes"
	"context"
	"time"

	"docket/store/ci"
)

var (
	// metaBodies is up to where the bodies are gone: looking from the first
	// receipt each time would take longer and longer.
	metaBodies = []byte("bodies pruned")
	// metaRetention is the time that ages were last counted to.
	metaRetention = []byte("retention time")
)

// PruneBodies removes the bodies of deliveries that came before a time, oldest
// first and at most limit, in one write, and returns how many. Their receipts
// and delivery ids stay. The body of a delivery with a run that has not ended
// stays until its receipt goes: the run may still need it.
func (s *Store) PruneBodies(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = s.update(ctx, func(t *tx) error {
		var keys, ahead [][]byte
		last := bytes.Clone(t.get(bucketMeta, metaBodies))
		c := t.bucket(bucketBodies).Cursor()
		looked := 0
		for k, _ := c.Seek(be64(fromBE64(last) + 1)); k != nil && len(keys)+len(ahead) < limit && looked < maxPruneLook; k, _ = c.Next() {
			looked++
			r, err := decodeReceipt(t.get(bucketReceipts, k))
			if err != nil {
				return err
			}
			if r.ReceivedAt.After(t.now) { // see oldest
				ahead = append(ahead, bytes.Clone(k))
				continue
			}
			if !r.ReceivedAt.Before(before) {
				break
			}
			keys, ahead = append(keys, ahead...), nil
			if last = bytes.Clone(k); !t.anyAlive(r.Runs) {
				keys = append(keys, last)
			}
		}
		n = len(keys)
		if err := t.deleteAll(bucketBodies, keys); err != nil || bytes.Equal(last, t.get(bucketMeta, metaBodies)) {
			return err
		}
		return t.put(bucketMeta, metaBodies, last)
	})
	return n, err
}

// anyAlive reports whether one of the runs has not ended.
func (t *tx) anyAlive(ids []string) bool {
	for _, id := range ids {
		if key, err := runKeyOf(id); err == nil {
			if v := t.get(bucketRuns, key); v != nil && !runState(v).Final() {
				return true
			}
		}
	}
	return false
}

// RetentionTime returns the time to which ages were counted when SetRetentionTime
// was last called; of a store from before that when its newest record was
// written. Zero for an empty store.
func (s *Store) RetentionTime() (at time.Time, err error) {
	err = s.view(func(t *tx) error {
		if v := t.get(bucketMeta, metaRetention); v != nil {
			at = time.UnixMilli(int64(fromBE64(v)))
		}
		return nil
	})
	if err != nil || !at.IsZero() {
		return at, err
	}
	return s.newest()
}

// SetRetentionTime remembers the time to which ages are counted.
func (s *Store) SetRetentionTime(ctx context.Context, at time.Time) error {
	return s.update(ctx, func(t *tx) error {
		return t.put(bucketMeta, metaRetention, be64(uint64(ci.At(at).UnixMilli())))
	})
}
