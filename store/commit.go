package store

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"docket/store/ci"
)

// maxBatch bounds how many closures share one commit.
const maxBatch = 512

// op is one closure that waits for its commit.
type op struct {
	fn   func(*tx) error
	err  error
	done chan struct{}
}

// update runs fn in a write transaction and returns after the commit was
// synced, or with the reason why nothing of it happened.
//
// fn may run more than once and together with others: it resets its results
// on entry and has no side effects. An error that it returns before it wrote
// anything is an answer; one after that undoes it.
func (s *Store) update(ctx context.Context, fn func(*tx) error) error {
	if e := s.broken.Load(); e != nil {
		return e
	}
	if err := ctx.Err(); err != nil {
		return errGone(err)
	}
	o := &op{fn: fn, done: make(chan struct{})}
	select {
	case <-s.closing:
		return errClosed()
	default:
	}
	select {
	case s.queue <- o:
	case <-s.closing:
		return errClosed()
	case <-ctx.Done():
		return errGone(ctx.Err())
	}
	// From here on the commit decides, not ctx: it may already be on disk.
	select {
	case <-o.done:
		return o.err
	case <-s.stopped:
	}
	select {
	case <-o.done:
		return o.err
	default:
		return errClosed()
	}
}

func errGone(err error) error {
	return ci.Wrap(ci.CodeUnavailable, err, "the request ended before it was written; nothing was promised")
}

// commitLoop takes all that queued while the last commit was synced, and those
// who are just about to, applies it in one transaction, and answers each.
func (s *Store) commitLoop() {
	defer close(s.stopped)
	batch := make([]*op, 0, maxBatch)
	for {
		batch = batch[:0]
		select {
		case o := <-s.queue:
			batch = append(batch, o)
		case <-s.closing:
			s.drain()
			return
		}
		batch = s.gather(batch)
		s.commitBatch(batch)
		clear(batch)
	}
}

// gather takes all that is queued. It lets others run, without a timer, for as
// long as that brings one more: those who were answered a moment ago, and
// those who are still encoding, would else wait for a commit of their own.
func (s *Store) gather(batch []*op) []*op {
	batch = s.collect(batch)
	for n := 0; n < len(batch) && len(batch) < maxBatch; {
		n = len(batch)
		runtime.Gosched()
		batch = s.collect(batch)
	}
	return batch
}

func (s *Store) collect(batch []*op) []*op {
	for len(batch) < maxBatch {
		select {
		case o := <-s.queue:
			batch = append(batch, o)
		default:
			return batch
		}
	}
	return batch
}

// drain refuses what queued up while the store was closed.
func (s *Store) drain() {
	for {
		select {
		case o := <-s.queue:
			o.err = errClosed()
			close(o.done)
		default:
			return
		}
	}
}

// commitBatch commits a batch. A closure that fails after it wrote takes
// nobody down: the rest are run again without it, and it alone at the end.
func (s *Store) commitBatch(batch []*op) {
	rest := batch
	var alone []*op
	for len(rest) > 0 {
		bad, topics, err := s.tryBatch(rest)
		if bad >= 0 {
			alone = append(alone, rest[bad])
			rest = append(append([]*op(nil), rest[:bad]...), rest[bad+1:]...)
			continue
		}
		s.answer(rest, topics, err)
		break
	}
	for _, o := range alone {
		one := []*op{o}
		bad, topics, err := s.tryBatch(one)
		if bad >= 0 {
			close(o.done)
			continue
		}
		s.answer(one, topics, err)
	}
}

// answer tells the waiting what became of their batch, and everybody else
// that something changed: only ever after the commit.
func (s *Store) answer(batch []*op, topics uint32, err error) {
	if err != nil {
		for _, o := range batch {
			o.err = err
		}
	}
	for _, o := range batch {
		close(o.done)
	}
	if err == nil {
		s.watchers.announce(topics)
	}
}

// tryBatch applies a batch in one transaction and commits it. bad is the
// index of a closure that failed after it had written, whose transaction was
// undone, or -1.
func (s *Store) tryBatch(batch []*op) (bad int, topics uint32, err error) {
	if e := s.broken.Load(); e != nil {
		return -1, 0, e
	}
	began := time.Now()
	btx, err := s.db.Begin(true)
	if err != nil {
		return -1, 0, s.failed(err)
	}
	t := &tx{s: s, b: btx, now: s.now(), numbers: map[string]uint64{}}
	wrote := false
	for i, o := range batch {
		t.wrote = false
		clear(t.lanes)
		o.err = protect(o.fn, t)
		if o.err != nil && t.wrote {
			btx.Rollback()
			return i, 0, nil
		}
		wrote = wrote || t.wrote
	}
	if !wrote {
		btx.Rollback()
		return -1, 0, nil
	}
	if err := t.beatToo(); err != nil {
		btx.Rollback()
		return -1, 0, s.failed(err)
	}
	if err := s.fail(FailBeforeCommit); err != nil {
		btx.Rollback()
		return -1, 0, s.failed(err)
	}
	if err := btx.Commit(); err != nil {
		if !recoverable(err) {
			return -1, 0, s.gaveUp(err)
		}
		return -1, 0, s.failed(err)
	}
	if err := s.fail(FailAfterCommit); err != nil {
		return -1, 0, s.failed(err)
	}
	s.health.Store(nil)
	if s.committed != nil {
		s.committed(Commit{Batch: len(batch), Took: time.Since(began), Ended: t.ended})
	}
	if len(t.changes) > 0 {
		s.changed(t.changes)
	}
	if t.beat > 0 {
		s.beat.Store(t.beat)
	}
	return -1, t.topics, nil
}

func (s *Store) fail(point string) error {
	if s.failpoint == nil {
		return nil
	}
	return s.failpoint(point)
}

// failed remembers why a commit failed and returns it for those who waited.
func (s *Store) failed(err error) error {
	e := ci.Wrap(ci.CodeUnavailable, err, "the store could not commit, so nothing was promised; free some space on its disk if it is full, and try again")
	s.health.Store(e)
	return e
}

// gaveUp remembers for good that the disk failed.
func (s *Store) gaveUp(err error) error {
	e := ci.Wrap(ci.CodeUnavailable, err, "the disk refused a write, so docket writes nothing more until it is restarted; check the disk first")
	s.health.Store(e)
	s.broken.Store(e)
	return e
}

// protect turns a panic of fn into an error that undoes it.
func protect(fn func(*tx) error, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.wrote = true
			err = ci.Wrap(ci.CodeInternal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "docket met a fault of its own; the server's log has the cause")
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	return t.flushLanes()
}
