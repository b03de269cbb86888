package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func TestClaim_InAProjectTheOldestIsFirst(t *testing.T) {
	s := storetest.MustOpen(t)
	for i := range 12 {
		mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
	}
	for i := range 12 {
		r := mustClaim(t, s, fmt.Sprintf("api-%d", i+1))
		if r.State != ci.Running || r.Attempt != 1 || r.StartedAt.IsZero() || r.Internal.Boot != boot || len(r.Steps) != 2 {
			t.Fatalf("%+v", r)
		}
		if diff := cmp.Diff(r, mustRun(t, s, r.ID)); diff != "" {
			t.Fatalf("on record: %s", diff)
		}
		mustFinish(t, s, r, ci.Succeeded)
	}
	mustClaim(t, s, "")
}

func TestClaim_ProjectsTakeTurns(t *testing.T) {
	s := storetest.MustOpen(t)
	n := 0
	push := func(project string) {
		n++
		mustAccept(t, s, pushed(fmt.Sprint("d-", n), project, "main", n, n+1))
	}
	for range 4 {
		push("busy")
	}
	push("calm")
	push("also")
	push("calm")
	for _, want := range []string{
		"busy-1", // all have none running: the one that waited longest
		"calm-1", "also-1",
		"busy-2", // each has one: again the longest wait
		"calm-2", "busy-3", "busy-4",
	} {
		mustClaim(t, s, want)
	}
	mustClaim(t, s, "")
}

func TestClaim_NeverMoreThanMax(t *testing.T) {
	s := storetest.MustOpen(t)
	for i := range 5 {
		mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
	}
	var first ci.Run
	for i := range 2 {
		r, ok, err := s.ClaimAny(t.Context(), boot, 2)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if i == 0 {
			first = r
		}
	}
	if r, ok, err := s.ClaimAny(t.Context(), boot, 2); ok || err != nil {
		t.Fatalf("a third: %s, %v", r.ID, err)
	}
	active, err := s.Active(10)
	mustNil(t, err)
	if len(active) != 2 {
		t.Fatalf("%d active", len(active))
	}
	mustFinish(t, s, first, ci.Failed)
	if r, ok, err := s.ClaimAny(t.Context(), boot, 2); !ok || err != nil || r.ID != "api-3" {
		t.Fatalf("%s %v %v", r.ID, ok, err)
	}
}

// Ensure that many claimers get each run once.
func TestClaim_AtOnceGivesEachRunOnce(t *testing.T) {
	s := storetest.MustOpen(t)
	for i := range 30 {
		mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
	}
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			r, ok, err := s.ClaimAny(context.Background(), boot, 1000)
			if err != nil {
				t.Error(err)
			}
			if ok {
				mu.Lock()
				got = append(got, r.ID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(got)
	if len(got) != 30 || len(slices.Compact(got)) != 30 {
		t.Fatalf("%d claims: %v", len(got), got)
	}
}

func exit(n int) *int { return &n }

func TestSteps_AreOnRecordAsTheyHappen(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	r := mustClaim(t, s, "api-1")
	p := ci.Process{Machine: "m", PID: 42, Start: 7}
	mustNil(t, s.StepStarted(t.Context(), r.ID, 1, -1, false, p))
	if got := mustRun(t, s, r.ID); got.Internal.Process == nil || *got.Internal.Process != p || got.Steps[0].State != ci.StepPending {
		t.Fatalf("%+v", got)
	}
	mustNil(t, s.StepStarted(t.Context(), r.ID, 1, 0, false, p))
	if got := mustRun(t, s, r.ID); got.Steps[0].State != ci.StepRunning || got.Steps[0].StartedAt.IsZero() || got.Internal.Deploying {
		t.Fatalf("%+v", got)
	}
	mustNil(t, s.StepFinished(t.Context(), r.ID, 1, 0, ci.StepResult{State: ci.StepFailed, ExitCode: exit(3)}))
	got := mustRun(t, s, r.ID)
	if st := got.Steps[0]; st.Name != "test" || st.State != ci.StepFailed || *st.ExitCode != 3 || st.StartedAt.IsZero() {
		t.Fatalf("%+v", st)
	}
	mustNil(t, s.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Failed, Reason: "exit code 3"}))
	got = mustState(t, s, r.ID, ci.Failed)
	if got.Steps[1].State != ci.StepSkipped || got.Reason != "exit code 3" || got.FinishedAt.IsZero() || got.Internal.Process != nil {
		t.Fatalf("%+v", got)
	}
}

