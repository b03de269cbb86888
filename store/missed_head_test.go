package store_test

import (
	"context"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func branchHead(name string, n int) ci.Head {
	return ci.Head{Ref: "refs/heads/" + name, Commit: sha(n)}
}

// compared is a store that knows api's heads: main at commit 1.
func compared(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.MustOpen(t)
	mustNil(t, s.RecordHeads(context.Background(), store.HeadChanges{
		Project: "api", Base: &ci.HeadsBase{Repository: ci.Repository{ID: repoID}, Heads: 1}, Known: map[string]string{"refs/heads/main": sha(1)},
	}))
	return s
}

func mustOpenHead(t *testing.T, s *store.Store, h ci.Head) {
	t.Helper()
	m := ci.MissedHead{Head: h, Before: sha(1), SeenAt: ci.At(newClock().now()), ListedAt: ci.At(newClock().now())}
	mustNil(t, s.RecordHeads(context.Background(), store.HeadChanges{Project: "api", Open: []ci.MissedHead{m}}))
}

func mustTold(t *testing.T, s *store.Store, h ci.Head, want bool) {
	t.Helper()
	told, err := s.HeadsTold("api", []ci.Head{h})
	if err != nil || told[h.Key()] != want {
		t.Fatalf("%s at %s is told: %v, %v; want %v", h.Key(), h.Commit, told[h.Key()], err, want)
	}
}

func mustMissedHeads(t *testing.T, s *store.Store, want int) []ci.MissedHead {
	t.Helper()
	list, err := s.MissedHeads("api")
	if err != nil || len(list) != want {
		t.Fatalf("missed heads %+v, %v; want %d", list, err, want)
	}
	return list
}

// headDraft is the run of a head.
func headDraft(h ci.Head) ci.Draft {
	d := pushed("x", "api", "main", 1, 2).Drafts[0]
	d.Cause = ci.Cause{Kind: ci.CauseRecovery, Event: ci.EventPush}
	d.Source.Ref, d.Source.Commit = h.Ref, h.Commit
	d.Source.Branch, d.Source.Tag = ci.SplitRef(h.Ref)
	return d
}

func mustStartHead(t *testing.T, s *store.Store, h ci.Head) (ci.Run, bool) {
	t.Helper()
	r, again, err := s.StartHead(context.Background(), store.HeadStart{Project: "api", Key: h.Key(), Commit: h.Commit, Draft: headDraft(h), By: operator})
	mustNil(t, err)
	return r, again
}

// Ensure that a head is accounted for by a run of its commit there, and by a
// delivery that started none.
func TestHeadsTold(t *testing.T) {
	s := compared(t)
	mustTold(t, s, branchHead("main", 2), false)
	mustPush(t, s, "a", 1, 2)
	mustTold(t, s, branchHead("main", 2), true)
	mustTold(t, s, branchHead("other", 2), false) // another branch at the same commit
	mustAccept(t, s, pushed("b", "api", "main", 2, 3, ignored("[skip ci]")))
	mustAccept(t, s, pushed("c", "api", "main", 3, 4, ignored("[skip ci]")))
	mustTold(t, s, branchHead("main", 3), true)
	mustTold(t, s, branchHead("main", 4), true)
	mustTold(t, s, branchHead("main", 5), false)

	pull := ci.Head{Ref: "refs/pull/5/head", Commit: sha(6), PullRequest: &ci.PullRequest{Number: 5}}
	mustTold(t, s, pull, false)
	mustAccept(t, s, pushed("d", "api", "topic", 0, 6, fromFork(5)))
	mustTold(t, s, pull, true)
}

// Ensure that nothing is noted for a project whose heads nobody compares.
func TestHeadsTold_NotesOnlyWhatIsCompared(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAccept(t, s, pushed("a", "api", "main", 1, 2, ignored("[skip ci]")))
	mustTold(t, s, branchHead("main", 2), false)
}

// Ensure that starting a head makes one run however often it is asked for,
// and that the head is accounted for then.
func TestStartHead_OnlyOnce(t *testing.T) {
	s := compared(t)
	h := branchHead("main", 2)
	mustOpenHead(t, s, h)
	mustMissedHeads(t, s, 1)
	r, again := mustStartHead(t, s, h)
	if again || r.State != ci.Queued || !mustRun(t, s, r.ID).Internal.Head {
		t.Fatalf("run %+v, again %v", r, again)
	}
	if same, again := mustStartHead(t, s, h); !again || same.ID != r.ID {
		t.Fatalf("the second time run %s, again %v", same.ID, again)
	}
	if _, ok, err := s.StartedHead("api", h.Key(), h.Commit); !ok || err != nil {
		t.Fatalf("started %v, %v", ok, err)
	}
	mustMissedHeads(t, s, 0)
	mustOpenHead(t, s, h) // a comparison that read the store before
	mustMissedHeads(t, s, 0)
	list, _, err := s.Decisions(r.ID, store.Page{})
	if err != nil || len(list) != 1 || list[0].Kind != ci.DecisionRecovered || list[0].By != operator {
		t.Fatalf("decisions %+v, %v", list, err)
	}
	_, _, err = s.StartHead(context.Background(), store.HeadStart{Project: "api", Key: h.Key(), Commit: sha(9), Draft: headDraft(branchHead("main", 9)), By: operator})
	mustCode(t, err, ci.CodeNotFound, "docket projects heads")
}

// Ensure that the delivery that arrives after all is one of its own, with the
// head's run as its twin.
func TestStartHead_DeliveryAfterwardsFindsItsTwin(t *testing.T) {
	s := compared(t)
	h := branchHead("main", 3)
	mustOpenHead(t, s, h)
	r, _ := mustStartHead(t, s, h)
	out := mustAccept(t, s, pushed("late", "api", "main", 2, 3)) // its before is not the head's
	if len(out.Runs) != 1 || out.Runs[0].ID == r.ID || out.Receipt.TwinRun != r.ID || out.Receipt.Twin != "" {
		t.Fatalf("runs %+v, twin %q, twin run %q", out.Runs, out.Receipt.Twin, out.Receipt.TwinRun)
	}
	if rec, err := s.Receipt(out.Receipt.ReceiptID()); err != nil || rec.TwinRun != r.ID {
		t.Fatalf("on record: %+v, %v", rec, err)
	}
}

// Ensure that a head whose delivery arrived is neither listed nor started.
func TestStartHead_NotAfterItsDelivery(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*store.Acceptance)
		says   string
	}{
		"that started a run": {func(*store.Acceptance) {}, "api-1"},
		"that was ignored":   {ignored("[skip ci]"), "started nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compared(t)
			h := branchHead("main", 2)
			mustOpenHead(t, s, h)
			mustAccept(t, s, pushed("a", "api", "main", 1, 2, row.change))
			mustMissedHeads(t, s, 0)
			_, _, err := s.StartHead(context.Background(), store.HeadStart{Project: "api", Key: h.Key(), Commit: h.Commit, Draft: headDraft(h), By: operator})
			mustCode(t, err, ci.CodeConflict, row.says)
		})
	}
}

