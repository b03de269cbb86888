package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// manualRun asks for a commit of a branch of api; commit 0 is to be resolved.
func manualRun(key, branch string, commit int) store.Request {
	r := store.Request{
		Project: "api", Key: key, Digest: fmt.Sprintf("%s@%d", branch, commit), By: operator,
		Draft: ci.Draft{
			Project: "api", Integration: "github", State: ci.Queued, Spec: reporting(), Context: "docket/api",
			Cause:  ci.Cause{Kind: ci.CauseRequest, Event: ci.EventManual, Actor: operator.Name},
			Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/" + branch, Branch: branch, Commit: sha(commit)},
		},
	}
	if commit == 0 {
		r.Draft.State, r.Draft.Job = ci.Preparing, &ci.Job{Resolve: true}
	}
	return r
}

func mustRequest(t must, s *store.Store, r store.Request) ci.Run {
	t.Helper()
	run, _, err := s.Request(context.Background(), r)
	if err != nil {
		t.Fatalf("request: %v", err)
	}
	return run
}

func action(run, key string) store.Action { return store.Action{Run: run, Key: key, By: operator} }

func TestRequest_AKeyStandsForOneRequest(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	first := mustRequest(t, s, manualRun("k", "main", 1))
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{})
	again, replayed, err := s.Request(t.Context(), manualRun("k", "main", 1))
	mustNil(t, err)
	if diff := cmp.Diff(first, again); !replayed || diff != "" {
		t.Fatalf("replayed %v: %s", replayed, diff)
	}
	_, replayed, err = s.Request(t.Context(), manualRun("k", "main", 2))
	mustCode(t, err, ci.CodeConflict, first.ID)
	var e *ci.Error
	if !errors.As(err, &e) || e.ExistingRun != first.ID || replayed {
		t.Fatalf("%v %+v", replayed, e)
	}
	other := manualRun("k", "main", 1)
	other.Project, other.Draft.Project = "web", "web"
	if r := mustRequest(t, s, other); r.ID != "web-1" {
		t.Fatalf("the key reaches into another project: %s", r.ID)
	}
	if r := mustRequest(t, s, manualRun("K", "main", 1)); r.ID != "api-2" {
		t.Fatalf("another key gave %s", r.ID)
	}
}

func TestRequest_FiftyAtOnceMakeOneRun(t *testing.T) {
	s := storetest.MustOpen(t)
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			r, replayed, err := s.Request(context.Background(), manualRun("k", "main", 1))
			if err != nil || r.ID != "api-1" {
				t.Errorf("%s %v", r.ID, err)
			}
			if !replayed {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if _, err := s.Run("api-2"); fresh.Load() != 1 || ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("%d were the first; api-2: %v", fresh.Load(), err)
	}
}

// Ensure that a refused action leaves its key unused.
func TestRequest_ARefusedOneDoesNotUseUpItsKey(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustRequest(t, s, manualRun("k-1", "main", 1))
	_, _, err := s.Rerun(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "queued")
	_, _, err = s.Approve(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "queued")
	_, replayed, err := s.CancelRun(t.Context(), action(r.ID, "k-2"))
	if err != nil || replayed {
		t.Fatalf("%v, %v", replayed, err)
	}
	_, _, err = s.Rerun(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "idempotency key", r.ID)
}

func TestCancel_EndsAPendingRunAtOnce(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustPush(t, s, "d-1", 0, 1)
	a := action(r.ID, "k")
	a.Reason = "wrong branch"
	first, replayed, err := s.CancelRun(t.Context(), a)
	mustNil(t, err)
	if replayed || first.State != ci.Cancelled || first.Reason != "cancelled by mona: wrong branch" || first.Steps[0].State != ci.StepSkipped {
		t.Fatalf("%+v", first)
	}
	if d := mustDecided(t, s, r.ID, ci.DecisionCancelled); d.By != operator || d.Reason != first.Reason {
		t.Fatalf("%+v", d)
	}
	again, replayed, err := s.CancelRun(t.Context(), a)
	mustNil(t, err)
	first.Internal, again.Internal = ci.Internal{}, ci.Internal{}
	if diff := cmp.Diff(first, again); !replayed || diff != "" {
		t.Fatalf("not the first answer: %v %s", replayed, diff)
	}
	_, _, err = s.CancelRun(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "cancelled")
	_, _, err = s.CancelRun(t.Context(), action("api-77", "k-3"))
	mustCode(t, err, ci.CodeNotFound, "api-77")
	_, _, err = s.CancelRun(t.Context(), action("nonsense", "k-3"))
	mustCode(t, err, ci.CodeNotFound)
	mustClaim(t, s, "")
}

