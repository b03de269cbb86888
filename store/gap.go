package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"docket/store/ci"
)

// Signs of life, as Unix milliseconds. Any commit of a running docket renews
// the beat by the way; only an idle one writes it by itself.
var (
	metaBeat    = []byte("beat")
	metaStopped = []byte("stopped") // when docket was last stopped in order
	metaFirst   = []byte("first")   // since when this store has been kept
)

const (
	beatByTheWay = 10 * time.Second
	beatAlone    = time.Minute
	maxGaps      = 100
)

// Began notes that docket is here. What lies between its last sign of life
// and now is a gap, of which ok tells: it is on record then. since is how long
// this store has been kept.
func (s *Store) Began(ctx context.Context) (gap ci.Gap, ok bool, since time.Time, err error) {
	err = s.update(ctx, func(t *tx) error {
		gap, ok = ci.Gap{To: ci.At(t.now)}, false
		first := t.metaTime(metaFirst)
		if first.IsZero() {
			if first, err = t.oldestReceipt(); err != nil {
				return err
			}
			if err := t.putMetaTime(metaFirst, first); err != nil {
				return err
			}
		}
		since = first
		gap.From, gap.Exact = ci.At(t.metaTime(metaStopped)), true
		if gap.From.IsZero() {
			gap.From, gap.Exact = ci.At(t.metaTime(metaBeat)), false
			if probed := ci.At(t.metaTime(metaProbe)); gap.From.Before(probed.Time) {
				gap.From = probed
			}
		}
		if err := t.delete(bucketMeta, metaStopped); err != nil {
			return err
		}
		if err := t.putMetaTime(metaBeat, t.now); err != nil {
			return err
		}
		if gap.From.IsZero() || !gap.From.Before(gap.To.Time) {
			return nil
		}
		ok = true
		return t.addGap(&gap)
	})
	if err == nil {
		s.beating.Store(true)
	}
	return gap, ok, since, err
}

// Beat writes a sign of life if nothing was written for a minute.
func (s *Store) Beat(ctx context.Context) error {
	if s.now().Sub(time.UnixMilli(s.beat.Load())) < beatAlone {
		return nil
	}
	return s.update(ctx, func(t *tx) error { return t.putMetaTime(metaBeat, t.now) })
}

// Stopped notes when docket was stopped in order.
func (s *Store) Stopped(ctx context.Context, at time.Time) error {
	return s.update(ctx, func(t *tx) error { return t.putMetaTime(metaStopped, at) })
}

// beatToo renews the sign of life in a commit that is made anyway.
func (t *tx) beatToo() error {
	if !t.s.beating.Load() || t.now.Sub(time.UnixMilli(t.s.beat.Load())) < beatByTheWay {
		return nil
	}
	return t.putMetaTime(metaBeat, t.now)
}

func (t *tx) metaTime(key []byte) time.Time {
	v := t.get(bucketMeta, key)
	if len(v) != 8 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(v)))
}

func (t *tx) putMetaTime(key []byte, at time.Time) error {
	if &key[0] == &metaBeat[0] {
		t.beat = at.UnixMilli()
	}
	return t.put(bucketMeta, key, be64(uint64(at.UnixMilli())))
}

// oldestReceipt is when the first receipt came that is still kept, else now.
func (t *tx) oldestReceipt() (time.Time, error) {
	k, v := t.bucket(bucketReceipts).Cursor().First()
	if k == nil {
		return t.now, nil
	}
	r, err := decodeReceipt(v)
	return r.ReceivedAt.Time, err
}

func (t *tx) addGap(g *ci.Gap) error {
	seq, err := t.next(bucketGaps)
	if err != nil {
		return err
	}
	g.ID = gapID(seq)
	if err := t.put(bucketGaps, be64(seq), mustJSON(g)); err != nil {
		return err
	}
	if seq <= maxGaps {
		return nil
	}
	return t.delete(bucketGaps, be64(seq-maxGaps))
}

// gapSlack is how far from a gap a delivery may lie that was made in it:
// providers tell seconds, and clocks differ.
const gapSlack = 3 * time.Second

// inGap changes the gap that a time lies in, else the newest one that it lies
// close to, if there is one.
func (t *tx) inGap(at ci.Time, change func(*ci.Gap)) error {
	var near *ci.Gap
	var key []byte
	c := t.bucket(bucketGaps).Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		g, err := decodeJSON[ci.Gap]("gap", v)
		if err != nil {
			return err
		}
		if g.Spans(at.Time, 0) {
			near, key = &g, bytes.Clone(k)
			break
		}
		if near == nil && g.Spans(at.Time, gapSlack) {
			near, key = &g, bytes.Clone(k)
		}
	}
	if near == nil {
		return nil
	}
	change(near)
	return t.put(bucketGaps, key, mustJSON(near))
}

// Gaps lists the times in which docket was not there, newest first.
func (s *Store) Gaps(p Page) (list []ci.Gap, next string, err error) {
	list = []ci.Gap{}
	limit, before, err := p.read()
	if err != nil {
		return nil, "", err
	}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketGaps).Cursor()
		var from []byte
		if before > 0 {
			from = be64(before)
		}
		for k, v := lastBefore(c, nil, from); k != nil; k, v = c.Prev() {
			if len(list) == limit {
				next = cursor(before)
				return nil
			}
			before = fromBE64(k)
			g, err := decodeJSON[ci.Gap]("gap", v)
			if err != nil {
				return err
			}
			list = append(list, g)
		}
		return nil
	})
	return list, next, err
}

// gaps ensures that each gap can be read and ends after it began.
func (v *verifier) gaps() error {
	if v.t.bucket(bucketGaps) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketGaps, func(k, val []byte) error {
		g, err := decodeJSON[ci.Gap]("gap", val)
		if err != nil || g.ID != gapID(fromBE64(k)) || !g.From.Before(g.To.Time) {
			v.broken("gap %d: from %v to %v, %v", fromBE64(k), g.From, g.To, err)
		}
		return nil
	})
}
