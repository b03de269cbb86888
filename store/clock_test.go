package store_test

import (
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that what was put off while the clock was years ahead is not waited
// for once the clock is right again: notifications, holds and inbox jobs.
func TestClock_WhatItPutOffIsNotWaitedFor(t *testing.T) {
	ctx := t.Context()
	clock := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: clock.now})
	soon := entriesOf(t, s, mustPush(t, s, "soon", 0, 1).ID, "")[0]
	far := entriesOf(t, s, mustPush(t, s, "far", 0, 2, withPolicy(ci.SupersedeNone)).ID, "")[0]
	preparing := mustAccept(t, s, pushed("unresolved", "web", "main", 1, 3, func(a *store.Acceptance) {
		a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
	})).Runs[0]
	putOff := func(id string, at time.Time) {
		t.Helper()
		e, ok, err := s.BeginAttempt(ctx, id)
		if !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		mustNil(t, s.FinishAttempt(ctx, id, e.Attempts, store.AttemptResult{State: ci.OutboxPending, Error: "502", NextAt: at}))
	}
	const ahead = 50 * 365 * 24 * time.Hour
	putOff(soon.ID, clock.now().Add(24*time.Hour))
	clock.add(ahead)
	putOff(far.ID, clock.now().Add(time.Minute))
	mustNil(t, s.Hold(ctx, "github", clock.now().Add(time.Minute), "a rate limit"))
	mustNil(t, s.DelayJob(ctx, preparing.ID, clock.now().Add(time.Minute), "not yet"))
	now := clock.add(-ahead)

	if n, err := s.MendDue(ctx, now); n != 1 || err != nil {
		t.Fatalf("%d were mended, %v", n, err)
	}
	if n, err := s.MendDue(ctx, now); n != 0 || err != nil {
		t.Fatalf("%d were mended again, %v", n, err)
	}
	due, next, err := s.DueEntries(now, 10)
	mustNil(t, err)
	var ids []string
	for _, e := range due {
		ids = append(ids, e.ID)
	}
	found := false
	for _, id := range ids {
		found = found || id == far.ID
		if id == soon.ID {
			t.Errorf("%s waits for its time no longer", id)
		}
	}
	if !found || !next.Equal(now.Add(24*time.Hour)) {
		t.Fatalf("due: %v, next %v", ids, next)
	}
	if jobs, _, err := s.Jobs(now, 10); len(jobs) != 1 || err != nil {
		t.Fatalf("jobs: %v, %v", jobs, err)
	}
	mustNil(t, s.Hold(ctx, "github", now.Add(time.Minute), "a rate limit"))
	if holds, err := s.Holds(now); err != nil || !holds["github"].Until.Equal(now.Add(time.Minute)) {
		t.Fatalf("holds %v, %v", holds, err)
	}
}
