package store_test

import (
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// giveWay has one run take another's place, and then that one made anew.
func giveWay(t *testing.T, s *store.Store, list []store.Supersession, restore ...string) {
	t.Helper()
	mustNil(t, s.Supersede(t.Context(), store.Scope{}, list, restore...))
}

// Ensure that a run that gave way is made anew as it was, once, and only while
// no other run of its commit stands in for it.
func TestRenew(t *testing.T) {
	s := storetest.MustOpen(t)
	first := mustPush(t, s, "d-3", 2, 3, inGroup("g"))
	mustPush(t, s, "d-1", 0, 1)
	giveWay(t, s, []store.Supersession{{Run: first.ID, By: "api-2", Reason: "newer"}})
	giveWay(t, s, nil, first.ID)
	anew := mustState(t, s, "api-3", ci.Queued)
	if anew.Source != first.Source || anew.Spec != first.Spec || anew.Internal.Scope != first.Internal.Scope || !anew.Internal.Head ||
		anew.Internal.Group != "g" || anew.Cause.Kind != ci.CauseRerun || anew.Cause.Run != first.ID || anew.Cause.Receipt != first.Cause.Receipt {
		t.Fatalf("%+v", anew)
	}
	if d := mustDecided(t, s, anew.ID, ci.DecisionRecovered); d.OtherRun != first.ID {
		t.Fatalf("%+v", d)
	}
	mustScopes(t, s, 1)
	giveWay(t, s, nil, first.ID, "api-2") // it is there already, and the other did not give way
	if _, err := s.Run("api-4"); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("made twice: %v", err)
	}
}

// Ensure that a run that gave way before it was prepared, or approved, is made
// anew in the state that it began in.
func TestRenew_BeginsWhereTheRunBegan(t *testing.T) {
	for what, tc := range map[string]struct {
		change func(*store.Acceptance)
		want   ci.State
	}{
		"preparing": {undecided(ci.OnSkipReport), ci.Preparing},
		"held":      {fromFork(1), ci.Held},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			r := mustPush(t, s, "d-1", 0, 1, tc.change)
			mustPush(t, s, "d-2", 1, 2, tc.change)
			giveWay(t, s, []store.Supersession{{Run: r.ID, By: "api-2", Reason: "newer"}})
			giveWay(t, s, nil, r.ID)
			anew := mustState(t, s, "api-3", tc.want)
			if anew.Undecided() != r.Undecided() || anew.Fork != r.Fork {
				t.Fatalf("%+v", anew)
			}
		})
	}
}

// Ensure that where a commit was pushed twice and it is the younger run that
// gives way, the older one's result stands, also if it was told before.
func TestSupersede_OfOneCommitTheOtherSpeaks(t *testing.T) {
	for what, endFirst := range map[string]bool{"while it runs": false, "after it ended": true} {
		t.Run(what, func(t *testing.T) {
			c := newClock()
			s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
			p := &provider{t, s, c, map[string]told{}}
			old := mustPush(t, s, "d-1", 2, 3)
			mustClaim(t, s, old.ID)
			if endFirst {
				mustFinish(t, s, mustRun(t, s, old.ID), ci.Succeeded)
			}
			p.take(false)
			late := mustPush(t, s, "d-2", 0, 3)
			p.take(false)
			giveWay(t, s, []store.Supersession{{Run: late.ID, By: old.ID, Reason: "arrived late"}})
			if !endFirst {
				mustFinish(t, s, mustRun(t, s, old.ID), ci.Succeeded)
			}
			p.take(false)
			last := p.told[sha(3)+" docket/api"].last()
			if last.State != "success" || last.Description != old.ID+" succeeded" {
				t.Fatalf("the commit was told last: %+v", last)
			}
		})
	}
}
