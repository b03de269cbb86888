package store

import (
	"bytes"

	"docket/store/ci"
)

// runEntryKey files an entry under its run: project, number, seq. New ones
// come at the end of their project.
func runEntryKey(run string, seq uint64) ([]byte, error) {
	prefix, err := runKeyOf(run)
	if err != nil {
		return nil, err
	}
	return append(prefix, be64(seq)...), nil
}

func (t *tx) fileEntry(run string, seq uint64) error {
	key, err := runEntryKey(run, seq)
	if err != nil {
		return err
	}
	return t.put(bucketRunEntries, key, nil)
}

func (t *tx) unfileEntry(run string, seq uint64) error {
	key, err := runEntryKey(run, seq)
	if err != nil {
		return err
	}
	return t.delete(bucketRunEntries, key)
}

// EntriesOf lists the outbox entries of a run in the order in which they were
// made, at most limit; more says that there are others. A run that is not on
// record has what is left of its own.
func (s *Store) EntriesOf(run string, limit int) (list []ci.OutboxEntry, more bool, err error) {
	list = []ci.OutboxEntry{}
	prefix, err := runKeyOf(run)
	if err != nil {
		return list, false, err
	}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketRunEntries).Cursor()
		for k, _ := c.Seek(prefix); len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			if more = len(list) == limit; more {
				return nil
			}
			e, err := t.entryAt(fromBE64(k[len(prefix):]))
			if err != nil {
				return err
			}
			if err := s.present(&e); err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, more, err
}

// refileEntries makes the index of a store from before it.
func (t *tx) refileEntries() error {
	index := t.bucket(bucketRunEntries)
	return t.bucket(bucketOutbox).ForEach(func(k, v []byte) error {
		h, err := decodeEntryHead(v)
		if err != nil {
			return err
		}
		key, err := runEntryKey(h.run, fromBE64(k))
		if err != nil {
			return err
		}
		return index.Put(key, nil)
	})
}

// runEntries ensures that each filing is of an entry of that run, and that
// there are as many as entries.
func (v *verifier) runEntries() error {
	if v.t.bucket(bucketRunEntries) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	filed := 0
	err := v.each(bucketRunEntries, func(k, _ []byte) error {
		filed++
		if len(k) < 18 {
			v.broken("run_entries: %q", k)
			return nil
		}
		project, number, ok := splitRunKey(k[:len(k)-8])
		h, err := decodeEntryHead(v.t.get(bucketOutbox, k[len(k)-8:]))
		if !ok || err != nil || h.run != ci.RunID(project, number) {
			v.broken("run_entries: notification %d is not of run %s", fromBE64(k[len(k)-8:]), ci.RunID(project, number))
		}
		return nil
	})
	if err != nil {
		return err
	}
	entries := 0
	err = v.each(bucketOutbox, func(_, _ []byte) error {
		entries++
		return nil
	})
	if entries != filed {
		v.broken("run_entries: %d filings of %d notifications", filed, entries)
	}
	return err
}
