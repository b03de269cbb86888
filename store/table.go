package store

import (
	bolt "go.etcd.io/bbolt"
)

// table is one of the store's tables: a set of keys in order, and a count that
// only grows.
type table struct {
	b *bolt.Bucket
}

// Get returns the value of a key, or nil.
func (t *table) Get(key []byte) []byte { return t.b.Get(key) }

// Put sets the value of a key. The value must not be changed until the
// transaction has ended.
func (t *table) Put(key, value []byte) error { return t.b.Put(key, value) }

// Delete removes a key; one that is not there is no error.
func (t *table) Delete(key []byte) error { return t.b.Delete(key) }

// Sequence returns the table's count.
func (t *table) Sequence() uint64 { return t.b.Sequence() }

// NextSequence counts one up and returns the count.
func (t *table) NextSequence() (uint64, error) { return t.b.NextSequence() }

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
func (t *table) Cursor() *tableCursor { return &tableCursor{c: t.b.Cursor()} }

// tableCursor moves over a table's keys, as bbolt's does over a bucket's: what
// it returns is valid until the transaction ends, and it is to be placed anew
// after a change.
type tableCursor struct {
	c *bolt.Cursor
}

func (c *tableCursor) First() (k, v []byte)          { return c.c.First() }
func (c *tableCursor) Last() (k, v []byte)           { return c.c.Last() }
func (c *tableCursor) Next() (k, v []byte)           { return c.c.Next() }
func (c *tableCursor) Prev() (k, v []byte)           { return c.c.Prev() }
func (c *tableCursor) Seek(key []byte) (k, v []byte) { return c.c.Seek(key) }
