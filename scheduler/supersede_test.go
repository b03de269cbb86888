package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that older pending pushes of a ref give way to the newest one, and
// that what runs does not.
func TestSupersede_PendingGiveWay(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, nil)
	a := push(t, s, "api", -1, 1)
	h.nextStarted()
	b := push(t, s, "api", 1, 2)
	c := push(t, s, "api", 2, 3)
	r := h.waitState(b, ci.Superseded)
	if r.SupersededBy != c || !strings.Contains(r.Reason, c) {
		t.Fatalf("superseded by %q: %q", r.SupersededBy, r.Reason)
	}
	list, _, err := s.Decisions(b, store.Page{})
	if err != nil || len(list) != 1 || list[0].OtherRun != c || list[0].Kind != ci.DecisionSuperseded {
		t.Fatalf("decisions %+v, %v", list, err)
	}
	if r, _ := s.Run(a); r.State != ci.Running {
		t.Fatalf("the running one is %s", r.State)
	}
	h.stage.end(a) <- succeeded()
	if got := h.nextStarted(); got != c {
		t.Fatalf("started %s, want %s", got, c)
	}
}

// Ensure that a push that arrives after its successor gives way to it.
func TestSupersede_LatePush(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 2 })
	newer := push(t, s, "api", 1, 2)
	h.nextStarted()
	late := push(t, s, "api", 0, 1)
	r := h.waitState(late, ci.Superseded)
	if r.SupersededBy != newer {
		t.Fatalf("superseded by %q", r.SupersededBy)
	}
}

// Ensure that with supersede: running a running one is stopped as superseded,
// and one that has entered a deploy step is not.
func TestSupersede_Running(t *testing.T) {
	for _, deploying := range []bool{false, true} {
		t.Run(fmt.Sprintf("deploying=%v", deploying), func(t *testing.T) {
			s := storetest.MustOpen(t)
			h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Projects[0].Supersede = ci.SupersedeRunning })
			h.stage.begin = func(w runner.Work, rec runner.Recorder) error {
				return rec.StepStarted(context.Background(), 0, deploying, ci.Process{PID: 1})
			}
			a := push(t, s, "api", -1, 1)
			h.nextStarted()
			b := push(t, s, "api", 1, 2)
			if !deploying {
				r := h.waitState(a, ci.Superseded)
				if r.SupersededBy != b {
					t.Fatalf("superseded by %q", r.SupersededBy)
				}
				h.nextStarted()
				return
			}
			poll(t, "the scope is decided", func() bool { l, err := s.Scopes(1); return err == nil && len(l) == 0 })
			h.stage.end(a) <- succeeded()
			h.waitState(a, ci.Succeeded)
			h.nextStarted()
		})
	}
}

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
	anew := h.waitState("api-4", ci.Running) // and has its run all the same
	if anew.Source.Commit != commit(3) || anew.Cause.Kind != ci.CauseRerun || anew.Cause.Run != third {
		t.Errorf("made anew as %+v of %s", anew.Cause, anew.Source.Commit)
	}
	if r := h.waitState(second, ci.Superseded); r.SupersededBy != anew.ID {
		t.Errorf("the second push gave way to %s", r.SupersededBy)
	}
}

// Ensure that pushes without end keep neither the rest of a scan nor a
// shutdown waiting: a look decides on what it finds, and another one goes on.
func TestSupersede_EndsUnderPushesWithoutEnd(t *testing.T) {
	s := storetest.MustOpen(t)
	cfg := ci.Config{Projects: []ci.Project{{Name: "api", Supersede: ci.SupersedePending}}}
	looks := 0
	sched := scheduler.New(scheduler.Options{Store: s, Boot: "test", Config: func() *ci.Config {
		if looks++; looks < 1000 {
			push(t, s, "api", looks+1, looks+2) // another one, while this one is decided on
		}
		return &cfg
	}})
	push(t, s, "api", -1, 1)
	push(t, s, "api", 1, 2)
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := sched.Decide(ended); err != nil || looks > 0 {
		t.Fatalf("asked to end, it looked %d times: %v", looks, err)
	}
	if err := sched.Decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	if looks == 0 || looks >= 1000 {
		t.Fatalf("it looked %d times", looks)
	}
}
