package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

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

// Ensure that a time-out is on record as a decision, and a plain failure is not.
func TestFinishRun_ATimeOutIsADecision(t *testing.T) {
	s := storetest.MustOpen(t)
	for i, reason := range []string{ci.ReasonTimedOut, ""} {
		r := mustPush(t, s, fmt.Sprint(i), 2*i, 2*i+1, withPolicy(ci.SupersedeNone))
		r = mustClaim(t, s, r.ID)
		mustNil(t, s.FinishRun(context.Background(), r.ID, r.Attempt, store.Result{State: ci.Failed, Reason: reason}))
		timedOut := slices.ContainsFunc(decisionsOf(t, s, r.ID), func(d ci.Decision) bool { return d.Kind == ci.DecisionTimedOut })
		if timedOut != (reason != "") {
			t.Errorf("%q: a decision about the time is %v", reason, timedOut)
		}
	}
}