// Ensure that a result's own steps are not written into.
func TestFinishRun_LeavesTheCallersStepsAlone(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	r := mustClaim(t, s, "api-1")
	mine := []ci.StepResult{{Name: "test", State: ci.StepSucceeded}, {Name: "deploy", State: ci.StepPending}}
	mustNil(t, s.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Failed, Steps: mine}))
	if mine[1].State != ci.StepPending {
		t.Fatalf("the caller's step became %s", mine[1].State)
	}
	if got := mustRun(t, s, r.ID); got.Steps[1].State != ci.StepSkipped {
		t.Fatalf("%+v", got.Steps)
	}
}

// Ensure that nothing an older attempt says changes anything.
func TestSteps_OfALateAttemptChangeNothing(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	r := mustClaim(t, s, "api-1")
	_, err := s.Lost(t.Context(), r.ID, 1, true, "the server was killed")
	mustNil(t, err)
	late := func() {
		t.Helper()
		before, entries := mustRun(t, s, r.ID), len(entriesOf(t, s, r.ID, ""))
		for _, attempt := range []int{0, 1, 3} {
			for _, err := range []error{
				s.StepStarted(t.Context(), r.ID, attempt, 0, true, ci.Process{PID: 1}),
				s.StepFinished(t.Context(), r.ID, attempt, 0, ci.StepResult{State: ci.StepSucceeded}),
				s.FinishRun(t.Context(), r.ID, attempt, store.Result{State: ci.Succeeded}),
			} {
				if !errors.Is(err, store.ErrLate) {
					t.Fatalf("attempt %d: %v", attempt, err)
				}
			}
		}
		if diff := cmp.Diff(before, mustRun(t, s, r.ID)); diff != "" || len(entriesOf(t, s, r.ID, "")) != entries {
			t.Fatalf("changed: %s", diff)
		}
	}
	late()
	if r := mustClaim(t, s, "api-1"); r.Attempt != 2 {
		t.Fatalf("attempt %d", r.Attempt)
	}
	late()
	mustNil(t, s.FinishRun(t.Context(), r.ID, 2, store.Result{State: ci.Failed}))
	if err := s.FinishRun(t.Context(), r.ID, 2, store.Result{State: ci.Succeeded}); !errors.Is(err, store.ErrLate) {
		t.Fatalf("the same attempt ended twice: %v", err)
	}
	late()
	mustCode(t, s.FinishRun(t.Context(), "api-9", 1, store.Result{State: ci.Failed}), ci.CodeNotFound)
}

func TestDeploy_DoesNotBeginInARunThatIsToStop(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	r := mustClaim(t, s, "api-1")
	_, _, err := s.CancelRun(t.Context(), action(r.ID, "k"))
	mustNil(t, err)
	mustCode(t, s.StepStarted(t.Context(), r.ID, 1, 1, true, ci.Process{}), ci.CodeConflict, "asked to stop", r.ID)
	if got := mustRun(t, s, r.ID); got.Internal.Deploying || got.Steps[1].State != ci.StepPending {
		t.Fatalf("%+v", got)
	}
	mustNil(t, s.StepStarted(t.Context(), r.ID, 1, 0, false, ci.Process{}))
}