// Ensure that a repeat gives the answer of its time, not of today.
func TestCancel_OfARunningOneAsksAndRepeatsTheFirstAnswer(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustPush(t, s, "d-1", 0, 1)
	r = mustClaim(t, s, r.ID)
	c, stop := s.Watch(store.TopicRuns)
	defer stop()
	first, _, err := s.CancelRun(t.Context(), action(r.ID, "k"))
	mustNil(t, err)
	if first.State != ci.Running || first.CancelRequested == nil || first.CancelRequested.Into != ci.Cancelled || !woken(c) {
		t.Fatalf("%+v", first)
	}
	_, _, err = s.CancelRun(t.Context(), action(r.ID, "k-2"))
	mustNil(t, err)
	if n := len(decisionsOf(t, s, r.ID)); n != 1 {
		t.Fatalf("%d decisions for one cancel", n)
	}
	mustFinish(t, s, r, ci.Cancelled)
	again, replayed, err := s.CancelRun(t.Context(), action(r.ID, "k"))
	mustNil(t, err)
	if !replayed || again.State != ci.Running || again.CancelRequested == nil {
		t.Fatalf("%v %+v", replayed, again)
	}
	if got := mustState(t, s, r.ID, ci.Cancelled); got.CancelRequested != nil {
		t.Fatal("an ended run is still being stopped")
	}
}

func TestRerun_IsANewRunOfTheSameCommitAndSpec(t *testing.T) {
	s := storetest.MustOpen(t)
	old := mustPush(t, s, "d-1", 0, 1, func(a *store.Acceptance) { a.Drafts[0].Inputs = map[string]string{"target": "staging"} })
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Failed)
	first, replayed, err := s.Rerun(t.Context(), action(old.ID, "k"))
	mustNil(t, err)
	if replayed || first.ID != "api-2" || first.State != ci.Queued || first.Spec != old.Spec || first.Source.Commit != old.Source.Commit ||
		first.Cause.Kind != ci.CauseRerun || first.Cause.Run != old.ID || first.Inputs["target"] != "staging" || first.Internal.Scope != "" {
		t.Fatalf("%+v", first)
	}
	mustDecided(t, s, first.ID, ci.DecisionRerun)
	again, replayed, err := s.Rerun(t.Context(), action(old.ID, "k"))
	mustNil(t, err)
	if !replayed || again.ID != first.ID {
		t.Fatalf("%v %s", replayed, again.ID)
	}
	list, err := s.Scopes(10)
	mustNil(t, err)
	if len(list) != 0 {
		t.Fatalf("a rerun wants to supersede: %+v", list)
	}
}

func TestRerun_OfWhatNeverHadACommitIsRefused(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustRequest(t, s, manualRun("k", "main", 0))
	_, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Failed: "no such branch"})
	mustNil(t, err)
	_, _, err = s.Rerun(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "before it had a commit")
}

