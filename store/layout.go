package store

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// A commit writes anew each page that it changes and those above it, so what
// is written together lies together:
//
//   - records holds what is kept for each delivery under one growing sequence,
//     so that a delivery's receipt, body and notifications share its last page.
//     Whoever looks for one kind of them passes over the others, so rare ones
//     lie elsewhere, and a mark says before which key there is none of a kind;
//   - index holds all else in one tree. The filings of a run's notifications
//     stand right behind the run, and the tables that things only pass through
//     (due, scopes, holds, dead, lanes, lapses) are neighbours.
//
// A prefix or kind is never given to another table, also when its table goes.
const (
	shelfMeta    = "meta"
	shelfRecords = "records"
	shelfIndex   = "index"
)

// place is where a table's keys lie.
type place struct {
	shelf  string // the bbolt bucket
	prefix []byte // before each key
	kind   byte   // after each key; 0 for none: the prefix is the table's alone
	end    []byte // what comes after all keys with the prefix; nil for the bucket's end
	count  string // the bucket whose sequence the table counts with
	mark   []byte // the key in meta of the table's first key ever; nil: it needs none
	fill   float64
}

// layout says where each table lies.
type layout struct {
	shelves []string
	places  [bucketCount]place
}

// packed fills pages to the brim: new keys come at the end.
const (
	packed = 1.0
	dense  = 0.9
)

func inRecords(kind byte, mark []byte) place {
	return place{shelf: shelfRecords, kind: kind, count: shelfRecords, mark: mark, fill: packed}
}

var (
	markReceipts = []byte("first receipt") // their bodies have no other
	markOutbox   = []byte("first entry")
)

func inIndex(prefix byte) place {
	return place{shelf: shelfIndex, prefix: []byte{prefix}, end: []byte{prefix + 1}, count: shelfRecords, fill: dense}
}

func behindRun(kind byte) place {
	p := inIndex('V')
	p.kind = kind
	return p
}

var present = &layout{
	shelves: []string{shelfMeta, shelfRecords, shelfIndex},
	places: [bucketCount]place{
		bucketMeta: {shelf: shelfMeta, count: shelfRecords, fill: dense},

		bucketReceipts: inRecords('a', markReceipts),
		bucketBodies:   inRecords('b', markReceipts),
		bucketOutbox:   inRecords('o', markOutbox),

		bucketTokens:       inIndex('A'),
		bucketUsers:        inIndex('B'),
		bucketSessions:     inIndex('C'),
		bucketUserSessions: inIndex('D'),
		bucketLinks:        inIndex('E'),
		bucketPins:         inIndex('F'),
		bucketSpecs:        inIndex('G'),
		bucketForks:        inIndex('H'),
		bucketDeletions:    inIndex('I'),
		bucketRequests:     inIndex('J'),
		bucketSlots:        inIndex('K'),
		bucketGroups:       inIndex('L'),
		bucketChecks:       inIndex('M'),
		bucketRecoveries:   inIndex('N'),
		bucketHeads:        inIndex('O'),
		bucketCommits:      inIndex('P'),
		bucketDigests:      inIndex('Q'),
		bucketIdentities:   inIndex('R'),
		bucketKinds:        inIndex('S'),
		bucketRunDecisions: inIndex('T'),
		bucketRefs:         inIndex('U'),
		bucketRuns:         behindRun('a'),
		bucketRunEntries:   behindRun('e'),
		bucketStates:       inIndex('W'),
		bucketDue:          inIndex('X'),
		bucketScopes:       inIndex('Y'),
		bucketHolds:        inIndex('Z'),
		bucketDead:         inIndex('a'),
		bucketLanes:        inIndex('b'),
		bucketLapses:       inIndex('c'),
		bucketDecisions:    inIndex('e'),

		// It goes by its own count, without gaps in it.
		bucketGaps: {shelf: shelfIndex, prefix: []byte{'d'}, end: []byte{'e'}, count: shelfIndex, fill: dense},
	},
}

// first is the layout of schema version 1: a bucket for each table.
var first = func() *layout {
	l := &layout{}
	for i, name := range bucketNames {
		l.shelves = append(l.shelves, string(name))
		l.places[i] = place{shelf: string(name), count: string(name), fill: dense}
	}
	return l
}()

// second is the layout of schema version 2: decisions lay among the records,
// and nothing was marked.
var second = func() *layout {
	l := *present
	l.places[bucketReceipts] = inRecords('a', nil)
	l.places[bucketBodies] = inRecords('b', nil)
	l.places[bucketOutbox] = inRecords('o', nil)
	l.places[bucketDecisions] = inRecords('d', nil)
	return &l
}()

// layoutOf returns the layout of a file's schema version.
func layoutOf(version uint64) *layout {
	switch version {
	case 1:
		return first
	case 2:
		return second
	}
	return present
}

// schemaOf reads a file's schema version; ok is false for one that is not
// docket's.
func schemaOf(b *bolt.Tx) (version uint64, ok bool) {
	meta := b.Bucket([]byte(shelfMeta))
	if meta == nil {
		return 0, false
	}
	v := meta.Get(metaSchema)
	if len(v) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(v), true
}

func (l *layout) make(b *bolt.Tx) error {
	for _, name := range l.shelves {
		if _, err := b.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// table opens a table; nil if the file is from before there was one.
func (l *layout) table(b *bolt.Tx, i int) *table {
	p := &l.places[i]
	shelf := b.Bucket([]byte(p.shelf))
	if shelf == nil {
		return nil
	}
	shelf.FillPercent = p.fill
	t := &table{place: p, b: shelf, count: shelf}
	if p.mark != nil {
		t.meta = b.Bucket([]byte(shelfMeta))
	}
	if p.count != p.shelf {
		t.count = b.Bucket([]byte(p.count))
	}
	return t
}

// owner returns which table a key of a bucket belongs to, or -1.
func (l *layout) owner(shelf string, k []byte) int {
	for i := range l.places {
		p := &l.places[i]
		if p.shelf == shelf && len(k) > len(p.prefix) && string(k[:len(p.prefix)]) == string(p.prefix) &&
			(p.kind == 0 || k[len(k)-1] == p.kind) {
			return i
		}
	}
	return -1
}
