package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

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
		r, ok, err := s.Claim(t.Context(), boot, 2)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if i == 0 {
			first = r
		}
	}
	if r, ok, err := s.Claim(t.Context(), boot, 2); ok || err != nil {
		t.Fatalf("a third: %s, %v", r.ID, err)
	}
	active, err := s.Active(10)
	mustNil(t, err)
	if len(active) != 2 {
		t.Fatalf("%d active", len(active))
	}
	mustFinish(t, s, first, ci.Failed)
	if r, ok, err := s.Claim(t.Context(), boot, 2); !ok || err != nil || r.ID != "api-3" {
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
			r, ok, err := s.Claim(context.Background(), boot, 1000)
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

func TestJobs_AreDueInOrderOfCreation(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	var ids []string
	for i, project := range []string{"web", "api", "zoo", "api"} {
		r := manualRun(fmt.Sprint("k-", i), "main", 0)
		r.Project, r.Draft.Project = project, project
		ids = append(ids, mustRequest(t, s, r).ID)
	}
	jobs := func(limit int) (got []string, next time.Time) {
		t.Helper()
		runs, next, err := s.Jobs(c.now(), limit)
		mustNil(t, err)
		for _, r := range runs {
			got = append(got, r.ID)
		}
		return got, next
	}
	if got, next := jobs(10); !slices.Equal(got, ids) || !next.IsZero() {
		t.Fatalf("%v, %v; want %v", got, next, ids)
	}
	if got, _ := jobs(2); !slices.Equal(got, ids[:2]) {
		t.Fatalf("two: %v", got)
	}
	woke, stop := s.Watch(store.TopicRuns)
	defer stop()
	mustNil(t, s.DelayJob(t.Context(), ids[0], c.now().Add(time.Minute), "no route"))
	mustNil(t, s.DelayJob(t.Context(), ids[2], c.now().Add(time.Hour), "no route"))
	if !woken(woke) {
		t.Fatal("nobody was told of the new time")
	}
	if r := mustRun(t, s, ids[0]); r.Internal.Job.Attempts != 1 || r.Internal.Job.LastErr != "no route" {
		t.Fatalf("%+v", r.Internal.Job)
	}
	if got, next := jobs(10); !slices.Equal(got, []string{ids[1], ids[3]}) || !next.Equal(c.now().Add(time.Minute)) {
		t.Fatalf("%v, %v", got, next)
	}
	c.add(time.Minute)
	if got, next := jobs(10); !slices.Equal(got, []string{ids[0], ids[1], ids[3]}) || !next.Equal(c.now().Add(59*time.Minute)) {
		t.Fatalf("%v, %v", got, next)
	}
}

func TestResolveJob(t *testing.T) {
	spec := reporting()
	spec.Steps = spec.Steps[:1]
	t.Run("freezes commit and spec and queues", func(t *testing.T) {
		s := storetest.MustOpen(t)
		r := mustRequest(t, s, manualRun("k", "main", 0))
		mustClaim(t, s, "")
		if n := len(entriesOf(t, s, r.ID, "")); n != 0 {
			t.Fatalf("%d entries before the commit is known", n)
		}
		got, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Commit: sha(5), Spec: &spec})
		mustNil(t, err)
		if got.State != ci.Queued || got.Source.Commit != sha(5) || got.Spec != spec.Digest() || len(got.Steps) != 1 || got.Internal.Job != nil {
			t.Fatalf("%+v", got)
		}
		if h, err := s.HeadOf("api", "main"); err != nil || h.Commit != sha(5) || h.Run != r.ID {
			t.Fatalf("head %+v, %v", h, err)
		}
		if e := entriesOf(t, s, r.ID, ""); len(e) != 1 || e[0].Target != "acme/api@"+sha(5) {
			t.Fatalf("%+v", e)
		}
		again, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Commit: sha(6)})
		if err != nil || again.Source.Commit != sha(5) {
			t.Fatalf("resolved twice: %+v, %v", again, err)
		}
		mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
	})
	t.Run("ends as failed with the reason", func(t *testing.T) {
		s := storetest.MustOpen(t)
		r := mustRequest(t, s, manualRun("k", "main", 0))
		got, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Failed: "no branch main"})
		mustNil(t, err)
		if got.State != ci.Failed || got.Reason != "no branch main" {
			t.Fatalf("%+v", got)
		}
		mustNil(t, s.DelayJob(t.Context(), r.ID, time.Now(), "late"))
		mustState(t, s, r.ID, ci.Failed)
	})
	t.Run("of a fork is held, with one status", func(t *testing.T) {
		s := storetest.MustOpen(t)
		a := pushed("d-1", "api", "patch", 1, 2, fromFork(5))
		a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
		r := mustAccept(t, s, a).Runs[0]
		got, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Spec: &spec})
		mustNil(t, err)
		if got.State != ci.Held || got.Source.Commit != sha(2) {
			t.Fatalf("%+v", got)
		}
		if e := entriesOf(t, s, r.ID, ""); len(e) != 1 || e[0].Event != "pending" {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("into a spec that reports where the first did not, and the other way round", func(t *testing.T) {
		for _, report := range []bool{false, true} {
			s := storetest.MustOpen(t)
			first, then := reporting(), spec
			first.Report, then.Report = !report, report
			a := pushed("d-1", "api", "main", 1, 2, withSpec(first))
			a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
			r := mustAccept(t, s, a).Runs[0]
			_, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Spec: &then})
			mustNil(t, err)
			broken, err := s.Verify(t.Context())
			if err != nil || len(broken) > 0 {
				t.Fatalf("report %v: %q, %v", report, broken, err)
			}
			mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
		}
	})
	t.Run("without a commit is a fault", func(t *testing.T) {
		s := storetest.MustOpen(t)
		r := mustRequest(t, s, manualRun("k", "main", 0))
		_, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{})
		mustCode(t, err, ci.CodeInternal)
		mustState(t, s, r.ID, ci.Preparing)
	})
}
