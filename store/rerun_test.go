package store_test

import (
	"strings"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// rerequested is a delivery by which GitHub asks to have a run repeated, ""
// for all of a commit.
func rerequested(id, run string, commit int, change ...func(*store.Acceptance)) store.Acceptance {
	a := pushed(id, "api", "main", 0, commit, ignored(""))
	a.Delivery.Event, a.Event.Kind, a.Event.Action = ci.EventCheckRun, ci.EventCheckRun, "rerequested"
	a.Reruns = []ci.Rerun{{
		Integration: "github", Projects: []string{"api"}, Commit: sha(commit), Run: run,
		Cause: ci.Cause{Receipt: a.Delivery.ReceiptID().String(), Event: ci.EventCheckRun, Action: "rerequested", Actor: "octocat"},
	}}
	for _, f := range change {
		f(&a)
	}
	return a
}

// Ensure that a run is repeated with its receipt in one write, once for each
// delivery, and that its steps see what the first run's steps saw.
func TestAccept_RepeatsARunThatTheProviderAsksFor(t *testing.T) {
	s := storetest.MustOpen(t)
	old := mustPush(t, s, "d-1", 0, 1)
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Failed)
	out := mustAccept(t, s, rerequested("again", old.ID, 1))
	if len(out.Runs) != 1 || out.Receipt.Outcome != ci.Accepted || out.Receipt.Reason != "" || out.Duplicate {
		t.Fatalf("%+v", out)
	}
	r := mustState(t, s, out.Runs[0].ID, ci.Queued)
	want := ci.Cause{Kind: ci.CauseRerun, Receipt: "github/12345/again", Event: ci.EventCheckRun, Action: "rerequested", Actor: "octocat", Run: old.ID}
	if r.Cause != want || r.Spec != old.Spec || r.Source.Commit != old.Source.Commit || r.Internal.Scope != "" || r.Internal.Context != old.Internal.Context {
		t.Fatalf("%+v", r)
	}
	if event, receipt := r.Told(); event != ci.EventPush || receipt != "github/12345/d-1" {
		t.Fatalf("its steps are told of %s, %s", event, receipt)
	}
	if d := mustDecided(t, s, r.ID, ci.DecisionRerun); d.OtherRun != old.ID || d.Receipt != "github/12345/again" || !strings.Contains(d.Reason, "octocat") {
		t.Fatalf("%+v", d)
	}
	if again := mustAccept(t, s, rerequested("again", old.ID, 1)); !again.Duplicate || len(again.Runs) != 1 || again.Runs[0].ID != r.ID {
		t.Fatalf("delivered again: %+v", again)
	}
	rec, err := s.Receipt(out.Receipt.ReceiptID())
	mustNil(t, err)
	if len(rec.Runs) != 1 || rec.Outcome != ci.Accepted || len(rec.Verdicts) != 1 || rec.Verdicts[0].Outcome != ci.Accepted {
		t.Fatalf("%+v", rec)
	}
	// A rerun of the rerun, by hand: the first run's event still counts.
	mustFinish(t, s, mustClaim(t, s, r.ID), ci.Failed)
	byHand, _, err := s.Rerun(t.Context(), action(r.ID, "k"))
	mustNil(t, err)
	if event, receipt := byHand.Told(); event != ci.EventPush || receipt != "github/12345/d-1" || byHand.Cause.Actor != operator.Name {
		t.Fatalf("%+v", byHand)
	}
}

