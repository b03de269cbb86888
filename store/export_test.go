package store

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"docket/store/ci"
)

// Seed accepts deliveries, carries their runs to the end and sends what they
// tell, many in one commit: a store with a history, for benchmarks. It goes
// through the same code as the real thing.
func (s *Store) Seed(list []Acceptance) error {
	prepared := make([]*acceptance, len(list))
	for i := range list {
		prepared[i] = s.prepareAcceptance(&list[i])
	}
	return s.update(context.Background(), func(t *tx) error {
		for i := range list {
			a, err := t.accept(&list[i], prepared[i])
			if err != nil {
				return err
			}
			for j := range a.Runs {
				if err := t.live(&a.Runs[j]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// live takes a run through its states, each one sent as it comes.
func (t *tx) live(r *ci.Run) error {
	for _, to := range []ci.State{ci.Running, ci.Succeeded} {
		if err := t.sendLane(r); err != nil {
			return err
		}
		if to == ci.Running {
			r.Attempt++
			r.StartedAt = ci.At(t.now)
		}
		if err := t.moveRun(r, to, ""); err != nil {
			return err
		}
	}
	return t.sendLane(r)
}

func (t *tx) sendLane(r *ci.Run) error {
	spec, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	name, ok := runLane(r, spec)
	if !ok {
		return nil
	}
	for {
		l, err := t.lane(name)
		if err != nil || len(l.queue) == 0 {
			return err
		}
		seq := l.queue[0]
		e, err := t.entryAt(seq)
		if err != nil {
			return err
		}
		e.Attempts++
		if err := t.finishEntry(&e, seq, ci.OutboxSent, ""); err != nil {
			return err
		}
	}
}

// MaxSessions is maxSessions.
const MaxSessions = maxSessions

// ClaimAny is Claim without a look at superseding, for tests that have no
// scheduler to decide on it.
func (s *Store) ClaimAny(ctx context.Context, boot string, max int) (ci.Run, bool, error) {
	return s.claim(ctx, boot, max, func(*tx, *ci.Run) bool { return true })
}

// Table is one of the store's tables, for tests that change a file from below.
type Table = table

// TableOf returns a table by its name, or nil.
func TableOf(b *bolt.Tx, name string) *Table {
	version, _ := schemaOf(b)
	for i, n := range bucketNames {
		if string(n) == name {
			return layoutOf(version).table(b, i)
		}
	}
	return nil
}

// SetSequence changes the table's count.
func (t *table) SetSequence(n uint64) error { return t.count.SetSequence(n) }

// Ignored counts the ignored pushes that are kept of a branch.
func Ignored(s *Store, project, branch string) (n int) {
	_ = s.view(func(t *tx) error {
		prefix := refPrefix(project, refIgnored, branch)
		c := t.bucket(bucketRefs).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			n++
		}
		return nil
	})
	return n
}

// Commits returns how many write transactions there were, and how many pages
// they wrote.
func (s *Store) Commits() (n, pages int64) {
	_ = s.view(func(t *tx) error { n = int64(t.b.ID()); return nil })
	st := s.db.Stats().TxStats
	return n, st.GetPageCount()
}

// Misplaced names the tables that have no place of their own.
func Misplaced() (list []string) {
	taken := map[string]bool{}
	for i, p := range present.places {
		if at := p.shelf + string(p.prefix) + string(p.kind); p.shelf == "" || p.count == "" || taken[at] {
			list = append(list, string(bucketNames[i]))
		} else {
			taken[at] = true
		}
	}
	return list
}

// CursorAt is the cursor that names the place below a sequence.
func CursorAt(seq uint64) string { return cursor(seq) }

// CursorOf is the sequence that a page starts below.
func CursorOf(p Page) (before uint64, err error) {
	_, before, err = p.read()
	return before, err
}
