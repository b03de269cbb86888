package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func TestReplay_JudgesAStoredDeliveryAgain(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "api", "main", 1, 2)
	mustAccept(t, s, pushed("d-1", "api", "main", 1, 2, ignored("no filter")))
	d := a.Drafts[0]
	d.Cause.Kind = ci.CauseReplay
	ask := store.Replay{ID: a.Delivery.ReceiptID(), Key: "k-1", By: operator, Drafts: []ci.Draft{d}}
	rec, replayed, err := s.Replay(t.Context(), ask)
	mustNil(t, err)
	if replayed || rec.Outcome != ci.Accepted || !slices.Equal(rec.Runs, []string{"api-1"}) || len(rec.Verdicts) != 2 {
		t.Fatalf("%v %+v", replayed, rec)
	}
	if got := mustRun(t, s, "api-1"); got.Internal.Scope != "" {
		t.Fatalf("a replay can supersede: scope %q", got.Internal.Scope)
	}
	again, replayed, err := s.Replay(t.Context(), ask)
	mustNil(t, err)
	if diff := cmp.Diff(rec, again); !replayed || diff != "" {
		t.Fatalf("the same key: %v %s", replayed, diff)
	}
	ask.Key = "k-2"
	rec, _, err = s.Replay(t.Context(), ask)
	mustNil(t, err)
	if !slices.Equal(rec.Runs, []string{"api-1", "api-2"}) {
		t.Fatalf("runs %v", rec.Runs)
	}
	none := store.Replay{ID: ask.ID, Key: "k-3", By: operator, Reason: "filtered now"}
	rec, _, err = s.Replay(t.Context(), none)
	mustNil(t, err)
	if rec.Outcome != ci.Accepted || rec.Verdicts[3].Reason != "filtered now" {
		t.Fatalf("%+v", rec)
	}
	ask.ID.Delivery = "none"
	_, _, err = s.Replay(t.Context(), ask)
	mustCode(t, err, ci.CodeNotFound)
	if !errors.As(err, new(*ci.Error)) {
		t.Fatal(err)
	}
	mustDecided(t, s, "api-1", ci.DecisionReplayed)
}

// Ensure that a replay of a fork's pull request leaves its commit marked as
// the fork's: running it by hand later does not make it ours.
func TestReplay_OfAForkMarksItsCommit(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "api", "patch", 1, 2, fromFork(5))
	mustAccept(t, s, pushed("d-1", "api", "patch", 1, 2, fromFork(5), ignored("no filter")))
	d := a.Drafts[0]
	d.Cause.Kind = ci.CauseReplay
	_, _, err := s.Replay(t.Context(), store.Replay{ID: a.Delivery.ReceiptID(), By: operator, Drafts: []ci.Draft{d}})
	mustNil(t, err)
	mustState(t, s, "api-1", ci.Held)
	r, _, err := s.Request(t.Context(), manualRun("k", "main", 2))
	mustNil(t, err)
	if !r.Fork || r.State != ci.Held {
		t.Fatalf("run by hand of a fork's commit: fork %v, %s", r.Fork, r.State)
	}
}

// Ensure that a receipt's list of runs has an end which is said in words.
func TestReplay_TooManyRunsAreRefused(t *testing.T) {
	s := storetest.MustOpen(t)
	long := strings.Repeat("p", 60)
	a := pushed("d-1", long, "main", 1, 2)
	mustAccept(t, s, a)
	d := a.Drafts[0]
	d.Cause.Kind = ci.CauseReplay
	d.Spec.Report = false
	ask := store.Replay{ID: a.Delivery.ReceiptID(), By: operator, Drafts: slices.Repeat([]ci.Draft{d}, 500)}
	for range 2 {
		_, _, err := s.Replay(t.Context(), ask)
		mustNil(t, err)
	}
	_, _, err := s.Replay(t.Context(), ask)
	mustCode(t, err, ci.CodeConflict, "github/12345/d-1")
	rec, err := s.Receipt(ask.ID)
	mustNil(t, err)
	if len(rec.Runs) != 1001 {
		t.Fatalf("%d runs", len(rec.Runs))
	}
}

// Ensure that a project may be called anything without its requests' keys
// meeting those of replays.
func TestReplay_KeysAreTheirOwn(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "receipts", "main", 1, 2)
	mustAccept(t, s, a)
	req := manualRun("k", "main", 3)
	req.Project, req.Draft.Project = "receipts", "receipts"
	_, _, err := s.Request(t.Context(), req)
	mustNil(t, err)
	_, replayed, err := s.Replay(t.Context(), store.Replay{ID: a.Delivery.ReceiptID(), Key: "k", By: operator, Reason: "x"})
	if err != nil || replayed {
		t.Fatalf("%v, %v", replayed, err)
	}
}
