package store

import (
	"bytes"
	"time"

	bolt "go.etcd.io/bbolt"
)

// tx is one closure's view of a bbolt transaction. In a write, several
// closures share the transaction; each has its own account of what it wrote.
type tx struct {
	s       *Store
	b       *bolt.Tx
	now     time.Time
	tables  [bucketCount]*table
	numbers map[string]uint64 // a project's newest number, as this transaction has it

	wrote   bool             // this closure changed something
	lanes   map[string]*lane // those it has read or changed, written back when it ends
	topics  uint32           // what it is about, for the wakeups after the commit
	ended   []Ended          // the runs that it ends
	changes []Change         // for who follows them; see Options.Changed
	beat    int64            // the sign of life that the transaction writes, Unix milliseconds
}

// bucket returns a table; nil if the file is from before there was one.
func (t *tx) bucket(i int) *table {
	if t.tables[i] == nil {
		t.tables[i] = t.s.layout.table(t.b, i)
	}
	return t.tables[i]
}

func (t *tx) get(bucket int, key []byte) []byte { return t.bucket(bucket).Get(key) }

func (t *tx) put(bucket int, key, value []byte) error {
	t.wrote = true
	return t.bucket(bucket).Put(key, value)
}

func (t *tx) delete(bucket int, key []byte) error {
	t.wrote = true
	return t.bucket(bucket).Delete(key)
}

func (t *tx) next(bucket int) (uint64, error) {
	t.wrote = true
	return t.bucket(bucket).NextSequence()
}

// wake notes a topic to be announced after the commit.
func (t *tx) wake(topic Topic) { t.topics |= 1 << topic }

// last moves c to the last key with the prefix.
func last(c *tableCursor, prefix []byte) (k, v []byte) {
	return lastBefore(c, prefix, nil)
}

// lastBefore moves c to the last key with the prefix that is less than key; a
// nil key means the last with the prefix.
func lastBefore(c *tableCursor, prefix, key []byte) (k, v []byte) {
	if key == nil {
		key = after(prefix)
	}
	if k, v = c.Before(key); !bytes.HasPrefix(k, prefix) {
		return nil, nil
	}
	return k, v
}
