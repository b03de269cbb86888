package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that a status is an entry of the kind that the spec names, and obeys
// a status' rules whatever its kind: the newest run of a commit speaks, an end
// silences what only says pending, a hold is on the integration.
func TestOutbox_AStatusIsOfItsReportersKind(t *testing.T) {
	s, c := ticking(t)
	spec := reporting()
	spec.Reporter = ci.OutboxGiteaStatus
	old := mustClaim(t, s, mustPush(t, s, "d-1", 0, 1, withSpec(spec)).ID)
	draft := manualRun("k", "main", 1)
	draft.Draft.Spec = spec
	newer := mustRequest(t, s, draft)
	mustFinish(t, s, old, ci.Failed)
	if list := entriesOf(t, s, old.ID, ""); len(list) != 3 || list[2].Kind != ci.OutboxGiteaStatus {
		t.Fatalf("entries %+v", list)
	}
	mustNil(t, s.Hold(t.Context(), "github", c.now().Add(time.Second), "rate limit"))
	if due, _, _ := mustDue(t, s, c.now()); len(due) != 0 {
		t.Fatalf("due in spite of the hold: %v", due)
	}
	c.add(time.Second)
	mustFinish(t, s, mustClaim(t, s, newer.ID), ci.Succeeded)
	sent := mustSend(t, s, c.now())
	if len(sent) != 1 || sent[0].Run != newer.ID || sent[0].Event != "success" || sent[0].Kind != ci.OutboxGiteaStatus {
		t.Fatalf("sent %+v", sent)
	}
	var p ci.StatusPayload
	mustNil(t, json.Unmarshal(sent[0].Payload, &p))
	if p.Description != newer.ID+" succeeded" {
		t.Errorf("payload %+v", p)
	}
	if faults, err := s.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}
