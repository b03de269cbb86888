package store

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// table is one of the store's tables: a set of keys in order, in a bucket that
// it may share with others (see layout.go).
type table struct {
	*place
	b     *bolt.Bucket
	count *bolt.Bucket // whose sequence it counts with
	meta  *bolt.Bucket // that has its mark; nil without one
	key   []byte       // the last one that was looked up
}

// stored returns a key as it stands in the bucket, until the next call.
func (t *table) stored(key []byte) []byte {
	t.key = append(append(t.key[:0], t.prefix...), key...)
	if t.kind != 0 {
		t.key = append(t.key, t.kind)
	}
	return t.key
}

// from returns where a search for a key begins in the bucket, until the next call.
func (t *table) from(key []byte) []byte {
	t.key = append(append(t.key[:0], t.prefix...), key...)
	return t.key
}

// Get returns the value of a key, or nil.
func (t *table) Get(key []byte) []byte { return t.b.Get(t.stored(key)) }

// Put sets the value of a key. The value must not be changed until the
// transaction has ended.
func (t *table) Put(key, value []byte) error {
	if t.meta != nil {
		if mark := t.meta.Get(t.mark); mark == nil || bytes.Compare(key, mark) < 0 {
			if err := t.meta.Put(t.mark, bytes.Clone(key)); err != nil {
				return err
			}
		}
	}
	return t.b.Put(t.stored(key), value)
}

// Delete removes a key; one that is not there is no error.
func (t *table) Delete(key []byte) error { return t.b.Delete(t.stored(key)) }

// Sequence returns the count that NextSequence has come to.
func (t *table) Sequence() uint64 { return t.count.Sequence() }

// NextSequence counts one up and returns the count. Tables may share one.
func (t *table) NextSequence() (uint64, error) { return t.count.NextSequence() }

// ForEach calls fn for each key in order. fn must not change the table.
func (t *table) ForEach(fn func(k, v []byte) error) error {
	c := t.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}

// Cursor returns a cursor over the table's keys.
func (t *table) Cursor() *tableCursor {
	c := &tableCursor{c: t.b.Cursor(), t: t}
	if t.meta != nil {
		if c.first = t.meta.Get(t.mark); c.first == nil {
			c.first = noKey // so far there was none
		}
	}
	return c
}

// noKey is behind all keys that begin with a sequence.
var noKey = bytes.Repeat([]byte{0xff}, 9)

// tableCursor moves over a table's keys and passes over those of others in the
// same bucket. What it returns is valid until the transaction ends; after a
// change it is to be placed anew.
type tableCursor struct {
	c     *bolt.Cursor
	t     *table
	first []byte // no key of the table is less
	steps int    // how many keys it may pass over; 0: any
}

func (c *tableCursor) First() (k, v []byte) { return c.Seek(nil) }
func (c *tableCursor) Last() (k, v []byte)  { return c.Before(nil) }
func (c *tableCursor) Next() (k, v []byte)  { return c.forward(c.c.Next()) }
func (c *tableCursor) Prev() (k, v []byte)  { return c.back(c.c.Prev()) }

// Seek moves to a key, or to the next one.
func (c *tableCursor) Seek(key []byte) (k, v []byte) {
	if bytes.Compare(key, c.first) < 0 {
		key = c.first
	}
	if from := c.t.from(key); len(from) > 0 {
		return c.forward(c.c.Seek(from))
	}
	return c.forward(c.c.First())
}

// Before moves to the last key that is less than another one; nil means the
// last of all.
func (c *tableCursor) Before(key []byte) (k, v []byte) {
	end := c.t.end
	if key != nil {
		end = c.t.from(key)
	}
	if end == nil {
		return c.back(c.c.Last())
	}
	if k, _ = c.c.Seek(end); k == nil {
		return c.back(c.c.Last())
	}
	return c.back(c.c.Prev())
}

// forward goes on to the table's own next key.
func (c *tableCursor) forward(k, v []byte) ([]byte, []byte) {
	for ; k != nil && bytes.HasPrefix(k, c.t.prefix); k, v = c.c.Next() {
		if own, ok := c.t.own(k); ok {
			return own, v
		}
		if c.steps--; c.steps == 0 {
			break
		}
	}
	return nil, nil
}

func (c *tableCursor) back(k, v []byte) ([]byte, []byte) {
	for ; k != nil && bytes.HasPrefix(k, c.t.prefix) && bytes.Compare(k, c.first) >= 0; k, v = c.c.Prev() {
		if own, ok := c.t.own(k); ok {
			return own, v
		}
	}
	return nil, nil
}

// own returns the key that stands in the bucket as k, if it is the table's.
func (t *table) own(k []byte) ([]byte, bool) {
	k = k[len(t.prefix):]
	if t.kind == 0 {
		return k, true
	}
	n := len(k) - 1
	return k[:n], k[n] == t.kind
}
