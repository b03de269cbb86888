package scheduler_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that a queued run is claimed on the wakeup of its commit, carried,
// and its end recorded.
func TestRun_IsCarriedToItsEnd(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, nil)
	id := push(t, s, "api", -1, 1)
	if got := h.nextStarted(); got != id {
		t.Fatalf("started %s, want %s", got, id)
	}
	r := h.waitState(id, ci.Running)
	if r.Attempt != 1 || r.Internal.Boot != "this" {
		t.Fatalf("attempt %d of boot %q", r.Attempt, r.Internal.Boot)
	}
	h.stage.end(id) <- succeeded()
	h.waitState(id, ci.Succeeded)
}

// Ensure that with every wakeup lost the scan alone does it all.
func TestRun_WithoutWakeups(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) {
		o.NoWakeups, c.ScanInterval = true, 20*time.Millisecond
	})
	h.stage.resolve = func(string) (string, error) { return commit(1), nil }
	id := request(t, s, "k", ci.Job{Resolve: true}, nil)
	h.stage.end(id) <- succeeded()
	if got := h.nextStarted(); got != id {
		t.Fatalf("started %s", got)
	}
	h.waitState(id, ci.Succeeded)
}

// Ensure that no more runs run at once than the configuration allows, and
// that projects take turns.
func TestClaim_KeepsTheLimitAndIsFair(t *testing.T) {
	s := storetest.MustOpen(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, push(t, s, "api", -1, 10+i, ci.Step{Name: "test", Run: fmt.Sprint(i)}))
	}
	other := push(t, s, "web", -1, 20)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) {
		c.Limits.ConcurrentRuns = 2
		c.Projects = []ci.Project{{Name: "api", Supersede: ci.SupersedeNone}, {Name: "web"}}
	})
	first := []string{h.nextStarted(), h.nextStarted()}
	if !strings.Contains(strings.Join(first, " "), other) || !strings.Contains(strings.Join(first, " "), ids[0]) {
		t.Fatalf("started %v, want %s and %s", first, ids[0], other)
	}
	if r, err := s.Run(ids[1]); err != nil || r.State != ci.Queued {
		t.Fatalf("%s is %s with two running", ids[1], r.State)
	}
	h.stage.end(first[0]) <- succeeded()
	h.nextStarted()
}

// Ensure that too little free space starts nothing, says so, and that runs
// start again by themselves.
func TestClaim_WaitsForFreeSpace(t *testing.T) {
	s := storetest.MustOpen(t)
	var mu sync.Mutex
	free := int64(10)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) {
		c.Limits.FreeSpace, c.ScanInterval = 100, 10*time.Millisecond
		o.FreeSpace = func() (int64, error) { mu.Lock(); defer mu.Unlock(); return free, nil }
	})
	id := push(t, s, "api", -1, 1)
	poll(t, "low space is reported", h.sched.LowSpace)
	if r, _ := s.Run(id); r.State != ci.Queued {
		t.Fatalf("run is %s", r.State)
	}
	mu.Lock()
	free = 1000
	mu.Unlock()
	h.nextStarted()
	if h.sched.LowSpace() {
		t.Error("low space is still reported")
	}
}

// Ensure that a cancel request reaches the run and decides how it ends.
func TestCancel_RunningRun(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, nil)
	id := push(t, s, "api", -1, 1)
	h.nextStarted()
	if _, _, err := s.CancelRun(context.Background(), store.Action{Run: id, Key: "c", By: ci.By{Kind: ci.ByToken, Name: "ann"}}); err != nil {
		t.Fatal(err)
	}
	r := h.waitState(id, ci.Cancelled)
	if !strings.Contains(r.Reason, "ann") {
		t.Fatalf("reason %q", r.Reason)
	}
}

// Ensure that a deploy step that is refused because of a cancel request ends
// the run as cancelled, not as interrupted.
func TestCancel_BeforeDeployStep(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) { o.NoWakeups = true; c.ScanInterval = time.Hour })
	h.stage.begin = func(w runner.Work, rec runner.Recorder) error {
		if _, _, err := s.CancelRun(context.Background(), store.Action{Run: w.Run.ID, Key: "c", By: ci.By{Name: "ann"}}); err != nil {
			return err
		}
		return rec.StepStarted(context.Background(), 0, true, ci.Process{PID: 1})
	}
	h.stop()
	id := push(t, s, "api", -1, 1)
	h2 := open(t, s, nil)
	h2.stage.begin = h.stage.begin
	h2.waitState(id, ci.Cancelled)
}

// Ensure that what an earlier process left running is settled before any
// work: its processes are ended, it is interrupted, nothing runs twice.
func TestRecovery(t *testing.T) {
	for _, row := range []struct {
		name    string
		requeue bool
		deploy  bool
		cancel  bool
		want    ci.State
	}{
		{name: "a running run is interrupted", want: ci.Interrupted},
		{name: "one that is being cancelled is cancelled", cancel: true, want: ci.Cancelled},
		{name: "one whose project wants it is queued and runs again", requeue: true, want: ci.Running},
		{name: "but not once it entered a deploy step", requeue: true, deploy: true, want: ci.Interrupted},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := context.Background()
			s := storetest.MustOpen(t)
			id := push(t, s, "api", -1, 1)
			if _, ok, err := s.Claim(ctx, "earlier", 1); !ok || err != nil {
				t.Fatalf("claim: %v %v", ok, err)
			}
			if err := s.StepStarted(ctx, id, 1, 0, row.deploy, ci.Process{PID: 1}); err != nil {
				t.Fatal(err)
			}
			if row.cancel {
				if _, _, err := s.CancelRun(ctx, store.Action{Run: id, Key: "c", By: ci.By{Name: "ann"}}); err != nil {
					t.Fatal(err)
				}
			}
			h := open(t, s, func(_ *scheduler.Options, c *ci.Config) {
				if row.requeue {
					c.Projects[0].OnInterrupt = ci.OnInterruptRequeue
				}
			})
			r := h.waitFor(id, func(r ci.Run) bool {
				return r.State == row.want && (row.want != ci.Running || r.Attempt > 1)
			})
			if row.want == ci.Running {
				h.nextStarted()
				if r.Attempt != 2 {
					t.Fatalf("attempt %d", r.Attempt)
				}
				if err := s.FinishRun(ctx, id, 1, store.Result{State: ci.Succeeded}); err != store.ErrLate {
					t.Fatalf("the first attempt's late result: %v", err)
				}
			}
			if len(h.stage.reaped) != 1 || h.stage.reaped[0] != id {
				t.Fatalf("reaped %v", h.stage.reaped)
			}
			list, _, err := s.Decisions(id, store.Page{})
			if err != nil || len(list) == 0 || list[0].By.Name != "recovery" {
				t.Fatalf("decisions %+v, %v", list, err)
			}
		})
	}
}

