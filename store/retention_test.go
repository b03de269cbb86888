package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
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

// Ensure that bodies go before their receipts where that is asked for, piece
// by piece, but not from under a run that has not ended; that the delivery's
// id stays known and other bytes under it are still refused.
func TestPruneBodies(t *testing.T) {
	ctx := context.Background()
	path, clock := dbPath(t), newClock()
	s := storetest.MustOpenAt(t, path, store.Options{Now: clock.now})
	for i := range 7 {
		mustAccept(t, s, pushed(fmt.Sprint("d-", i), "api", "main", i, i+1, ignored("no")))
	}
	held := mustPush(t, s, "held", 0, 100, fromFork(3))
	cut := clock.add(time.Hour)
	mustAccept(t, s, pushed("fresh", "api", "main", 8, 9, ignored("no")))
	total := 0
	for {
		n, err := s.PruneBodies(ctx, cut, 3)
		mustNil(t, err)
		if n > 3 {
			t.Fatalf("%d at once", n)
		}
		if total += n; n == 0 {
			break
		}
		mustNil(t, s.Close()) // where it has come to is on record
		s = storetest.MustOpenAt(t, path, store.Options{Now: clock.now})
	}
	if total != 7 {
		t.Fatalf("%d bodies were removed", total)
	}
	_, _, err := s.ReceiptBody(ci.NewReceiptID("github", 12345, "d-3"))
	mustCode(t, err, ci.CodeNotFound, "not kept any more")
	for _, id := range []string{"held", "fresh"} {
		if _, body, err := s.ReceiptBody(ci.NewReceiptID("github", 12345, id)); err != nil || len(body) == 0 {
			t.Errorf("%s: %v", id, err)
		}
	}
	mustState(t, s, held.ID, ci.Held)
	if a := mustAccept(t, s, pushed("d-3", "api", "main", 3, 4, ignored("no"))); !a.Duplicate {
		t.Error("a delivery is new again without its body")
	}
	_, err = s.Accept(ctx, pushed("d-3", "api", "main", 3, 5, ignored("no")))
	mustCode(t, err, ci.CodeConflict)
}

// Ensure that a record from a time in which the clock was years ahead neither
// stays for ever nor keeps what came after it from being removed.
func TestPrune_PassesARecordFromTheFuture(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	accept := func(id string) {
		t.Helper()
		mustAccept(t, s, pushed(id, "api", "main", 1, 2, ignored("no"), func(a *store.Acceptance) { a.Delivery.ReceivedAt = clock.now() }))
	}
	accept("before")
	clock.add(50 * 365 * 24 * time.Hour)
	accept("ahead")
	clock.add(-50 * 365 * 24 * time.Hour)
	if n, err := s.PruneBodies(ctx, clock.now().Add(time.Minute), 10); n != 1 || err != nil {
		t.Fatalf("%d bodies, %v: nothing tells yet how old the second is", n, err)
	}
	accept("after")
	if n, err := s.PruneBodies(ctx, clock.now().Add(time.Minute), 10); n != 2 || err != nil {
		t.Fatalf("%d bodies, %v", n, err)
	}
	p, err := s.Prune(ctx, clock.now().Add(time.Minute), 10)
	mustNil(t, err)
	if p.Receipts != 3 {
		t.Fatalf("%+v", p)
	}
}

// Ensure that a store whose records come and go stops growing: what is removed
// makes room for what comes.
func TestPrune_TheFileReachesAPlateau(t *testing.T) {
	ctx := context.Background()
	path, clock := dbPath(t), newClock()
	s := storetest.MustOpenAt(t, path, store.Options{Now: clock.now})
	const rounds, each = 8, 400
	var sizes []int64
	for round := range rounds {
		cut := clock.add(time.Hour)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range each / 8 {
					a := pushed(fmt.Sprintf("d-%d-%d-%d", round, w, i), "api", "main", 1, 2, ignored("no"), func(a *store.Acceptance) {
						a.Delivery.Body, a.Delivery.ReceivedAt = noise(20<<10), clock.now()
					})
					if _, err := s.Accept(ctx, a); err != nil {
						t.Error(err)
						return
					}
					if i%10 == 0 { // as the scans do it, beside the intake
						if _, err := s.Prune(ctx, cut, 100); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		pruneAll(t, s, cut)
		st, err := s.Stats()
		mustNil(t, err)
		sizes = append(sizes, st.FileBytes)
	}
	if most := sizes[2] + sizes[2]/5; sizes[rounds-1] > most {
		t.Fatalf("it goes on growing: %v", sizes)
	}
	t.Logf("bytes after each round of %d deliveries of 20 KiB: %v", each, sizes)
}
