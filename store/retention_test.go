package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that what ended before a time goes piece by piece, with everything
// that hangs on it, and that what is alive, the newest run of each project
// and its number stay.
func TestPrune_RemovesWhatEndedAndKeepsWhatIsAlive(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	var old []ci.Run
	for i := range 7 {
		r := mustPush(t, s, fmt.Sprintf("old-%d", i), i, i+1, withPolicy(ci.SupersedeNone))
		mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
		old = append(old, r)
	}
	mustNil(t, s.SetCheck(ctx, old[0].ID, store.Check{ID: 5})) // nothing hangs on a run that is gone: Verify looks
	held := mustPush(t, s, "held", 0, 100, fromFork(3))
	sendAll(t, s, clock)
	cut := clock.add(time.Hour)
	fresh := mustPush(t, s, "fresh", 7, 8, withPolicy(ci.SupersedeNone))

	var runs []string
	calls := 0
	for {
		p, err := s.Prune(ctx, cut, 2)
		mustNil(t, err)
		if p.None() {
			break
		}
		if len(p.Runs) > 2 || p.Receipts > 2 || p.Entries > 2 {
			t.Fatalf("one call removed %+v", p)
		}
		runs = append(runs, p.Runs...)
		calls++
	}
	if len(runs) != len(old) || calls < 4 {
		t.Fatalf("removed %v in %d calls", runs, calls)
	}
	for _, r := range old {
		_, err := s.Run(r.ID)
		mustCode(t, err, ci.CodeNotFound)
	}
	mustState(t, s, held.ID, ci.Held)
	mustState(t, s, fresh.ID, ci.Queued)
	if a := mustAccept(t, s, pushed("held", "api", "main", 0, 100, fromFork(3))); !a.Duplicate {
		t.Error("the receipt of a run that is alive went")
	}
	if list, _, err := s.Receipts("", store.Page{}); err != nil || len(list) != 2 {
		t.Errorf("%d receipts are left, %v", len(list), err)
	}
	if next := mustPush(t, s, "next", 8, 9); next.Number != fresh.Number+1 {
		t.Errorf("the next run is number %d after %d", next.Number, fresh.Number)
	}
}

// Ensure that a number is never given twice, even when every run has ended
// and is old.
func TestPrune_KeepsTheNewestRun(t *testing.T) {
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	r := mustPush(t, s, "only", 0, 1)
	mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
	p, err := s.Prune(context.Background(), clock.add(time.Hour), 10)
	mustNil(t, err)
	if len(p.Runs) != 0 {
		t.Fatalf("removed %v", p.Runs)
	}
	if next := mustPush(t, s, "next", 1, 2); next.Number != 2 {
		t.Fatalf("number %d", next.Number)
	}
}

// sendAll marks everything that is due as sent.
func sendAll(t *testing.T, s *store.Store, clock *clock) {
	t.Helper()
	ctx := context.Background()
	for {
		due, _, err := s.DueEntries(clock.now(), 100)
		mustNil(t, err)
		if len(due) == 0 {
			return
		}
		for _, e := range due {
			b, ok, err := s.BeginAttempt(ctx, e.ID)
			mustNil(t, err)
			if ok {
				mustNil(t, s.FinishAttempt(ctx, b.ID, b.Attempts, store.AttemptResult{State: ci.OutboxSent}))
			}
		}
	}
}

// Ensure that many dead notifications, which wait for a person, do not keep
// what came after them from being freed.
func TestPrune_PassesOverWhatHasToStay(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	for i := range 9 {
		r := mustPush(t, s, fmt.Sprint(i), i, i+1, withPolicy(ci.SupersedeNone))
		if i < 8 {
			for _, e := range entriesOf(t, s, r.ID, "") {
				b, ok, err := s.BeginAttempt(ctx, e.ID)
				mustNil(t, err)
				if ok {
					mustNil(t, s.FinishAttempt(ctx, b.ID, b.Attempts, store.AttemptResult{State: ci.OutboxDead, Error: "no"}))
				}
			}
		}
	}
	sendAll(t, s, clock)
	p, err := s.Prune(ctx, clock.add(time.Hour), 1)
	mustNil(t, err)
	if p.Entries != 1 {
		t.Fatalf("removed %+v", p)
	}
}

// noise is a body that does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// pruneAll removes all that ended before a time.
func pruneAll(t *testing.T, s *store.Store, before time.Time) {
	t.Helper()
	for {
		p, err := s.Prune(context.Background(), before, 100)
		mustNil(t, err)
		if p.None() {
			return
		}
	}
}
