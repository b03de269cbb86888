package store_test

import (
	"testing"

	"docket/store"
	"docket/store/ci"
)

// Ensure that a run whose commit became known only after a newer run of that
// commit had come, ended and been told of does not speak over it.
func TestLane_WhoIsResolvedLateIsStillOlder(t *testing.T) {
	s, c := ticking(t)
	old := mustRequest(t, s, manualRun("k", "main", 0))
	newer := mustPush(t, s, "d-1", 0, 1)
	mustFinish(t, s, mustClaim(t, s, newer.ID), ci.Failed)
	if sent := mustSend(t, s, c.now()); len(sent) != 1 || sent[0].Event != "failure" {
		t.Fatalf("sent %+v", sent)
	}
	other := mustPush(t, s, "d-2", 1, 2) // of another commit: it takes nobody's word

	_, err := s.ResolveJob(t.Context(), old.ID, store.Resolution{Commit: sha(1)})
	mustNil(t, err)
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Succeeded)
	if sent := mustSend(t, s, c.now()); len(sent) != 1 || sent[0].Run != other.ID {
		t.Fatalf("sent %+v", sent)
	}
	if d := mustDecided(t, s, old.ID, ci.DecisionSkipped); d.OtherRun != newer.ID {
		t.Fatalf("%+v", d)
	}
}

// Ensure that it does not speak either over a newer run of its commit that gave
// way to a third one meanwhile: the newer one's end is what was told last.
func TestLane_WhoIsResolvedLateIsOlderThanWhoGaveWay(t *testing.T) {
	s, c := ticking(t)
	old := mustRequest(t, s, manualRun("k", "main", 0))
	newer := mustPush(t, s, "d-1", 0, 1)
	third := mustPush(t, s, "d-2", 1, 2)
	mustNil(t, s.Supersede(t.Context(), store.Scope{}, []store.Supersession{{Run: newer.ID, By: third.ID, Reason: "newer"}}))
	mustSend(t, s, c.now())

	_, err := s.ResolveJob(t.Context(), old.ID, store.Resolution{Commit: sha(1)})
	mustNil(t, err)
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Succeeded)
	for _, e := range mustSend(t, s, c.now()) {
		if e.Run == old.ID {
			t.Fatalf("it spoke: %+v", e)
		}
	}
	if d := mustDecided(t, s, old.ID, ci.DecisionSkipped); d.OtherRun != newer.ID {
		t.Fatalf("%+v", d)
	}
}