func TestLost(t *testing.T) {
	cancel := func(t *testing.T, s *store.Store, r ci.Run) {
		_, _, err := s.CancelRun(t.Context(), action(r.ID, "k"))
		mustNil(t, err)
	}
	deploy := func(t *testing.T, s *store.Store, r ci.Run) {
		mustNil(t, s.StepStarted(t.Context(), r.ID, r.Attempt, 1, true, ci.Process{}))
	}
	supersede := func(t *testing.T, s *store.Store, r ci.Run) {
		next := mustPush(t, s, "next", 1, 2)
		sc := mustScopes(t, s, 1)[0]
		mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: r.ID, By: next.ID, Reason: "newer"}}))
	}
	for what, tc := range map[string]struct {
		before  func(*testing.T, *store.Store, ci.Run)
		requeue bool
		want    ci.State
		kind    string
		status  string
	}{
		"it is interrupted":                             {nil, false, ci.Interrupted, ci.DecisionInterrupted, "error"},
		"it is queued again where that is wanted":       {nil, true, ci.Queued, ci.DecisionRequeued, "pending"},
		"cancelled where that had been asked for":       {cancel, true, ci.Cancelled, "", "error"},
		"superseded where that had been decided":        {supersede, true, ci.Superseded, "", "error"},
		"never queued again once it deploys":            {deploy, true, ci.Interrupted, ci.DecisionInterrupted, "error"},
		"interrupted while it deploys, without requeue": {deploy, false, ci.Interrupted, ci.DecisionInterrupted, "error"},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			mustPush(t, s, "d-1", 0, 1)
			r := mustClaim(t, s, "api-1")
			if tc.before != nil {
				tc.before(t, s, r)
			}
			got, err := s.Lost(t.Context(), r.ID, r.Attempt, tc.requeue, "the server was killed")
			mustNil(t, err)
			if got.State != tc.want || got.Internal.Process != nil || got.CancelRequested != nil {
				t.Fatalf("%+v", got)
			}
			if tc.kind != "" && mustDecided(t, s, r.ID, tc.kind).Reason != "the server was killed" {
				t.Fatal("the decision does not say why")
			}
			entries := entriesOf(t, s, r.ID, ci.OutboxGitHubStatus)
			if last := entries[len(entries)-1]; last.Event != tc.status || last.Final != got.State.Final() {
				t.Fatalf("told the world %q", last.Event)
			}
			again, err := s.Lost(t.Context(), r.ID, r.Attempt, false, "again")
			if err != nil || again.State != tc.want {
				t.Fatalf("a second recovery made it %s: %v", again.State, err)
			}
			if tc.want == ci.Queued {
				if !got.StartedAt.IsZero() || got.Attempt != 1 {
					t.Fatalf("%+v", got)
				}
				if r := mustClaim(t, s, r.ID); r.Attempt != 2 || len(r.Steps) != 2 || r.Steps[0].State != ci.StepPending {
					t.Fatalf("%+v", r)
				}
			}
		})
	}
}

// Ensure that a run which is queued again is looked at again: a newer one may
// have come while it ran, and an old commit must not be built after it.
func TestLost_ARequeuedRunMayBeSuperseded(t *testing.T) {
	s := storetest.MustOpen(t)
	old := mustPush(t, s, "d-1", 0, 1)
	old = mustClaim(t, s, old.ID)
	newer := mustPush(t, s, "d-2", 1, 2)
	for _, sc := range mustScopes(t, s, 1) {
		mustNil(t, s.Supersede(t.Context(), sc, nil)) // policy pending: the running one goes on
	}
	mustScopes(t, s, 0)
	_, err := s.Lost(t.Context(), old.ID, old.Attempt, true, "the server was killed")
	mustNil(t, err)
	sc := mustScopes(t, s, 1)[0]
	if len(sc.Moves) != 2 {
		t.Fatalf("%+v", sc)
	}
	mustNil(t, s.Supersede(t.Context(), sc, []store.Supersession{{Run: old.ID, By: newer.ID, Reason: "newer"}}))
	mustState(t, s, old.ID, ci.Superseded)
	mustScopes(t, s, 0)
}
