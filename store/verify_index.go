package store

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"docket/store/ci"
)

// verifyCopy verifies a copy of an open store. bbolt's own check looks at
// what is free too, which must not change meanwhile; a copy stands still, and
// holds up nobody. It needs as much free space as the store.
func (s *Store) verifyCopy(v *verifier) ([]string, error) {
	f, err := os.CreateTemp(filepath.Dir(s.path), ".verify-*")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
		return nil, err
	}
	if _, err := s.Backup(v.ctx, f); err != nil {
		return nil, err
	}
	return VerifyFile(v.ctx, "/proc/self/fd/"+strconv.FormatUint(uint64(f.Fd()), 10))
}

// strays ensures that each key is one of a table's.
func (v *verifier) strays() error {
	l, n := v.t.s.layout, 0
	for _, shelf := range l.shelves {
		b := v.t.b.Bucket([]byte(shelf))
		if b == nil {
			continue // of a file from before there was one
		}
		err := b.ForEach(func(k, _ []byte) error {
			if n++; n%1024 == 0 && v.ctx.Err() != nil {
				return v.ctx.Err()
			}
			i := l.owner(shelf, k)
			if i < 0 {
				v.broken("%s: %q belongs to no table", shelf, k)
			} else if mark := l.places[i].mark; mark != nil && !v.marked(mark, k) {
				v.broken("%s: %q is there, and the mark %q says that there is none so early", bucketNames[i], k, mark)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// marked reports whether a mark stands at or before a key.
func (v *verifier) marked(mark, k []byte) bool {
	first := v.t.get(bucketMeta, mark)
	return first != nil && bytes.Compare(first, k) <= 0
}

// sequences ensures that no new record can take an old one's place.
func (v *verifier) sequences() error {
	for name, bucket := range map[string]int{
		"receipts": bucketReceipts, "outbox": bucketOutbox, "decisions": bucketDecisions,
	} {
		b := v.t.bucket(bucket)
		if k, _ := b.Cursor().Last(); k != nil && fromBE64(k) > b.Sequence() {
			v.broken("%s: record %d is there, and the next would be %d", name, fromBE64(k), b.Sequence()+1)
		}
	}
	var newest uint64
	err := v.each(bucketRuns, func(_, val []byte) error {
		newest = max(newest, fromBE64(val))
		return nil
	})
	if next := v.t.bucket(bucketRuns).Sequence() + 1; newest >= next {
		v.broken("runs: the %dth created is there, and the next would be the %dth", newest, next)
	}
	return err
}

func (v *verifier) bodies() error {
	return v.each(bucketBodies, func(k, _ []byte) error {
		if v.t.get(bucketReceipts, k) == nil {
			v.broken("body %d has no receipt", fromBE64(k))
		}
		return nil
	})
}

// specs reads what is on disk: the cache may know better.
func (v *verifier) specs() error {
	return v.each(bucketSpecs, func(k, val []byte) error {
		spec, err := decodeJSON[ci.Spec]("spec", val)
		if err != nil {
			v.broken("spec %x: %v", k, err)
		} else if got := spec.Digest(); got != "sha256:"+hex.EncodeToString(k) {
			v.broken("spec %x: its digest is %s", k, got)
		}
		return nil
	})
}

func (v *verifier) forks() error {
	return v.each(bucketForks, func(k, val []byte) error {
		r, err := v.t.run(string(val))
		switch {
		case err != nil && !v.pruned(string(val)):
			v.broken("fork's commit %q: %v", k, err)
		case err == nil && (!r.Fork || !bytes.Equal(forkKey(r.Project, r.Source.Commit), k)):
			v.broken("fork's commit %q: run %s did not bring it", k, r.ID)
		}
		return nil
	})
}

func (v *verifier) holds() error {
	return v.each(bucketHolds, func(k, val []byte) error {
		if _, err := decodeJSON[HoldInfo]("hold", val); err != nil {
			v.broken("hold of %s: %v", k, err)
		}
		return nil
	})
}

// runDecisions ensures that each filing of a decision is of a decision on that run.
func (v *verifier) runDecisions() error {
	return v.each(bucketRunDecisions, func(k, _ []byte) error {
		if len(k) < 10 {
			v.broken("run_decisions: %q", k)
			return nil
		}
		run, seq := string(k[:len(k)-9]), k[len(k)-8:]
		val := v.t.get(bucketDecisions, seq)
		d, err := decodeJSON[ci.Decision]("decision", val)
		if val == nil || err == nil && d.Run != run && d.OtherRun != run {
			v.broken("run_decisions: decision %d is not on run %s", fromBE64(seq), run)
		}
		return nil
	})
}

// filed reports whether a refs key is where a run belongs.
func filed(r *ci.Run, k []byte) bool {
	return slices.ContainsFunc(refKeys(r), func(key []byte) bool { return bytes.Equal(key, k) })
}

// holdOf is what a rate limit would hold an entry by.
func holdOf(e *ci.OutboxEntry) string {
	if ci.IsStatus(e.Kind) {
		return e.Receiver()
	}
	return e.Target
}
