package store_test

import (
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func holdFor(d time.Duration) func(*store.Acceptance) {
	return func(a *store.Acceptance) { a.Drafts[0].HoldFor = d }
}

const week = 168 * time.Hour

func mustLapse(t *testing.T, s *store.Store, now time.Time, want ...string) (next time.Time) {
	t.Helper()
	got, next, err := s.Lapse(t.Context(), now, 10)
	mustNil(t, err)
	if len(got) != len(want) {
		t.Fatalf("lapsed %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("lapsed %v, want %v", got, want)
		}
	}
	return next
}

// Ensure that a held run ends when its time is up, with a reason, a decision
// and a final status, and none that was approved or ended before.
func TestLapse(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	began := c.now()
	mustPush(t, s, "d-1", 0, 1, fromFork(1), holdFor(week))
	mustPush(t, s, "d-2", 0, 2, fromFork(2), holdFor(week))
	mustPush(t, s, "d-3", 0, 3, fromFork(3), holdFor(2*week))
	mustPush(t, s, "d-4", 0, 4, fromFork(4)) // for ever
	mustPush(t, s, "d-5", 0, 5, fromFork(5), holdFor(week))
	_, _, err := s.Approve(t.Context(), action("api-2", "a"))
	mustNil(t, err)
	_, _, err = s.CancelRun(t.Context(), action("api-5", "c"))
	mustNil(t, err)
	if next := mustLapse(t, s, c.now()); !next.Equal(began.Add(week)) {
		t.Fatalf("the first is due at %v", next)
	}
	if next := mustLapse(t, s, c.add(week), "api-1"); !next.Equal(began.Add(2 * week)) {
		t.Fatalf("the next is due at %v", next)
	}
	r := mustState(t, s, "api-1", ci.Cancelled)
	if r.Reason != "approval was waited for 168h0m0s" || !r.FinishedAt.Equal(c.now()) {
		t.Fatalf("%q at %v", r.Reason, r.FinishedAt)
	}
	if d := mustDecided(t, s, "api-1", ci.DecisionLapsed); d.By.Kind != ci.ByScheduler || d.Reason != r.Reason {
		t.Fatalf("%+v", d)
	}
	e := entriesOf(t, s, "api-1", ci.OutboxGitHubStatus)
	if last := e[len(e)-1]; !last.Final || last.Event != "error" {
		t.Fatalf("%+v", last)
	}
	mustState(t, s, "api-2", ci.Queued)
	mustState(t, s, "api-3", ci.Held)
	if next := mustLapse(t, s, c.add(10*week), "api-3"); !next.IsZero() {
		t.Fatalf("another is due at %v", next)
	}
	mustState(t, s, "api-4", ci.Held)
}

// Ensure that a rerun of a lapsed run is held again, with a time of its own.
func TestLapse_OfARerun(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustPush(t, s, "d-1", 0, 1, fromFork(1), holdFor(week))
	mustLapse(t, s, c.add(week), "api-1")
	again, _, err := s.Rerun(t.Context(), action("api-1", "k"))
	mustNil(t, err)
	mustState(t, s, again.ID, ci.Held)
	if next := mustLapse(t, s, c.now()); !next.Equal(c.now().Add(week)) {
		t.Fatalf("it is due at %v", next)
	}
	mustLapse(t, s, c.add(week), again.ID)
}

// Ensure that the wait begins when a run becomes held: after its preparation,
// and for a fork's commit that is asked for by hand.
func TestLapse_CountsFromTheHold(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustPush(t, s, "d-1", 0, 1, fromFork(1), holdFor(week), func(a *store.Acceptance) {
		a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
	})
	if next := mustLapse(t, s, c.now()); !next.IsZero() {
		t.Fatalf("a preparing run is due at %v", next)
	}
	c.add(time.Hour)
	_, err := s.ResolveJob(t.Context(), "api-1", store.Resolution{})
	mustNil(t, err)
	if next := mustLapse(t, s, c.now()); !next.Equal(c.now().Add(week)) {
		t.Fatalf("it is due at %v", next)
	}
	c.add(time.Hour)
	r := manualRun("k", "main", 1)
	r.Draft.HoldFor = week
	byHand := mustRequest(t, s, r)
	mustState(t, s, byHand.ID, ci.Held)
	mustLapse(t, s, c.add(week), "api-1", byHand.ID)
}