// Ensure that a fork's head stays a fork's, and that a head that is gone
// leaves nothing behind.
func TestRecordHeads(t *testing.T) {
	ctx := context.Background()
	s := compared(t)
	fork := pushed("x", "api", "topic", 0, 7, fromFork(9)).Drafts[0]
	pull := ci.Head{Ref: "refs/pull/9/head", Commit: sha(7), PullRequest: fork.Source.PullRequest}
	mustOpenHead(t, s, pull)
	fork.Cause = ci.Cause{Kind: ci.CauseRecovery, Event: ci.EventPullRequest}
	r, _, err := s.StartHead(ctx, store.HeadStart{Project: "api", Key: "#9", Commit: sha(7), Draft: fork, By: operator})
	mustNil(t, err)
	if r.State != ci.Held || !r.Fork {
		t.Fatalf("a fork's head is %s, fork %v", r.State, r.Fork)
	}
	by, _, err := s.Request(ctx, store.Request{Project: "api", Key: "k", Digest: "d", Draft: ci.Draft{
		Project: "api", State: ci.Queued, Spec: reporting(), Source: ci.Source{Ref: "refs/heads/x", Branch: "x", Commit: sha(7)}, Cause: ci.Cause{Kind: ci.CauseRequest},
	}})
	mustNil(t, err)
	if by.State != ci.Held {
		t.Fatalf("the fork's commit asked for by hand is %s", by.State)
	}
	mustAccept(t, s, pushed("b", "api", "main", 2, 3, ignored("[skip ci]")))
	mustNil(t, s.RecordHeads(ctx, store.HeadChanges{Project: "api", Gone: []string{"refs/heads/main", "#9"}}))
	mustTold(t, s, branchHead("main", 3), false)
	known, open, err := s.HeadState("api")
	if err != nil || len(known) != 0 || len(open) != 0 {
		t.Fatalf("known %v, open %v, %v", known, open, err)
	}
}
