package server_test

import (
	"strings"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that what retention has taken is told as that: a body that is gone
// refuses its replay, and a log that is gone is not an empty one.
func TestWhatRetentionHasTaken(t *testing.T) {
	r := newRig(t)
	if a := r.deliver("push", "d-1", mainPush()); a.status != 202 {
		t.Fatalf("%v", a)
	}
	run := r.mustClaimNext()
	if a := r.call(ci.Viewer, "GET", "/runs/"+run.ID+"/logs", ""); a.status != 200 {
		t.Errorf("the log of a run that has not printed yet: %v", a)
	}
	w := r.mustCreateLog(run)
	r.mustFinish(run, w)
	if n, err := r.store.PruneBodies(t.Context(), time.Now().Add(time.Hour), 10); n != 1 || err != nil {
		t.Fatalf("%d bodies, %v", n, err)
	}
	if err := r.store.Logs().Remove(run.ID); err != nil {
		t.Fatal(err)
	}
	receipt := "/receipts/github/-/d-1"
	if p := wantProblem(t, r.call(ci.Operator, "POST", receipt+"/replay", ""), 409); !strings.Contains(p.Detail, "is not kept any more, so that it cannot be judged again") {
		t.Errorf("%+v", p)
	}
	wantProblem(t, r.call(ci.Viewer, "GET", receipt+"/body", ""), 404)
	if a := r.call(ci.Viewer, "GET", receipt, ""); a.status != 200 {
		t.Errorf("the receipt: %v", a)
	}
	if p := wantProblem(t, r.call(ci.Viewer, "GET", "/runs/"+run.ID+"/logs", ""), 404); !strings.Contains(p.Detail, "retention has removed it") {
		t.Errorf("%+v", p)
	}
}
