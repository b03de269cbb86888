package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func inGroup(group string) func(*store.Acceptance) {
	return func(a *store.Acceptance) { a.Drafts[0].Group = group }
}

// Ensure that runs of one group run one at a time in the order in which they
// were made, over projects, and hold nobody else up.
func TestClaim_OneRunOfAGroup(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1, inGroup("production"))
	mustPush(t, s, "d-2", 1, 2, inGroup("production"))
	mustPush(t, s, "d-3", 2, 3)
	mustAccept(t, s, pushed("d-4", "web", "main", 0, 4, inGroup("production")))
	mustAccept(t, s, pushed("d-5", "web", "main", 4, 5, inGroup("produc")))
	first := mustClaim(t, s, "api-1")
	mustClaim(t, s, "web-2") // another group, though its name begins alike
	mustClaim(t, s, "api-3")
	mustClaim(t, s, "")
	for run, want := range map[string]string{"api-2": "api-1", "web-1": "api-1"} {
		if w := mustRun(t, s, run).WaitingFor; w == nil || *w != (ci.Waiting{Group: "production", Run: want}) {
			t.Errorf("%s waits for %+v, want %s", run, w, want)
		}
	}
	mustFinish(t, s, first, ci.Failed)
	if w := mustRun(t, s, "api-2").WaitingFor; w != nil {
		t.Errorf("the next one waits for %+v", w)
	}
	if w := mustRun(t, s, "web-1").WaitingFor; w == nil || w.Run != "api-2" {
		t.Errorf("the one behind it waits for %+v", w)
	}
	list, _, err := s.Runs(store.RunFilter{State: ci.Queued}, store.Page{})
	if err != nil || len(list) != 2 || list[0].WaitingFor == nil || list[0].WaitingFor.Run != "api-2" {
		t.Errorf("listed as %+v, %v", list, err)
	}
	mustFinish(t, s, mustClaim(t, s, "api-2"), ci.Succeeded)
	mustClaim(t, s, "web-1")
}

// Ensure that whatever ends a run or its wait lets the next of its group go.
func TestGroup_IsLetGoHoweverARunEnds(t *testing.T) {
	for what, end := range map[string]func(*testing.T, *store.Store, ci.Run){
		"a result": func(t *testing.T, s *store.Store, r ci.Run) { mustFinish(t, s, r, ci.Succeeded) },
		"a lost process": func(t *testing.T, s *store.Store, r ci.Run) {
			_, err := s.Lost(t.Context(), r.ID, r.Attempt, false, "killed")
			mustNil(t, err)
		},
		"a cancel": func(t *testing.T, s *store.Store, r ci.Run) {
			_, _, err := s.CancelRun(t.Context(), action(r.ID, "k"))
			mustNil(t, err)
			mustFinish(t, s, r, ci.Cancelled)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			mustPush(t, s, "d-1", 0, 1, inGroup("g"))
			mustPush(t, s, "d-2", 1, 2, inGroup("g"))
			mustPush(t, s, "d-3", 2, 3, inGroup("g"))
			r := mustClaim(t, s, "api-1")
			_, _, err := s.CancelRun(t.Context(), action("api-2", "k-2")) // it waits, and then not any more
			mustNil(t, err)
			mustClaim(t, s, "")
			end(t, s, r)
			mustClaim(t, s, "api-3")
		})
	}
}

// Ensure that a run that is queued again after a kill has its old turn.
func TestGroup_ARequeuedRunKeepsItsTurn(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1, inGroup("g"))
	mustPush(t, s, "d-2", 1, 2, inGroup("g"))
	r := mustClaim(t, s, "api-1")
	_, err := s.Lost(t.Context(), r.ID, r.Attempt, true, "killed")
	mustNil(t, err)
	mustClaim(t, s, "api-1")
	mustClaim(t, s, "")
}

// Ensure that a rerun is in its run's group.
func TestGroup_OfARerun(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1, inGroup("g"))
	mustPush(t, s, "d-2", 1, 2, inGroup("g"))
	mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Failed)
	again, _, err := s.Rerun(t.Context(), action("api-1", "k"))
	mustNil(t, err)
	mustClaim(t, s, "api-2")
	if w := mustRun(t, s, again.ID).WaitingFor; w == nil || w.Run != "api-2" {
		t.Fatalf("it waits for %+v", w)
	}
	mustClaim(t, s, "")
}

