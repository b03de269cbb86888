package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// mustScopes returns the scheduler's list, which has n scopes.
func mustScopes(t must, s *store.Store, n int) []store.Scope {
	t.Helper()
	list, err := s.Scopes(100)
	if err != nil {
		t.Fatalf("scopes: %v", err)
	}
	if len(list) != n {
		t.Fatalf("%d scopes are listed, want %d", len(list), n)
	}
	return list
}

func TestScopes_ListWhatAnotherRunJoined(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	mustScopes(t, s, 0)
	mustPush(t, s, "d-2", 1, 2)
	sc := mustScopes(t, s, 1)[0]
	if sc.Project != "api" || len(sc.Moves) != 2 || sc.Moves[0].Run.ID != "api-1" || sc.Moves[1].Run.ID != "api-2" ||
		sc.Moves[1].Push != (ci.Push{Run: "api-2", Before: sha(1), After: sha(2)}) {
		t.Fatalf("%+v", sc)
	}
	mustAccept(t, s, pushed("d-3", "api", "dev", 0, 3))
	mustAccept(t, s, pushed("d-4", "web", "main", 1, 3))
	mustScopes(t, s, 1)
	mustAccept(t, s, pushed("d-5", "web", "main", 3, 4))
	mustScopes(t, s, 2)
	if list, err := s.Scopes(1); err != nil || len(list) != 1 {
		t.Fatalf("limit 1: %d, %v", len(list), err)
	}
}

func TestScopes_AreNotListedWithoutNeed(t *testing.T) {
	s := storetest.MustOpen(t)
	none := withPolicy(ci.SupersedeNone)
	mustPush(t, s, "d-1", 0, 1, none)
	mustPush(t, s, "d-2", 1, 2, none)
	mustScopes(t, s, 0)
	mustAccept(t, s, pushed("d-3", "web", "main", 0, 1))
	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Succeeded)
	mustFinish(t, s, mustClaim(t, s, "api-2"), ci.Succeeded)
	mustFinish(t, s, mustClaim(t, s, "web-1"), ci.Succeeded)
	mustAccept(t, s, pushed("d-4", "web", "main", 1, 2)) // the one before has ended
	mustScopes(t, s, 0)
	mustRequest(t, s, manualRun("k", "main", 2))
	mustScopes(t, s, 0)
}

// Ensure that a push which arrives after its successor is on the list too,
// even if the successor has ended.
func TestScopes_ALatePushIsListed(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-2", 1, 2)
	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Succeeded)
	late := mustPush(t, s, "d-1", 0, 1)
	sc := mustScopes(t, s, 1)[0]
	if len(sc.Moves) != 2 {
		t.Fatalf("%+v", sc)
	}
	pushes := []ci.Push{sc.Moves[0].Push, sc.Moves[1].Push}
	if ci.Newest(pushes) != 0 {
		t.Fatal("the late one passes for the newest")
	}
	mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: late.ID, By: "api-1", Reason: "it arrived late"}}))
	if r := mustState(t, s, late.ID, ci.Superseded); r.SupersededBy != "api-1" {
		t.Fatalf("%+v", r)
	}
	if h, err := s.HeadOf("api", "main"); err != nil || h.Commit != sha(2) || h.State != ci.Succeeded {
		t.Fatalf("the head moved back: %+v, %v", h, err)
	}
}

func TestSupersede_EndsAPendingRunWithItsReasons(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	mustPush(t, s, "d-2", 1, 2)
	sc := mustScopes(t, s, 1)[0]
	mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: "api-1", By: "api-2", Reason: "a newer push of main"}}))
	mustScopes(t, s, 0)
	r := mustState(t, s, "api-1", ci.Superseded)
	if r.SupersededBy != "api-2" || !strings.Contains(r.Reason, "api-2") || r.FinishedAt.IsZero() {
		t.Fatalf("%+v", r)
	}
	for _, run := range []string{"api-1", "api-2"} {
		d := mustDecided(t, s, run, ci.DecisionSuperseded)
		if d.Run != "api-1" || d.OtherRun != "api-2" || d.Reason != "a newer push of main" || d.By.Kind != ci.ByScheduler {
			t.Fatalf("%+v", d)
		}
	}
	e := entriesOf(t, s, "api-1", "")
	if last := e[len(e)-1]; !last.Final || last.Event != "error" || !strings.Contains(string(last.Payload), "api-1 was superseded by run api-2") {
		t.Fatalf("%+v %s", last, last.Payload)
	}
	mustClaim(t, s, "api-2")
	mustClaim(t, s, "")
}

