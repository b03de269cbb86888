package server

import (
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// Ensure that without traces a delivery's handler allocates nothing for them
// and looks at no clock.
func TestWithoutTracesNothingIsSpent(t *testing.T) {
	s := &Server{now: func() time.Time { t.Error("the clock was looked at"); return time.Time{} }}
	d, a := ci.Delivery{Integration: "github", ID: "d-1"}, store.Accepted{}
	n := testing.AllocsPerRun(1000, func() {
		watch := s.stopwatch()
		watch.mark(&watch.verified)
		watch.mark(&watch.judged)
		watch.mark(&watch.committed)
		s.traceDelivery(&watch, nil, &d, &a, nil)
		s.traceRequest(&watch, nil, "api-1", false)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
