package store_test

import (
	"context"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that attempts that a kill cut short do not count as failures: a
// receiver's first real failure must not wait as long as its tenth.
func TestOutbox_OnlyKnownFailuresAreCounted(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	r := mustPush(t, s, "one", 0, 1)
	id := entriesOf(t, s, r.ID, "")[0].ID
	for range 5 { // begun, and never finished
		if _, ok, err := s.BeginAttempt(ctx, id); err != nil || !ok {
			t.Fatalf("begin: %v %v", ok, err)
		}
	}
	mustNil(t, s.FinishAttempt(ctx, id, 5, store.AttemptResult{State: ci.OutboxPending, Error: "503", NextAt: clock.now()}))
	e, err := s.Entry(id)
	mustNil(t, err)
	if e.Attempts != 5 || e.Failures != 1 {
		t.Fatalf("%d attempts and %d failures", e.Attempts, e.Failures)
	}
	if len(e.Tries) != 1 || e.Tries[0].Answer != "503" || e.Tries[0].At.IsZero() {
		t.Fatalf("tries %+v", e.Tries)
	}
}
