package scheduler_test

import (
	"sync"
	"testing"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that a running run that has been asked to give way takes nobody's
// place meanwhile: here arrival made the last push look like an old one, and
// the move that shows otherwise comes while it is being stopped.
func TestSupersede_WhoGivesWayTakesNoPlace(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Projects[0].Supersede = ci.SupersedeRunning })
	release := make(chan struct{})
	var once sync.Once
	let := func() { once.Do(func() { close(release) }) }
	t.Cleanup(let) // before the scheduler is waited for
	h.stage.begin = func(w runner.Work, _ runner.Recorder) error {
		if w.Run.Number == 1 {
			<-release
		}
		return nil
	}
	third := push(t, s, "api", 2, 3)
	h.waitState(third, ci.Running)
	first := push(t, s, "api", 0, 1)
	h.waitFor(third, func(r ci.Run) bool { return r.CancelRequested != nil })
	second := push(t, s, "api", 1, 2)
	if r := h.waitState(first, ci.Superseded); r.SupersededBy != second {
		t.Errorf("the first push gave way to %s, want %s", r.SupersededBy, second)
	}
	let()
	h.waitState(third, ci.Superseded)
	h.waitState(second, ci.Running)
}