func TestApprove_LetsAHeldRunGo(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustAccept(t, s, pushed("d-1", "api", "patch", 1, 2, fromFork(5))).Runs[0]
	mustState(t, s, r.ID, ci.Held)
	mustClaim(t, s, "")
	first, _, err := s.Approve(t.Context(), action(r.ID, "k"))
	mustNil(t, err)
	if first.State != ci.Queued || !first.Internal.Approved {
		t.Fatalf("%+v", first)
	}
	if d := mustDecided(t, s, r.ID, ci.DecisionApproved); d.Reason != "approved for commit "+sha(2) {
		t.Fatalf("%+v", d)
	}
	_, _, err = s.Approve(t.Context(), action(r.ID, "k-2"))
	mustCode(t, err, ci.CodeConflict, "queued")
	again, replayed, err := s.Approve(t.Context(), action(r.ID, "k"))
	if err != nil || !replayed || again.State != ci.Queued {
		t.Fatalf("%v %v", replayed, err)
	}
	mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
	rerun, _, err := s.Rerun(t.Context(), action(r.ID, "k-3"))
	mustNil(t, err)
	if rerun.State != ci.Held || !rerun.Fork || rerun.Internal.Approved {
		t.Fatalf("approval went over to the rerun: %+v", rerun)
	}
}

// Ensure that a fork's commit stays a fork's whoever asks for it, until the
// repository itself has it.
func TestRequest_OfAForksCommitIsHeld(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAccept(t, s, pushed("d-1", "api", "patch", 1, 2, fromFork(5)))
	held := mustRequest(t, s, manualRun("k-1", "main", 2))
	if !held.Fork || held.State != ci.Held {
		t.Fatalf("fork %v, %s", held.Fork, held.State)
	}
	if got := mustState(t, s, held.ID, ci.Held); !got.Fork {
		t.Fatal("not on record as a fork's")
	}
	prepared := manualRun("k-2", "main", 2)
	prepared.Draft.State, prepared.Draft.Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
	r := mustRequest(t, s, prepared)
	spec := reporting()
	r, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Spec: &spec})
	mustNil(t, err)
	if !r.Fork || r.State != ci.Held {
		t.Fatalf("prepared: fork %v, %s", r.Fork, r.State)
	}
	other := manualRun("k-3", "main", 2)
	other.Project, other.Draft.Project = "web", "web"
	if r := mustRequest(t, s, other); r.Fork {
		t.Fatal("another project's commit is not the fork's")
	}
	mustPush(t, s, "d-2", 1, 2)
	if r := mustRequest(t, s, manualRun("k-4", "main", 2)); r.Fork || r.State != ci.Queued {
		t.Fatalf("after the repository pushed it: fork %v, %s", r.Fork, r.State)
	}
}

// Ensure that a branch of the repository is its own, though a fork brought its
// head first.
func TestRequest_OfABranchThatAForkWasAheadOf(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAccept(t, s, pushed("d-1", "api", "patch", 1, 2, fromFork(5)))
	r := mustRequest(t, s, manualRun("k-1", "main", 0))
	r, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Commit: sha(2)})
	mustNil(t, err)
	if r.Fork || r.State != ci.Queued {
		t.Fatalf("fork %v, %s", r.Fork, r.State)
	}
}

func TestEntryActions_RepeatTheFirstAnswer(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustPush(t, s, "d-1", 0, 1)
	e := entriesOf(t, s, r.ID, "")[0]
	discard := store.EntryAction{ID: e.ID, Key: "k", By: operator, Reason: "noise"}
	first, replayed, err := s.DiscardEntry(t.Context(), discard)
	mustNil(t, err)
	if replayed || first.State != ci.OutboxSkipped || first.LastError != "discarded by mona (noise)" {
		t.Fatalf("%+v", first)
	}
	again, replayed, err := s.DiscardEntry(t.Context(), discard)
	mustNil(t, err)
	if diff := cmp.Diff(first, again); !replayed || diff != "" {
		t.Fatalf("%v %s", replayed, diff)
	}
	mustDecided(t, s, r.ID, ci.DecisionDiscarded)
	_, _, err = s.RetryEntry(t.Context(), store.EntryAction{ID: e.ID, Key: "k-2", By: operator})
	mustCode(t, err, ci.CodeConflict, "skipped")
	_, _, err = s.RetryEntry(t.Context(), store.EntryAction{ID: e.ID, Key: "k", By: operator})
	mustCode(t, err, ci.CodeConflict, "idempotency key")
	_, _, err = s.RetryEntry(t.Context(), store.EntryAction{ID: "msg_00000000_1", By: operator})
	mustCode(t, err, ci.CodeNotFound)
}
