package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// runsOf counts the runs by the delivery that made them.
func runsOf(t *testing.T, s *store.Store) map[string]int {
	t.Helper()
	n, cursor := map[string]int{}, ""
	for {
		list, next, err := s.Runs(store.RunFilter{}, store.Page{Limit: 200, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			n[r.Cause.Receipt]++
		}
		if cursor = next; next == "" {
			return n
		}
	}
}

// Ensure that what failed while docket was away is asked for when it starts,
// a bounded number a round, until all of it is there, and nothing twice.
func TestRecover_AllThatWasMissed(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	const missed = scheduler.Redeliveries + 15
	for n := 1; n <= missed; n++ {
		b.fails(n, 0, time.Now().Add(-time.Hour+time.Duration(n)*time.Second))
		if n%10 == 0 {
			b.fails(n, 502, time.Now().Add(-time.Minute)) // somebody pressed Redeliver
		}
	}
	_, _, round := recovering(t, s, b, nil)
	if got := len(runsOf(t, s)); got != scheduler.Redeliveries {
		t.Fatalf("%d runs after the first round", got)
	}
	if r := round(); r.Problem != "" || r.Last.Asked != 15 || r.Last.Arrived != scheduler.Redeliveries {
		t.Fatalf("second round %+v", r)
	}
	if r := round(); r.Last.Asked != 0 || r.Last.Missed != 0 || r.Last.Arrived != 15 {
		t.Fatalf("third round %+v", r)
	}
	runs := runsOf(t, s)
	for n := 1; n <= missed; n++ {
		if id := fmt.Sprintf("github/-/guid-%d", n); runs[id] != 1 || b.times(fmt.Sprintf("guid-%d", n)) != 1 {
			t.Fatalf("%s: %d runs, asked for %d times", id, runs[id], b.times(fmt.Sprintf("guid-%d", n)))
		}
	}
	list, _, err := s.DecisionsOfKind("", ci.DecisionRecovered, store.Page{Limit: 200})
	if err != nil || len(list) != missed || list[0].Integration != "github" || list[0].Receipt == "" || list[0].By.Kind != ci.ByScheduler {
		t.Fatalf("%d decisions, the newest %+v, %v", len(list), list[0], err)
	}
}

// Ensure that one that never arrives is asked for three times, with growing
// waits, and then listed; and again on a person's word.
func TestRecover_ThreeTimes(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.answer = 502
	b.fails(1, 0, time.Now().Add(-time.Hour))
	h, c, round := recovering(t, s, b, nil)
	for step, row := range []struct {
		wait time.Duration
		want int
	}{
		{0, 1}, {5 * time.Minute, 1}, {6 * time.Minute, 2}, {20 * time.Minute, 2}, {11 * time.Minute, 3}, {59 * time.Minute, 3}, {2 * time.Minute, 3}, {time.Hour, 3},
	} {
		c.add(row.wait)
		round()
		if got := b.times("guid-1"); got != row.want {
			t.Fatalf("step %d: asked for %d times, want %d", step, got, row.want)
		}
	}
	list, err := s.Missed("github", 0)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].GaveUp, "3 times") || !strings.Contains(list[0].GaveUp, "502") {
		t.Fatalf("missed %+v, %v", list, err)
	}
	b.set(func(b *hub) { b.answer = 202 })
	if _, err := h.sched.Recover(context.Background(), "", 0, ci.By{Kind: ci.ByToken, Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	round()
	if list, _ := s.Missed("github", 0); len(list) != 0 || len(runsOf(t, s)) != 1 {
		t.Fatalf("missed %+v, runs %v", list, runsOf(t, s))
	}
	if list, _, _ := s.DecisionsOfKind("", ci.DecisionRecovered, store.Page{}); list[0].By.Name != "ann" {
		t.Fatalf("decided by %+v", list[0].By)
	}
}

// Ensure that what docket itself refuses is asked for once and listed with
// the answer.
func TestRecover_WhatDocketRefuses(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.answer = 401
	b.fails(1, 401, time.Now().Add(-time.Hour))
	_, c, round := recovering(t, s, b, nil)
	for range 5 {
		c.add(time.Hour)
		round()
	}
	list, err := s.Missed("github", 0)
	if err != nil || len(list) != 1 || b.times("guid-1") != 1 || !strings.Contains(list[0].GaveUp, "401 Unauthorized") {
		t.Fatalf("asked for %d times, missed %+v, %v", b.times("guid-1"), list, err)
	}
}

// Ensure that a rate limit in the middle is waited for, said and counted as
// no asking.
func TestRecover_RateLimit(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	for n := 1; n <= 5; n++ {
		b.fails(n, 0, time.Now().Add(-time.Hour+time.Duration(n)*time.Second))
	}
	until, calls := time.Now().Add(30*time.Minute), 0
	b.fail = func(call string) error {
		if call != "redeliver" {
			return nil
		}
		if calls++; calls == 3 {
			return &scheduler.RateLimited{Until: until}
		}
		return nil
	}
	_, c, round := recovering(t, s, b, nil)
	r, err := s.Recovery("github")
	if err != nil || !r.PausedUntil.Equal(ci.At(until).Time) || !strings.Contains(r.Problem, "rate limit") || r.Last.Asked != 2 {
		t.Fatalf("recovery %+v, %v", r, err)
	}
	if list, err := s.Missed("github", 0); err != nil || len(list) != 5 || list[2].Asked != 0 || list[1].Asked != 1 {
		t.Fatalf("missed %+v, %v", list, err)
	}
	listed := b.listed
	c.add(time.Minute)
	if r := round(); !strings.Contains(r.Problem, "rate limit") || b.listed != listed {
		t.Fatalf("asked during the pause: %+v", r)
	}
	c.add(30 * time.Minute)
	round()
	if r := round(); r.Problem != "" || r.Last.Missed != 0 || len(runsOf(t, s)) != 5 {
		t.Fatalf("after the pause %+v, runs %v", r, runsOf(t, s))
	}
	if b.times("guid-3") != 1 {
		t.Fatalf("asked for %d times", b.times("guid-3"))
	}
}

// Ensure that an outage of the provider loses nothing: what was delivered
// before and meanwhile is compared when it answers again.
func TestRecover_ProviderAway(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	_, c, round := recovering(t, s, b, nil)
	b.set(func(b *hub) {
		b.fail = func(string) error { return ci.Errorf(ci.CodeUnavailable, "GitHub could not be reached") }
	})
	b.fails(1, 0, time.Now().Add(time.Hour))
	c.add(5 * time.Hour)
	for range 3 {
		if r := round(); !strings.Contains(r.Problem, "could not be reached") {
			t.Fatalf("recovery %+v", r)
		}
	}
	b.set(func(b *hub) {
		b.fail = func(call string) error {
			if call == "deliveries" {
				return ci.Errorf(ci.CodeUnavailable, "GitHub could not be reached")
			}
			return nil
		}
	})
	round()
	b.set(func(b *hub) { b.fail = nil })
	round()
	if r := round(); r.Last.Missed != 0 || runsOf(t, s)["github/-/guid-1"] != 1 {
		t.Fatalf("recovery %+v, runs %v", r, runsOf(t, s))
	}
}

// Ensure that it is said exactly why nothing can be compared, and that the
// heads still are.
func TestRecover_SaysWhyNot(t *testing.T) {
	for name, row := range map[string]struct {
		fail   func(string) error
		change func(*ci.Config)
		off    bool
		missed bool
		says   string
	}{
		"no permission": {fail: func(call string) error {
			if call == "hook" {
				return ci.Errorf(ci.CodeForbidden, "the token lacks the permission Webhooks: write")
			}
			return nil
		}, says: "Webhooks: write"},
		"no permission to redeliver": {fail: func(call string) error {
			if call == "redeliver" {
				return ci.Errorf(ci.CodeForbidden, "the token lacks the permission Webhooks: write")
			}
			return nil
		}, missed: true, says: "Webhooks: write"},
		"no public address": {change: func(c *ci.Config) { c.PublicURL = "" }, says: "public_url"},
		"switched off":      {off: true, says: "switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.MustOpen(t)
			b := newHub(t, s)
			b.fail, b.off = row.fail, row.off
			if row.missed {
				b.fails(1, 0, time.Now())
			}
			b.heads = []ci.Head{{Ref: "refs/heads/main", Commit: commit(1)}}
			_, _, _ = recovering(t, s, b, row.change)
			r, err := s.Recovery("github")
			if err != nil || !strings.Contains(r.Problem, row.says) || len(r.Hooks) != 1 || !row.missed && !strings.Contains(r.Hooks[0].Problem, row.says) {
				t.Fatalf("recovery %+v, %v", r, err)
			}
			if r.HeadsAt.IsZero() || r.Last.Heads != 1 {
				t.Fatalf("heads were not compared: %+v", r)
			}
		})
	}
}

// Ensure that a provider that does not answer holds up neither work nor the
// shutdown.
func TestRecover_SilentProvider(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.silent, b.reached = true, make(chan struct{})
	h := open(t, s, func(o *scheduler.Options, cfg *ci.Config) {
		o.Provider = b
		cfg.PublicURL = "https://ci.example.org"
		cfg.Integrations = []ci.Integration{{Name: "github", Token: ci.NewSecret("t", "x"), RecoverEvery: time.Minute}}
		cfg.Projects[0].Integration, cfg.Projects[0].Repository = "github", "acme/api"
	})
	<-b.reached
	id := push(t, s, "api", -1, 1)
	if got := h.nextStarted(); got != id {
		t.Fatalf("started %s", got)
	}
	h.stage.end(id) <- succeeded()
	h.waitState(id, ci.Succeeded)
	h.stop()
	if r, err := s.Recovery("github"); err != nil || r.Problem != "" {
		t.Fatalf("the shutdown is on record as %q, %v", r.Problem, err)
	}
}
