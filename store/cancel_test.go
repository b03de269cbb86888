package store_test

import (
	"fmt"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// pulled makes a push the head of one of the repository's own pull requests.
func pulled(number int, head int64) func(*store.Acceptance) {
	return func(a *store.Acceptance) {
		fromFork(number)(a)
		for i := range a.Drafts {
			d := &a.Drafts[i]
			pr := *d.Source.PullRequest
			pr.Fork, pr.HeadRepo = false, ci.Repository{ID: head}
			d.Fork, d.State, d.Source.PullRequest = false, ci.Queued, &pr
			d.Scope = fmt.Sprintf("%s pull_request %d #%d", d.Project, head, number)
		}
	}
}

// Ensure that a closed pull request ends all that events started for it and
// that waits, whatever repository its head is in by now, and nothing else.
func TestAccept_AClosedPullRequestEndsWhatWaits(t *testing.T) {
	s := storetest.MustOpen(t)
	running := mustAccept(t, s, pushed("d-1", "api", "topic", 0, 1, pulled(5, repoID), withPolicy(ci.SupersedeNone))).Runs[0]
	mustClaim(t, s, running.ID)
	waits := mustAccept(t, s, pushed("d-2", "api", "topic", 1, 2, pulled(5, repoID))).Runs[0]
	held := mustAccept(t, s, pushed("d-3", "api", "topic", 1, 3, fromFork(5))).Runs[0]
	other := mustAccept(t, s, pushed("d-4", "api", "topic", 1, 4, pulled(6, repoID))).Runs[0]
	branch := mustAccept(t, s, pushed("d-5", "api", "topic", 1, 2)).Runs[0]
	closed := func(id string) store.Acceptance {
		a := pushed(id, "api", "topic", 0, 2, ignored("closed"))
		a.Cancels = []ci.Cancel{{Project: "api", Ref: "refs/pull/5/head", PullRequest: 5, Reason: "pull request #5 was closed"}}
		return a
	}
	mustAccept(t, s, closed("d-6"))
	for _, r := range []ci.Run{waits, held} {
		if r := mustState(t, s, r.ID, ci.Cancelled); r.Reason != "pull request #5 was closed" {
			t.Errorf("%+v", r)
		}
		mustDecided(t, s, r.ID, ci.DecisionCancelled)
	}
	mustState(t, s, running.ID, ci.Running)
	mustState(t, s, other.ID, ci.Queued)
	mustState(t, s, branch.ID, ci.Queued)
	// Closed again under the same delivery, after it was opened again: nothing.
	more := mustAccept(t, s, pushed("d-7", "api", "topic", 2, 7, pulled(5, repoID))).Runs[0]
	mustAccept(t, s, closed("d-6"))
	mustState(t, s, more.ID, ci.Queued)
}

// grouped makes a push the head of a merge group.
func grouped(a *store.Acceptance) {
	for i := range a.Drafts {
		d := &a.Drafts[i]
		d.Cause.Event, d.Context = ci.EventMergeGroup, "docket/"+d.Project+"/pr"
		d.Scope = fmt.Sprintf("%s merge_group %d %s %s", d.Project, repoID, d.Source.Commit, d.Source.Ref)
	}
}

// Ensure that a destroyed merge group ends what waits for its head alone, and
// that a merge group's branch is nobody's head.
func TestAccept_ADestroyedMergeGroupEndsWhatWaits(t *testing.T) {
	s := storetest.MustOpen(t)
	const queue = "gh-readonly-queue/main/pr-3"
	first := mustAccept(t, s, pushed("d-1", "api", queue, 0, 1, grouped)).Runs[0]
	second := mustAccept(t, s, pushed("d-2", "api", queue, 0, 2, grouped)).Runs[0]
	a := pushed("d-3", "api", queue, 0, 1, ignored("destroyed"))
	a.Cancels = []ci.Cancel{{Project: "api", Ref: "refs/heads/" + queue, Scope: first.Internal.Scope, Reason: "the merge group was destroyed"}}
	mustAccept(t, s, a)
	mustState(t, s, first.ID, ci.Cancelled)
	mustState(t, s, second.ID, ci.Queued)
	if heads, err := s.Heads("api"); err != nil || len(heads) != 0 {
		t.Errorf("heads %+v, %v", heads, err)
	}
}
