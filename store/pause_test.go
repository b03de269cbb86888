package store_test

import (
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// mustPause pauses a part.
func mustPause(t *testing.T, s *store.Store, w ci.Work) {
	t.Helper()
	_, err := s.Pause(t.Context(), w, operator, "a test")
	mustNil(t, err)
}

func mustResume(t *testing.T, s *store.Store, w ci.Work) {
	t.Helper()
	_, err := s.Resume(t.Context(), w, operator, "")
	mustNil(t, err)
}

// Ensure that while runs are paused none is claimed or prepared, also after a
// restart, that intake and runs under way go on, and that all of it is done
// afterwards.
func TestPause_RunsWaitAndIntakeGoesOn(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	under := mustClaim(t, s, mustPush(t, s, "before", 0, 1).ID)
	mustPause(t, s, ci.WorkRuns)
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{})

	queued := mustPush(t, s, "after", 1, 2)
	preparing := mustAccept(t, s, pushed("unresolved", "web", "main", 1, 3, func(a *store.Acceptance) {
		a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
	})).Runs[0]
	if _, ok, err := s.ClaimAny(t.Context(), "boot", 10); ok || err != nil {
		t.Fatalf("claimed while paused: %v, %v", ok, err)
	}
	if any, err := s.AnyQueued(); any || err != nil {
		t.Fatalf("something may start: %v, %v", any, err)
	}
	if jobs, _, err := s.Jobs(time.Now(), 10); len(jobs) != 0 || err != nil {
		t.Fatalf("jobs while paused: %v, %v", jobs, err)
	}
	mustFinish(t, s, under, ci.Succeeded)
	if due, _, err := s.DueEntries(time.Now(), 10); len(due) == 0 || err != nil {
		t.Fatalf("notifications were held back too: %v", err)
	}

	mustResume(t, s, ci.WorkRuns)
	if jobs, _, err := s.Jobs(time.Now(), 10); len(jobs) != 1 || jobs[0].ID != preparing.ID || err != nil {
		t.Fatalf("jobs: %v, %v", jobs, err)
	}
	mustClaim(t, s, queued.ID)
}

// Ensure that while the outbox is paused nothing is due, and that what a
// worker already holds is not begun.
func TestPause_NothingIsSent(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "one", 0, 1)
	due, _, err := s.DueEntries(time.Now(), 10)
	mustNil(t, err)
	if len(due) != 1 {
		t.Fatalf("%d are due", len(due))
	}
	mustPause(t, s, ci.WorkOutbox)
	if _, ok, err := s.BeginAttempt(t.Context(), due[0].ID); ok || err != nil {
		t.Fatalf("begun while paused: %v, %v", ok, err)
	}
	if now, next, err := s.DueEntries(time.Now(), 10); len(now) != 0 || !next.IsZero() || err != nil {
		t.Fatalf("due while paused: %v, %v, %v", now, next, err)
	}
	wake, stop := s.Watch(store.TopicOutbox)
	defer stop()
	mustResume(t, s, ci.WorkOutbox)
	<-wake
	if e, ok, err := s.BeginAttempt(t.Context(), due[0].ID); !ok || err != nil || e.Attempts != 1 {
		t.Fatalf("%+v, %v, %v", e, ok, err)
	}
}

// Ensure that who paused and resumed is on record, once for each change.
func TestPause_IsADecision(t *testing.T) {
	s := storetest.MustOpen(t)
	for range 2 {
		p, err := s.Pause(t.Context(), ci.WorkOutbox, operator, "the receiver moves")
		mustNil(t, err)
		if p.Runs != nil || p.Outbox == nil || p.Outbox.By != operator || p.Outbox.Reason != "the receiver moves" || p.Outbox.Since.IsZero() {
			t.Fatalf("%+v", p)
		}
	}
	for range 2 {
		p, err := s.Resume(t.Context(), ci.WorkOutbox, operator, "")
		mustNil(t, err)
		if p != (ci.Pauses{}) {
			t.Fatalf("%+v", p)
		}
	}
	_, err := s.Pause(t.Context(), "all", operator, "")
	mustCode(t, err, ci.CodeInvalid, "runs", "outbox")
	list, _, err := s.Decisions("", store.Page{})
	mustNil(t, err)
	if len(list) != 2 || list[0].Kind != ci.DecisionResumed || list[0].Reason != "notifications go on" ||
		list[1].Kind != ci.DecisionPaused || list[1].Reason != "notifications are held back: the receiver moves" || list[1].By != operator {
		t.Fatalf("%+v", list)
	}
}