// groupRig drives a store whose runs have groups, beside what a list of them says.
type groupRig struct {
	s    *store.Store
	runs []*groupRun
	n    int
}

type groupRun struct {
	id, project, group string
	state              ci.State
	attempt            int
}

// Ensure that in whatever order runs of groups come and end, claiming takes the
// fairest of those whose turn it is, and never two of one group.
func TestGroup_NeverOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "docket-group-*")
		mustNil(t, err)
		defer os.RemoveAll(dir)
		s, err := store.Open(dir+"/docket.db", store.Options{})
		mustNil(t, err)
		x := &groupRig{s: s}
		t.Repeat(map[string]func(*rapid.T){
			"push": x.push, "another push": x.push, "claim": x.claim, "another claim": x.claim, "end": x.end,
			"cancel": x.cancel, "lost": x.lost,
		})
		mustNil(t, s.Close())
		broken, err := store.VerifyFile(context.Background(), s.Path())
		if err != nil || len(broken) > 0 {
			t.Fatalf("verify: %q, %v", broken, err)
		}
	})
}

func (x *groupRig) push(t *rapid.T) {
	x.n++
	r := &groupRun{
		project: rapid.SampledFrom([]string{"api", "web", "doc"}).Draw(t, "project"),
		group:   rapid.SampledFrom([]string{"", "", "g", "h"}).Draw(t, "group"), state: ci.Queued,
	}
	out := mustAccept(t, x.s, pushed(fmt.Sprint("d-", x.n), r.project, "main", x.n, x.n+1, inGroup(r.group)))
	r.id = out.Runs[0].ID
	x.runs = append(x.runs, r)
}

func (x *groupRig) some(t *rapid.T, states ...ci.State) *groupRun {
	var list []*groupRun
	for _, r := range x.runs {
		if slices.Contains(states, r.state) {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		t.Skip("none")
	}
	return rapid.SampledFrom(list).Draw(t, "run")
}

// next is the run to be claimed: x.runs are in order of creation.
func (x *groupRig) next(limit int) *groupRun {
	running, total := map[string]int{}, 0
	taken := map[string]bool{}
	for _, r := range x.runs {
		if r.state == ci.Running {
			running[r.project]++
			total++
			taken[r.group] = r.group != ""
		}
	}
	if total >= limit {
		return nil
	}
	var best *groupRun
	seen := map[string]bool{}
	for _, r := range x.runs {
		if r.state != ci.Queued || taken[r.group] {
			continue
		}
		if r.group != "" {
			taken[r.group] = true // it is this one's turn and nobody else's
		}
		if seen[r.project] {
			continue
		}
		seen[r.project] = true
		if best == nil || running[r.project] < running[best.project] {
			best = r
		}
	}
	return best
}

func (x *groupRig) claim(t *rapid.T) {
	limit := rapid.IntRange(1, 5).Draw(t, "max")
	want := x.next(limit)
	got, ok, err := x.s.ClaimAny(context.Background(), boot, limit)
	if err != nil || ok != (want != nil) || ok && got.ID != want.id {
		t.Fatalf("claimed %q %v %v, want %+v", got.ID, ok, err, want)
	}
	if want != nil {
		want.state, want.attempt = ci.Running, got.Attempt
	}
}

func (x *groupRig) end(t *rapid.T) {
	r := x.some(t, ci.Running)
	mustNil(t, x.s.FinishRun(context.Background(), r.id, r.attempt, store.Result{State: ci.Succeeded}))
	r.state = ci.Succeeded
}

func (x *groupRig) cancel(t *rapid.T) {
	r := x.some(t, ci.Queued)
	_, _, err := x.s.CancelRun(context.Background(), action(r.id, ""))
	mustNil(t, err)
	r.state = ci.Cancelled
}

func (x *groupRig) lost(t *rapid.T) {
	r := x.some(t, ci.Running)
	requeue := rapid.Bool().Draw(t, "requeue")
	_, err := x.s.Lost(context.Background(), r.id, r.attempt, requeue, "killed")
	mustNil(t, err)
	r.state = ci.Interrupted
	if requeue {
		r.state = ci.Queued
	}
}
