package store_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// openAt opens a store whose clock the test turns.
func openAt(t *testing.T, path string, c *clock) *store.Store {
	t.Helper()
	return storetest.MustOpenAt(t, path, store.Options{Now: c.now})
}

func mustStart(t *testing.T, s *store.Store) (ci.Gap, bool) {
	t.Helper()
	g, ok, _, err := s.Began(context.Background())
	mustNil(t, err)
	return g, ok
}

// Ensure that the time in which docket was away is a gap: exact after a stop
// in order, from the last sign of life after a kill.
func TestBegan_ShowsTheGap(t *testing.T) {
	ctx := context.Background()
	c, path := newClock(), filepath.Join(t.TempDir(), "docket.db")
	s := openAt(t, path, c)
	if _, ok := mustStart(t, s); ok {
		t.Fatal("a gap before the first start")
	}
	c.add(time.Hour)
	stopped := c.now()
	mustNil(t, s.Stopped(ctx, stopped))
	storetest.MustClose(t, s)

	c.add(10 * time.Minute)
	s = openAt(t, path, c)
	g, ok := mustStart(t, s)
	if !ok || !g.Exact || !g.From.Equal(ci.At(stopped).Time) || !g.To.Equal(ci.At(c.now()).Time) {
		t.Fatalf("gap %+v, %v", g, ok)
	}
	c.add(time.Hour)
	mustPush(t, s, "a", 0, 1) // a sign of life by the way
	alive := c.now()
	c.add(5 * time.Second)
	storetest.MustClose(t, s) // as good as killed

	c.add(20 * time.Minute)
	s = openAt(t, path, c)
	if g, ok = mustStart(t, s); !ok || g.Exact || !g.From.Equal(ci.At(alive).Time) {
		t.Fatalf("gap %+v, %v; want it from %s", g, ok, alive)
	}
	list, next, err := s.Gaps(store.Page{Limit: 1})
	if err != nil || len(list) != 1 || list[0] != g || next == "" {
		t.Fatalf("gaps %+v, %q, %v", list, next, err)
	}
	if list, next, err = s.Gaps(store.Page{Limit: 1, Cursor: next}); err != nil || len(list) != 1 || !list[0].Exact || next != "" {
		t.Fatalf("gaps %+v, %q, %v", list, next, err)
	}
}

// Ensure that an idle docket writes a sign of life a minute and no more.
func TestBeat_IsRare(t *testing.T) {
	c := newClock()
	var writes atomic.Int32
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now, Failpoint: func(point string) error {
		if point == store.FailAfterCommit {
			writes.Add(1)
		}
		return nil
	}})
	mustStart(t, s)
	for range 600 { // ten minutes
		mustNil(t, s.Beat(context.Background()))
		c.add(time.Second)
	}
	if n := writes.Load() - 1; n < 9 || n > 10 { // the first is the start's
		t.Fatalf("%d writes in ten minutes", n)
	}
}

func missedDelivery(id string, at time.Time) ci.MissedDelivery {
	return ci.MissedDelivery{
		Receipt: "github/12345/" + id, Integration: "github", Event: "push", Hook: ci.Hook{App: true},
		ProviderID: 7, FirstAt: ci.At(at), LastAt: ci.At(at), StatusCode: 502,
	}
}

// Ensure that missed deliveries are on record until they arrive, that giving
// up is a decision, and that the gap they were made in says what became of them.
func TestRecordComparison(t *testing.T) {
	ctx := context.Background()
	c, path := newClock(), filepath.Join(t.TempDir(), "docket.db")
	s := openAt(t, path, c)
	mustStart(t, s)
	mustNil(t, s.Stopped(ctx, c.now()))
	c.add(time.Minute)
	during := c.now()
	c.add(time.Minute)
	mustStart(t, s)

	a, b, other := missedDelivery("a", during), missedDelivery("b", during), missedDelivery("c", c.now().Add(time.Minute))
	mustNil(t, s.RecordComparison(ctx, store.Comparison{Changed: []ci.MissedDelivery{a, b, other}}))
	if list, err := s.Missed("github", 0); err != nil || len(list) != 3 || list[0] != a {
		t.Fatalf("missed %+v, %v", list, err)
	}
	b.GaveUp = "it was refused"
	mustNil(t, s.RecordComparison(ctx, store.Comparison{Changed: []ci.MissedDelivery{b}, GaveUp: []ci.MissedDelivery{b}, Arrived: []ci.MissedDelivery{a}}))
	mustNil(t, s.RecordComparison(ctx, store.Comparison{Arrived: []ci.MissedDelivery{a}})) // again changes nothing
	if waiting, gaveUp, err := s.MissedCounts("github"); err != nil || waiting != 1 || gaveUp != 1 {
		t.Fatalf("%d wait, %d were given up, %v", waiting, gaveUp, err)
	}
	mustNil(t, s.RecordRecovery(ctx, ci.Recovery{Integration: "github"}, true))
	gaps, _, err := s.Gaps(store.Page{})
	if err != nil || gaps[0].Missed != 2 || gaps[0].Recovered != 1 || gaps[0].GaveUp != 1 || gaps[0].ComparedAt.IsZero() {
		t.Fatalf("gap %+v, %v", gaps[0], err)
	}
	list, _, err := s.Decisions("", store.Page{})
	if err != nil || len(list) != 1 || list[0].Kind != ci.DecisionUnrecovered || list[0].Receipt != b.Receipt || list[0].Integration != "github" || list[0].By.Kind != ci.ByScheduler {
		t.Fatalf("decisions %+v, %v", list, err)
	}
}

// Ensure that a delivery is known by integration, installation and id, and
// also where the provider lists it under another installation.
func TestKnownReceipts(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "a", 0, 1)
	ids := []ci.ReceiptID{
		ci.NewReceiptID("github", 12345, "a"), ci.NewReceiptID("github", 0, "a"),
		ci.NewReceiptID("github", 12345, "b"), ci.NewReceiptID("other", 12345, "a"),
	}
	known, err := s.KnownReceipts(ids)
	mustNil(t, err)
	for i, want := range []bool{true, true, false, false} {
		if known[ids[i]] != want {
			t.Errorf("%s is known: %v, want %v", ids[i], known[ids[i]], want)
		}
	}
}