// Ensure that a decision is held against what the run has become since.
func TestSupersede_LooksAgain(t *testing.T) {
	for what, tc := range map[string]struct {
		meanwhile func(*testing.T, *store.Store, ci.Run)
		asked     bool
		want      ci.State
	}{
		"a running one is asked to stop": {func(*testing.T, *store.Store, ci.Run) {}, true, ci.Running},
		"one that has ended is left alone": {func(t *testing.T, s *store.Store, r ci.Run) {
			mustFinish(t, s, r, ci.Succeeded)
		}, false, ci.Succeeded},
		"one that deploys is left alone": {func(t *testing.T, s *store.Store, r ci.Run) {
			mustNil(t, s.StepStarted(t.Context(), r.ID, 1, 1, true, ci.Process{}))
		}, false, ci.Running},
		"one whose cancel was asked for stays a cancelled one": {func(t *testing.T, s *store.Store, r ci.Run) {
			_, _, err := s.CancelRun(t.Context(), action(r.ID, "k"))
			mustNil(t, err)
		}, false, ci.Running},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			mustPush(t, s, "d-1", 0, 1)
			mustPush(t, s, "d-2", 1, 2)
			sc := mustScopes(t, s, 1)[0] // read while api-1 was pending
			r := mustClaim(t, s, "api-1")
			tc.meanwhile(t, s, r)
			mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: "api-1", By: "api-2", Reason: "newer"}}))
			got := mustState(t, s, "api-1", tc.want)
			asked := got.CancelRequested != nil && got.CancelRequested.Into == ci.Superseded
			if asked != tc.asked || got.SupersededBy != "" {
				t.Fatalf("asked %v: %+v", asked, got)
			}
			superseded := 0
			for _, d := range decisionsOf(t, s, "api-1") {
				if d.Kind == ci.DecisionSuperseded {
					superseded++
				}
			}
			if (superseded == 1) != tc.asked {
				t.Fatalf("%d decisions", superseded)
			}
			mustScopes(t, s, 0)
			if tc.asked {
				mustNil(t, s.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Superseded, Reason: got.CancelRequested.Reason}))
				if r := mustState(t, s, r.ID, ci.Superseded); r.SupersededBy != "api-2" {
					t.Fatalf("%+v", r)
				}
			}
		})
	}
}

// Ensure that a scope stays on the list if a run joined it after it was read.
func TestSupersede_DoesNotForgetWhoJoinedSince(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	mustPush(t, s, "d-2", 1, 2)
	sc := mustScopes(t, s, 1)[0]
	mustPush(t, s, "d-3", 2, 3)
	mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: "api-1", By: "api-2", Reason: "newer"}}))
	sc = mustScopes(t, s, 1)[0]
	if len(sc.Moves) != 3 || sc.Moves[0].Run.State != ci.Superseded {
		t.Fatalf("%+v", sc)
	}
	mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: "api-2", By: "api-3", Reason: "newer"}}))
	mustScopes(t, s, 0)
}

// Ensure that a burst of pushes is decided on whole: none of those that wait
// is out of sight.
func TestScopes_ShowAllThatWait(t *testing.T) {
	s := storetest.MustOpen(t)
	const n = 90
	for i := range n {
		mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
	}
	sc := mustScopes(t, s, 1)[0]
	var list []store.Supersession
	newest := fmt.Sprintf("api-%d", n)
	for _, m := range sc.Moves {
		if m.Run.ID != newest {
			list = append(list, store.Supersession{Run: m.Run.ID, By: newest, Reason: "newer"})
		}
	}
	mustNil(t, s.Supersede(t.Context(), sc, list))
	if st, err := s.Stats(); err != nil || st.Queued != 1 {
		t.Fatalf("%d of %d pushes still wait: %v", st.Queued, n, err)
	}
	for i := 1; i < len(sc.Moves); i++ {
		if sc.Moves[i-1].Run.Number >= sc.Moves[i].Run.Number {
			t.Fatal("not in order of arrival")
		}
	}
}

// Ensure that a branch's head is told from the chain of moves, and its newest
// run is the newest of that commit, by whoever.
func TestHeads(t *testing.T) {
	s := storetest.MustOpen(t)
	if h, err := s.Heads("api"); err != nil || len(h) != 0 {
		t.Fatalf("%v %v", h, err)
	}
	_, err := s.HeadOf("api", "main")
	mustCode(t, err, ci.CodeNotFound, "main", "api")
	mustPush(t, s, "d-1", 0, 1)
	mustPush(t, s, "d-3", 2, 3)
	mustPush(t, s, "d-2", 1, 2)
	mustAccept(t, s, pushed("d-4", "api", "dev", 0, 9))
	mustAccept(t, s, pushed("d-5", "api", "de", 0, 8))
	mustAccept(t, s, pushed("d-6", "api", "dev/x", 0, 7))
	mustAccept(t, s, pushed("d-7", "api", "main", 3, 4, fromFork(1))) // a pull request moves no branch
	rerun := mustRequest(t, s, manualRun("k", "main", 3))
	mustRequest(t, s, manualRun("k-2", "main", 1)) // an older commit by hand moves nothing either
	heads, err := s.Heads("api")
	mustNil(t, err)
	got := ""
	for _, h := range heads {
		got += fmt.Sprintf("%s=%s@%s ", h.Branch, h.Run, strings.TrimLeft(h.Commit, "0"))
	}
	if want := "de=api-5@8 dev=api-4@9 dev/x=api-6@7 main=" + rerun.ID + "@3 "; got != want {
		t.Fatalf("heads %s, want %s", got, want)
	}
}

// Ensure that no run is claimed while it may still have to give way, and that
// it is as soon as that is decided.
func TestClaim_WaitsForTheDecision(t *testing.T) {
	ctx := context.Background()
	s := storetest.MustOpen(t)
	newer := mustPush(t, s, "newer", 1, 2)
	if r, ok, err := s.Claim(ctx, "boot", 9); err != nil || !ok || r.ID != newer.ID {
		t.Fatalf("claimed %s %v, %v", r.ID, ok, err)
	}
	late := mustPush(t, s, "late", 0, 1)
	if r, ok, err := s.Claim(ctx, "boot", 9); err != nil || ok {
		t.Fatalf("%s was claimed before it was decided on, %v", r.ID, err)
	}
	scopes, err := s.Scopes(9)
	mustNil(t, err)
	if len(scopes) != 1 {
		t.Fatalf("%d scopes", len(scopes))
	}
	mustNil(t, s.Supersede(ctx, scopes[0], nil))
	if r, ok, err := s.Claim(ctx, "boot", 9); err != nil || !ok || r.ID != late.ID {
		t.Fatalf("claimed %s %v, %v", r.ID, ok, err)
	}
}