// Ensure that a shutdown claims nothing more, waits the grace, and records
// what still runs as interrupted.
func TestShutdown(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, nil)
	a := push(t, s, "api", -1, 1)
	h.nextStarted()
	b := push(t, s, "web", -1, 2)
	h.stop()
	if r, _ := s.Run(a); r.State != ci.Interrupted || !strings.Contains(r.Reason, "shut down") {
		t.Fatalf("running one is %s: %s", r.State, r.Reason)
	}
	if r, _ := s.Run(b); r.State != ci.Queued {
		t.Fatalf("queued one is %s", r.State)
	}
}

// Ensure that a fork's run is carried without secrets, and that a secret that
// is gone fails the run by name.
func TestSecrets(t *testing.T) {
	s := storetest.MustOpen(t)
	got := make(chan map[string]ci.Secret, 2)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) {
		c.Projects[0].Secrets = map[string]ci.Secret{"TOKEN": ci.NewSecret("t", "value")}
	})
	h.stage.begin = func(w runner.Work, _ runner.Recorder) error { got <- w.Secrets; return nil }
	h.stage.resolve = func(string) (string, error) { return commit(1), nil }
	own := request(t, s, "own", ci.Job{Resolve: true}, func(d *ci.Draft) { d.Spec.Secrets = []string{"TOKEN"} })
	h.stage.end(own) <- succeeded()
	if m := <-got; m["TOKEN"].Reveal() != "value" {
		t.Fatalf("secrets %v", m)
	}
	fork := request(t, s, "fork", ci.Job{Resolve: true}, func(d *ci.Draft) { d.Fork = true; d.Spec.Secrets = []string{"TOKEN"} })
	h.waitState(fork, ci.Held)
	if _, _, err := s.Approve(context.Background(), store.Action{Run: fork, Key: "a", By: ci.By{Name: "ann"}}); err != nil {
		t.Fatal(err)
	}
	h.stage.end(fork) <- succeeded()
	if m := <-got; len(m) != 0 {
		t.Fatalf("an approved fork's run got %v", m)
	}
	gone := request(t, s, "gone", ci.Job{Resolve: true}, func(d *ci.Draft) { d.Spec.Secrets = []string{"OTHER"} })
	if r := h.waitState(gone, ci.Failed); !strings.Contains(r.Reason, "OTHER") {
		t.Fatalf("reason %q", r.Reason)
	}
}

// Ensure that a run's end that cannot be recorded is recorded when the store
// takes writes again.
func TestEnd_SurvivesAStoreThatTakesNoWrites(t *testing.T) {
	var mu sync.Mutex
	full := false
	s := storetest.MustOpenAt(t, filepath.Join(t.TempDir(), "docket.db"), store.Options{Failpoint: func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		if full && point == store.FailBeforeCommit {
			return fmt.Errorf("no space")
		}
		return nil
	}})
	h := open(t, s, nil)
	id := push(t, s, "api", -1, 1)
	h.nextStarted()
	mu.Lock()
	full = true
	mu.Unlock()
	h.stage.end(id) <- succeeded()
	poll(t, "the store fails", func() bool { return s.Health() != nil })
	mu.Lock()
	full = false
	mu.Unlock()
	h.waitState(id, ci.Succeeded)
}

// Ensure that what ended before the retention goes by itself, log and all.
func TestRetention(t *testing.T) {
	s := storetest.MustOpen(t)
	first, second := push(t, s, "api", -1, 1), ""
	var mu sync.Mutex
	ahead := time.Duration(0)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) {
		c.Retention, c.ScanInterval = ci.Retention{Runs: time.Hour}, 10*time.Millisecond
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) }
		start := time.Now()
		o.Elapsed = func() time.Duration { mu.Lock(); defer mu.Unlock(); return time.Since(start) + ahead }
	})
	h.nextStarted()
	h.stage.end(first) <- succeeded()
	h.waitState(first, ci.Succeeded)
	second = push(t, s, "api", 1, 2)
	h.nextStarted()
	h.stage.end(second) <- succeeded()
	h.waitState(second, ci.Succeeded)
	mu.Lock()
	ahead = 2 * time.Hour
	mu.Unlock()
	poll(t, "the old run is removed", func() bool { _, err := s.Run(first); return ci.CodeOf(err) == ci.CodeNotFound })
	poll(t, "its log is removed", func() bool { _, err := s.Logs().Open(first, 1); return ci.CodeOf(err) == ci.CodeNotFound })
	if _, err := s.Run(second); err != nil {
		t.Fatalf("the newest run: %v", err)
	}
}
