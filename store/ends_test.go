package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// told is what a provider was told of one commit and context, in order.
type told []ci.StatusPayload

func (l told) last() (p ci.StatusPayload) {
	if len(l) > 0 {
		p = l[len(l)-1]
	}
	return p
}

// provider takes what is due, as a dispatcher would send it.
type provider struct {
	t    *testing.T
	s    *store.Store
	c    *clock
	told map[string]told // by commit and context
}

// take sends what is due; lose makes the answers get lost, so that it waits to
// be sent again.
func (p *provider) take(lose bool) {
	p.t.Helper()
	for sent := true; sent; {
		sent = false
		due, _, _ := mustDue(p.t, p.s, p.c.now())
		for _, id := range due {
			e, ok, err := p.s.BeginAttempt(p.t.Context(), id)
			mustNil(p.t, err)
			if !ok {
				sent = true // something behind it may be due now
				continue
			}
			var say ci.StatusPayload
			mustNil(p.t, json.Unmarshal(e.Payload, &say))
			key := say.Commit + " " + say.Context
			p.told[key] = append(p.told[key], say)
			res := store.AttemptResult{State: ci.OutboxSent}
			if lose {
				res = store.AttemptResult{State: ci.OutboxPending, Error: "no answer", NextAt: p.c.now().Add(time.Minute)}
			}
			mustEnd(p.t, p.s, e, res)
			sent = sent || !lose
		}
	}
}

// ways are all the ways in which a run ends. Each begins with a run, api-1 of
// commit 1, in the state that it names.
var ways = map[string]struct {
	from  ci.State
	end   func(*testing.T, *store.Store, *clock, ci.Run)
	state string // of the last status
	text  string
}{
	"succeeded":            {ci.Running, ended(ci.Succeeded, ""), "success", "succeeded"},
	"failed":               {ci.Running, ended(ci.Failed, ""), "failure", "failed"},
	"its workspace failed": {ci.Running, ended(ci.Failed, "commit no longer available"), "failure", "failed: commit no longer available"},
	"timed out":            {ci.Running, ended(ci.Failed, ci.ReasonTimedOut), "failure", "failed: timed out"},
	"shut down":            {ci.Running, ended(ci.Interrupted, "docket was shut down"), "error", "was interrupted: docket was shut down"},
	"killed":               {ci.Running, lost(false), "error", "was interrupted: killed"},
	"killed, queued again and succeeded": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		lost(true)(t, s, c, r)
		mustFinish(t, s, mustClaim(t, s, r.ID), ci.Succeeded)
	}, "success", "succeeded"},
	"killed, queued again and cancelled": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		lost(true)(t, s, c, r)
		cancelled(t, s, c, r)
	}, "error", "was cancelled: cancelled by mona"},
	"cancelled while it runs": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		cancelled(t, s, c, r)
		ended(ci.Cancelled, mustRun(t, s, r.ID).CancelRequested.Reason)(t, s, c, r)
	}, "error", "was cancelled: cancelled by mona"},
	"cancelled, and killed before it stopped": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		cancelled(t, s, c, r)
		lost(false)(t, s, c, r)
	}, "error", "was cancelled: cancelled by mona"},
	"cancelled while queued":    {ci.Queued, cancelled, "error", "was cancelled: cancelled by mona"},
	"cancelled while held":      {ci.Held, cancelled, "error", "was cancelled: cancelled by mona"},
	"cancelled while preparing": {ci.Preparing, cancelled, "error", "was cancelled: cancelled by mona"},
	"could not be prepared": {ci.Preparing, func(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
		_, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Failed: "there is no .docket.yml"})
		mustNil(t, err)
	}, "failure", "failed: there is no .docket.yml"},
	"superseded while queued":    {ci.Queued, superseded, "error", "was superseded by run api-2"},
	"superseded while held":      {ci.Held, superseded, "error", "was superseded by run api-2"},
	"superseded while preparing": {ci.Preparing, superseded, "error", "was superseded by run api-2"},
	"superseded while it runs": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		superseded(t, s, c, r)
		ended(ci.Superseded, mustRun(t, s, r.ID).CancelRequested.Reason)(t, s, c, r)
	}, "error", "was superseded by run api-2"},
	"superseded, and killed before it stopped": {ci.Running, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		superseded(t, s, c, r)
		lost(false)(t, s, c, r)
	}, "error", "was superseded by run api-2"},
	"its branch deleted while queued":    {ci.Queued, branchGone, "error", "was cancelled: the branch main was deleted"},
	"its branch deleted while preparing": {ci.Preparing, branchGone, "error", "was cancelled: the branch main was deleted"},
	"its repository removed":             {ci.Queued, repositoryGone, "error", "was cancelled: the repository was removed"},
	"approval lapsed": {ci.Held, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		mustLapse(t, s, c.add(week), r.ID)
	}, "error", "was cancelled: approval was waited for 168h0m0s"},
	"approved and failed": {ci.Held, func(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
		_, _, err := s.Approve(t.Context(), action(r.ID, "a"))
		mustNil(t, err)
		mustFinish(t, s, mustClaim(t, s, r.ID), ci.Failed)
	}, "failure", "failed"},
	"retention came by before its end was told": {ci.Queued, func(t *testing.T, s *store.Store, c *clock, r ci.Run) {
		cancelled(t, s, c, r)
		mustPush(t, s, "d-new", 7, 8) // keeps the numbers
		if _, err := s.Prune(t.Context(), c.add(week), 100); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(r.ID); ci.CodeOf(err) != ci.CodeNotFound {
			t.Fatalf("%s outlives retention: %v", r.ID, err)
		}
	}, "error", "was cancelled: cancelled by mona"},
}