// Ensure that nothing but an ended run of the delivery's own project, commit
// and integration is repeated, and that the receipt says why.
func TestAccept_RepeatsNothingElse(t *testing.T) {
	s := storetest.MustOpen(t)
	waits := mustPush(t, s, "d-1", 0, 1)
	ended := mustPush(t, s, "d-2", 1, 2)
	mustFinish(t, s, mustClaim(t, s, waits.ID), ci.Failed)
	mustFinish(t, s, mustClaim(t, s, ended.ID), ci.Failed)
	running := mustPush(t, s, "d-3", 2, 3)
	mustClaim(t, s, running.ID)
	for what, tt := range map[string]struct {
		a      store.Acceptance
		reason string
	}{
		"a run that runs":            {rerequested("a", running.ID, 3), "wait for its end"},
		"a run of another commit":    {rerequested("b", ended.ID, 1), "of another commit"},
		"a run that never was":       {rerequested("c", "api-99", 1), "not on record"},
		"another project's":          {rerequested("d", ended.ID, 2, func(a *store.Acceptance) { a.Reruns[0].Projects = []string{"web"} }), "not one of this repository"},
		"another integration's":      {rerequested("e", ended.ID, 2, func(a *store.Acceptance) { a.Reruns[0].Integration = "other" }), "not one of this repository"},
		"a commit that nobody built": {rerequested("f", "", 9), "no run of commit"},
	} {
		out := mustAccept(t, s, tt.a)
		if len(out.Runs) != 0 || out.Receipt.Outcome != ci.Ignored || !strings.Contains(out.Receipt.Reason, tt.reason) {
			t.Errorf("%s: %+v", what, out.Receipt)
		}
		rec, err := s.Receipt(out.Receipt.ReceiptID())
		mustNil(t, err)
		if rec.Outcome != ci.Ignored || rec.Reason != out.Receipt.Reason || rec.Verdicts[0].Reason != rec.Reason {
			t.Errorf("%s: on record is %+v", what, rec)
		}
	}
	// Delivered again once the run has ended, it is judged again.
	mustFinish(t, s, mustRun(t, s, running.ID), ci.Failed)
	if out := mustAccept(t, s, rerequested("a", running.ID, 3)); len(out.Runs) != 1 || out.Receipt.Outcome != ci.Accepted {
		t.Errorf("after its end: %+v", out.Receipt)
	}
}

// Ensure that a whole suite repeats the newest run of each context, and that a
// fork's stays one.
func TestAccept_RepeatsASuite(t *testing.T) {
	s := storetest.MustOpen(t)
	first := mustPush(t, s, "d-1", 0, 1)
	pull := mustAccept(t, s, pushed("d-2", "api", "patch", 0, 1, pulled(5, repoID))).Runs[0]
	fork := mustAccept(t, s, pushed("d-4", "api", "patch", 0, 7, fromFork(6))).Runs[0]
	mustFinish(t, s, mustClaim(t, s, first.ID), ci.Failed)
	for _, r := range []ci.Run{pull, fork} {
		_, _, err := s.CancelRun(t.Context(), action(r.ID, "cancel "+r.ID))
		mustNil(t, err)
	}
	second, _, err := s.Rerun(t.Context(), action(first.ID, "k"))
	mustNil(t, err)
	mustFinish(t, s, mustClaim(t, s, second.ID), ci.Failed)
	other := mustPush(t, s, "d-3", 1, 2)
	mustFinish(t, s, mustClaim(t, s, other.ID), ci.Failed)
	out := mustAccept(t, s, rerequested("again", "", 1))
	of := map[string]ci.Run{}
	for _, r := range out.Runs {
		of[r.Cause.Run] = r
	}
	if len(out.Runs) != 2 || of[second.ID].State != ci.Queued || of[pull.ID].State != ci.Queued || of[pull.ID].Internal.Context != "docket/api/pr" {
		t.Fatalf("%+v", out.Runs)
	}
	if out := mustAccept(t, s, rerequested("too soon", "", 1)); len(out.Runs) != 0 || !strings.Contains(out.Receipt.Reason, "wait for its end") {
		t.Fatalf("while the newest ones wait: %+v", out)
	}
	out = mustAccept(t, s, rerequested("a fork's", "", 7))
	if len(out.Runs) != 1 || out.Runs[0].State != ci.Held || !out.Runs[0].Fork || out.Runs[0].Internal.Approved {
		t.Fatalf("a fork's: %+v", out.Runs)
	}
}
