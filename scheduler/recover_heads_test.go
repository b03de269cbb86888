package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func headOf(branch string, n int) ci.Head {
	return ci.Head{Ref: "refs/heads/" + branch, Commit: commit(n)}
}

func mustHeads(t *testing.T, s *store.Store, want ...string) []ci.MissedHead {
	t.Helper()
	list, err := s.MissedHeads("api")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		got = append(got, m.Key())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("heads without a run: %q, want %q", got, want)
	}
	return list
}

// Ensure that a repository's old heads are known at first sight, and that
// one that moves without a delivery is listed after its time of grace.
func TestRecoverHeads_Listed(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	for i := range 300 {
		b.heads = append(b.heads, headOf("old-"+commit(i)[30:], i+1))
	}
	b.heads = append(b.heads, headOf("main", 1), ci.Head{Ref: "refs/heads/..", Commit: commit(1)})
	_, c, round := recovering(t, s, b, nil)
	mustHeads(t, s)
	if base, ok, err := s.HeadsBase("api"); !ok || err != nil || base.Heads != 301 {
		t.Fatalf("base %+v, %v, %v", base, ok, err)
	}
	b.set(func(b *hub) {
		b.heads[300] = headOf("main", 1000)
		b.heads = append(b.heads, ci.Head{Ref: "refs/tags/v1", Commit: commit(5)}, ci.Head{Ref: "refs/tags/other", Commit: commit(5)},
			ci.Head{Ref: "refs/pull/4/head", Commit: commit(6), PullRequest: &ci.PullRequest{Number: 4, Base: "main", Head: "x", Fork: true}},
			headOf("quiet", 7), headOf("told", 8))
		b.messages[commit(7)] = "docs [skip ci]"
	})
	if r := round(); r.Last.NoRun != 0 {
		t.Fatalf("listed at once: %+v", r)
	}
	mustHeads(t, s)
	b.deliver("guid-1000") // main's delivery was on its way
	c.add(6 * time.Minute)
	if r := round(); r.Last.NoRun != 3 {
		t.Fatalf("recovery %+v", r)
	}
	list := mustHeads(t, s, "#4", "refs/heads/told", "refs/tags/v1")
	if list[1].Before != "" || list[1].Project != "api" || list[1].ListedAt.IsZero() {
		t.Fatalf("head %+v", list[1])
	}
	b.set(func(b *hub) { b.heads = b.heads[:301] })
	c.add(5 * time.Minute)
	round()
	mustHeads(t, s)
}

// Ensure that `recover: run` starts the run itself, once, with what the
// delivery would have given it; and a fork's is held.
func TestRecoverHeads_Run(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.heads = []ci.Head{headOf("main", 1)}
	_, c, round := recovering(t, s, b, func(cfg *ci.Config) { cfg.Projects[0].Recover = ci.RecoverRun })
	b.set(func(b *hub) {
		b.heads = []ci.Head{headOf("main", 2), {Ref: "refs/pull/4/head", Commit: commit(6), Actor: "mallory",
			PullRequest: &ci.PullRequest{Number: 4, Title: "hi", Base: "main", Head: "x", HeadRepo: ci.Repository{ID: 8}, Fork: true}}}
		b.messages[commit(2)] = "fix it\n\nbody"
	})
	round()
	c.add(6 * time.Minute)
	if r := round(); r.Last.Started != 2 || r.Last.NoRun != 0 {
		t.Fatalf("recovery %+v", r)
	}
	for range 3 {
		c.add(6 * time.Minute)
		if r := round(); r.Last.Started != 0 {
			t.Fatalf("started again: %+v", r)
		}
	}
	pull, err := s.Run("api-1")
	if err != nil || pull.State != ci.Held || !pull.Fork || pull.Internal.Context != "docket/api/pr" || pull.Internal.Scope != "api pull_request 8 #4" || pull.Cause.Actor != "mallory" {
		t.Fatalf("pull request %+v, %v", pull, err)
	}
	run, err := s.Run("api-2")
	if err != nil || run.Cause.Kind != ci.CauseRecovery || run.Cause.Event != ci.EventPush || run.Source.Commit != commit(2) || run.Source.Before != commit(1) ||
		run.Internal.Scope != "api push 7 refs/heads/main" || run.Internal.Context != "docket/api" || run.Internal.Title != "fix it" {
		t.Fatalf("push %+v, %v", run, err)
	}
	list, _, err := s.Decisions(run.ID, store.Page{})
	if err != nil || len(list) != 1 || list[0].Kind != ci.DecisionRecovered || list[0].By.Kind != ci.ByScheduler {
		t.Fatalf("decisions %+v, %v", list, err)
	}
}

// Ensure that no head is listed or started while the delivery that told of it
// is being recovered.
func TestRecoverHeads_AfterDeliveries(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.heads = []ci.Head{headOf("main", 1)}
	_, c, round := recovering(t, s, b, func(cfg *ci.Config) { cfg.Projects[0].Recover = ci.RecoverRun })
	b.set(func(b *hub) { b.heads, b.answer = []ci.Head{headOf("main", 2)}, 502 })
	b.fails(2, 502, c.now())
	round()
	c.add(6 * time.Minute)
	if r := round(); r.Last.Started+r.Last.NoRun != 0 {
		t.Fatalf("not waited for: %+v", r)
	}
	b.set(func(b *hub) { b.answer = 202 })
	c.add(6 * time.Minute)
	round()
	c.add(6 * time.Minute)
	if r := round(); r.Last.Started+r.Last.NoRun != 0 || len(runsOf(t, s)) != 1 {
		t.Fatalf("recovery %+v, runs %v", r, runsOf(t, s))
	}
}

// Ensure that another repository under the same name is refused, and begins
// anew once it is accepted.
func TestRecoverHeads_OtherRepository(t *testing.T) {
	s := storetest.MustOpen(t)
	b := newHub(t, s)
	b.heads = []ci.Head{headOf("main", 1)}
	mustRepin(t, s, 7)
	_, c, round := recovering(t, s, b, func(cfg *ci.Config) { cfg.Projects[0].RepositoryID = 0 })
	b.set(func(b *hub) { b.repoID, b.heads = 8, []ci.Head{headOf("main", 2)} })
	if r := round(); !strings.Contains(r.Problem, "docket projects repin api") || r.Projects[0].Problem == "" {
		t.Fatalf("recovery %+v", r)
	}
	mustRepin(t, s, 8)
	if r := round(); r.Problem != "" {
		t.Fatalf("recovery %+v", r)
	}
	c.add(time.Hour)
	round()
	mustHeads(t, s)
}

func mustRepin(t *testing.T, s *store.Store, id int64) {
	t.Helper()
	if err := s.Repin(context.Background(), "api", id, ci.By{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
}