func ended(to ci.State, reason string) func(*testing.T, *store.Store, *clock, ci.Run) {
	return func(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
		t.Helper()
		mustNil(t, s.FinishRun(t.Context(), r.ID, r.Attempt, store.Result{State: to, Reason: reason}))
	}
}

func lost(requeue bool) func(*testing.T, *store.Store, *clock, ci.Run) {
	return func(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
		t.Helper()
		_, err := s.Lost(t.Context(), r.ID, r.Attempt, requeue, "killed")
		mustNil(t, err)
	}
}

func cancelled(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
	t.Helper()
	_, _, err := s.CancelRun(t.Context(), action(r.ID, "c"))
	mustNil(t, err)
}

func superseded(t *testing.T, s *store.Store, _ *clock, r ci.Run) {
	t.Helper()
	mustPush(t, s, "d-2", 1, 2)
	mustNil(t, s.Supersede(t.Context(), store.Scope{}, []store.Supersession{{Run: r.ID, By: "api-2", Reason: "newer"}}))
}

func branchGone(t *testing.T, s *store.Store, _ *clock, _ ci.Run) {
	t.Helper()
	mustAccept(t, s, pushed("gone", "api", "main", 1, 0, ignored("the branch was deleted"), func(a *store.Acceptance) {
		a.Cancels = []ci.Cancel{{Project: "api", Scope: scopeOf("api", "main"), Ref: "refs/heads/main", Deleted: true, Reason: "the branch main was deleted"}}
	}))
}

func repositoryGone(t *testing.T, s *store.Store, _ *clock, _ ci.Run) {
	t.Helper()
	mustAccept(t, s, pushed("removed", "api", "main", 1, 0, ignored("removed"), func(a *store.Acceptance) {
		a.Event, a.Projects = ci.Event{Kind: ci.EventInstallationRepos, Action: "removed"}, nil
		a.Cancels = []ci.Cancel{{Project: "api", All: true, Reason: "the repository was removed"}}
	}))
}

// Ensure that a run that ever said that it waits or runs has a final status
// however it ended: as the last thing that its commit and context were told,
// whatever was on its way when it ended.
func TestEveryEndIsTold(t *testing.T) {
	for what, way := range ways {
		for _, before := range []string{"all was told before", "nothing was told before", "an answer was lost before"} {
			t.Run(what+"; "+before, func(t *testing.T) {
				c := newClock()
				s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
				p := &provider{t, s, c, map[string]told{}}
				tell := func() {
					if before != "nothing was told before" {
						p.take(before == "an answer was lost before")
					}
				}
				r := mustReach(t, s, way.from, tell)
				tell()
				way.end(t, s, c, r)
				c.add(time.Hour)
				p.take(false)
				key := r.Source.Commit + " " + r.Internal.Context
				last := p.told[key].last()
				if want := r.ID + " " + way.text; last.State != way.state || last.Description != want {
					t.Fatalf("it ended with %s %q, want %s %q; told %+v", last.State, last.Description, way.state, want, p.told[key])
				}
				for i, say := range p.told[key] {
					if say.State != "pending" && i < len(p.told[key])-1 && say != last {
						t.Fatalf("a final state was not the last: %+v", p.told[key])
					}
				}
				for other, list := range p.told {
					if other != key && strings.Contains(fmt.Sprint(list), r.ID+" ") {
						t.Fatalf("it spoke on %s: %+v", other, list)
					}
				}
			})
		}
	}
}

// mustReach makes api-1 of commit 1 and takes it to a state; tell is called at
// every state on the way.
func mustReach(t *testing.T, s *store.Store, to ci.State, tell func()) ci.Run {
	t.Helper()
	change := func(*store.Acceptance) {}
	switch to {
	case ci.Held:
		change = fromFork(1)
	case ci.Preparing:
		change = func(a *store.Acceptance) {
			a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
		}
	}
	r := mustPush(t, s, "d-1", 0, 1, holdFor(week), change)
	if to == ci.Running {
		tell()
		r = mustClaim(t, s, r.ID)
	}
	return mustState(t, s, r.ID, to)
}

// Ensure that the ways to end leave out no move of the table of transitions to
// a final state.
func TestEveryEndIsTold_OfEveryTransition(t *testing.T) {
	seen := map[string]bool{}
	for _, way := range ways {
		c := newClock()
		s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
		r := mustReach(t, s, way.from, func() {})
		way.end(t, s, c, r)
		if r, err := s.Run(r.ID); err == nil {
			seen[string(way.from)+" "+string(r.State)] = true
		}
	}
	for _, from := range ci.States {
		for _, to := range ci.States {
			if way := string(from) + " " + string(to); to.Final() && ci.CanMove(from, to) && !seen[way] {
				t.Errorf("no way to end shows %s", way)
			}
		}
	}
}

// Ensure that what the provider shows already is not sent again, and that it is
// where something else may have arrived in between.
func TestOutbox_EqualNeighboursAreSentOnce(t *testing.T) {
	requeue := func(t *testing.T, meanwhile func(s *store.Store, running ci.OutboxEntry)) (*store.Store, []ci.OutboxEntry) {
		s := storetest.MustOpen(t)
		mustPush(t, s, "d-1", 0, 1)
		mustDrain(t, s)
		r := mustClaim(t, s, "api-1")
		meanwhile(s, entriesOf(t, s, r.ID, "")[1])
		lost(true)(t, s, nil, r)
		mustDrain(t, s)
		return s, entriesOf(t, s, r.ID, "")
	}
	t.Run("nothing in between", func(t *testing.T) {
		s, list := requeue(t, func(s *store.Store, running ci.OutboxEntry) {
			_, _, err := s.DiscardEntry(t.Context(), store.EntryAction{ID: running.ID, By: operator})
			mustNil(t, err)
		})
		if e := list[2]; e.State != ci.OutboxSkipped || !strings.Contains(e.LastError, "says the same") || e.Attempts != 0 {
			t.Fatalf("%+v", e)
		}
		mustDecided(t, s, "api-1", ci.DecisionSkipped)
	})
	t.Run("another in between", func(t *testing.T) {
		_, list := requeue(t, func(*store.Store, ci.OutboxEntry) {})
		for _, e := range list {
			if e.State != ci.OutboxSent {
				t.Fatalf("%+v", e)
			}
		}
	})
	t.Run("another that may have arrived", func(t *testing.T) {
		_, list := requeue(t, func(s *store.Store, running ci.OutboxEntry) {
			mustEnd(t, s, mustBegin(t, s, running.ID), store.AttemptResult{State: ci.OutboxDead, Error: "gave up"})
		})
		if e := list[2]; e.State != ci.OutboxSent {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("another run", func(t *testing.T) {
		s := storetest.MustOpen(t)
		mustPush(t, s, "d-1", 0, 1)
		mustDrain(t, s)
		again := mustRequest(t, s, manualRun("k", "main", 1))
		mustDrain(t, s)
		if e := entriesOf(t, s, again.ID, "")[0]; e.State != ci.OutboxSent {
			t.Fatalf("%+v", e)
		}
	})
}
