package scheduler_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

const patience = 10 * time.Second

// stage is a fake runner that a test steps through: each carried run waits on
// it until the test says how it ends.
type stage struct {
	mu      sync.Mutex
	started chan string // run ids, in order
	ends    map[string]chan runner.Result
	stops   map[string]*runner.Stop
	reaped  []string

	resolve  func(ref string) (string, error)
	readFile func(ref, commit, path string) ([]byte, error)
	begin    func(w runner.Work, rec runner.Recorder) error
}

func newStage() *stage {
	return &stage{started: make(chan string, 100), ends: map[string]chan runner.Result{}, stops: map[string]*runner.Stop{}}
}

func (s *stage) end(id string) chan runner.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends[id] == nil {
		s.ends[id] = make(chan runner.Result, 1)
	}
	return s.ends[id]
}

func (s *stage) Carry(ctx context.Context, w runner.Work, rec runner.Recorder) runner.Result {
	if s.begin != nil {
		if err := s.begin(w, rec); err != nil {
			return runner.Result{State: ci.Interrupted, Reason: err.Error()}
		}
	}
	s.started <- w.Run.ID
	select {
	case r := <-s.end(w.Run.ID):
		return r
	case <-ctx.Done():
		stop, _ := context.Cause(ctx).(*runner.Stop)
		s.mu.Lock()
		s.stops[w.Run.ID] = stop
		s.mu.Unlock()
		if stop == nil {
			return runner.Result{State: ci.Interrupted, Reason: "no cause"}
		}
		return runner.Result{State: stop.State, Reason: stop.Reason}
	}
}

func (s *stage) Resolve(_ context.Context, _, ref string) (string, error) { return s.resolve(ref) }

func (s *stage) Peel(_ context.Context, _, ref, object string) (string, error) {
	return s.resolve(ref + " " + object)
}

func (s *stage) ReadFile(_ context.Context, _, _, ref, commit, path string, _ int64) ([]byte, error) {
	return s.readFile(ref, commit, path)
}

func (s *stage) Reap(_ context.Context, r ci.Run) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reaped = append(s.reaped, r.ID)
	return 3, nil
}

func (s *stage) Remove(ci.Run) error         { return nil }
func (s *stage) Sweep(map[string]bool) error { return nil }

// house is a scheduler at work on a real store.
type house struct {
	t     *testing.T
	store *store.Store
	stage *stage
	cfg   *ci.Config
	stop  func()
	sched *scheduler.Scheduler
}

func open(t *testing.T, s *store.Store, change func(*scheduler.Options, *ci.Config)) *house {
	t.Helper()
	h := &house{t: t, store: s, stage: newStage(), cfg: &ci.Config{
		DataDir: t.TempDir(), ScanInterval: time.Hour, ShutdownGrace: 50 * time.Millisecond,
		Limits: ci.Limits{ConcurrentRuns: 1, Log: 1 << 20},
		Projects: []ci.Project{
			{Name: "api", Supersede: ci.SupersedePending}, {Name: "web", Supersede: ci.SupersedePending},
		},
	}}
	o := scheduler.Options{Store: s, Config: func() *ci.Config { return h.cfg }, Runner: h.stage, Boot: "this"}
	if change != nil {
		change(&o, h.cfg)
	}
	h.sched = scheduler.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.sched.Run(ctx) }()
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("scheduler: %v", err)
				}
			case <-time.After(patience):
				t.Error("the scheduler does not end")
			}
		})
	}
	t.Cleanup(h.stop)
	return h
}

func (h *house) nextStarted() string {
	h.t.Helper()
	select {
	case id := <-h.stage.started:
		return id
	case <-time.After(patience):
		h.t.Fatal("nothing was started")
		return ""
	}
}

// waitFor waits until a run satisfies ok, woken by the store.
func (h *house) waitFor(id string, ok func(ci.Run) bool) ci.Run {
	h.t.Helper()
	changed, stop := h.store.Watch(store.TopicRuns)
	defer stop()
	deadline := time.After(patience)
	for {
		r, err := h.store.Run(id)
		if err == nil && ok(r) {
			return r
		}
		select {
		case <-changed:
		case <-deadline:
			h.t.Fatalf("run %s stays %s (%s), %v", id, r.State, r.Reason, err)
		}
	}
}

func (h *house) waitState(id string, want ci.State) ci.Run {
	h.t.Helper()
	return h.waitFor(id, func(r ci.Run) bool { return r.State == want })
}

var serial int

func commit(n int) string { return fmt.Sprintf("%040x", n+1) }

// push accepts a push to main from one commit to another.
func push(t *testing.T, s *store.Store, project string, from, to int, steps ...ci.Step) string {
	t.Helper()
	serial++
	if len(steps) == 0 {
		steps = []ci.Step{{Name: "test", Run: "true"}}
	}
	e := ci.Event{Kind: "push", Ref: "refs/heads/main", Branch: "main", Commit: commit(to), Repository: ci.Repository{ID: 7, FullName: "acme/" + project}}
	if from >= 0 {
		e.Before = commit(from)
	}
	id := fmt.Sprintf("delivery-%d", serial)
	a, err := s.Accept(context.Background(), store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: id, Event: "push", Body: []byte(id), ReceivedAt: time.Now()},
		Event:    e,
		Drafts: []ci.Draft{{
			Project: project, Integration: "github", State: ci.Queued, Spec: ci.Spec{Version: 1, CloneURL: "/nowhere", Steps: steps},
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/" + id, Event: "push"},
			Source: ci.Source{Repository: "acme/" + project, Ref: e.Ref, Branch: "main", Commit: e.Commit, Before: e.Before},
			Scope:  project + " push 7 refs/heads/main", Supersede: ci.SupersedePending,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.Runs[0].ID
}

// request asks for a run by hand that needs an inbox job.
func request(t *testing.T, s *store.Store, key string, job ci.Job, change func(*ci.Draft)) string {
	t.Helper()
	d := ci.Draft{
		Project: "api", Integration: "github", State: ci.Preparing, Job: &job, Spec: ci.Spec{Version: 1, CloneURL: "/nowhere"},
		Cause: ci.Cause{Kind: ci.CauseRequest}, Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main"},
	}
	if job.Pipeline == "" {
		d.Spec.Steps = []ci.Step{{Name: "test", Run: "true"}}
	}
	if change != nil {
		change(&d)
	}
	r, _, err := s.Request(context.Background(), store.Request{Project: "api", Key: key, Digest: "d", Draft: d})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func succeeded() runner.Result {
	return runner.Result{State: ci.Succeeded, Steps: []ci.StepResult{{Name: "test", State: ci.StepSucceeded}}}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

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

// Ensure that the branch of a request is resolved once, frozen, and retried
// while the remote does not answer; and that what can never work fails the run.
func TestPrepare(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	tries := 0
	h.stage.resolve = func(ref string) (string, error) {
		if ref == "refs/heads/gone" {
			return "", ci.Errorf(ci.CodeNotFound, "branch gone does not exist")
		}
		if tries++; tries == 1 {
			return "", fmt.Errorf("no answer")
		}
		return commit(5), nil
	}
	gone := request(t, s, "gone", ci.Job{Resolve: true}, func(d *ci.Draft) { d.Source.Ref, d.Source.Branch = "refs/heads/gone", "gone" })
	if r := h.waitState(gone, ci.Failed); !strings.Contains(r.Reason, "does not exist") {
		t.Fatalf("reason %q", r.Reason)
	}
	id := request(t, s, "k", ci.Job{Resolve: true}, nil)
	if r := h.waitState(id, ci.Queued); r.Source.Commit != commit(5) || r.Internal.Job != nil {
		t.Fatalf("frozen %+v", r.Source)
	}
}

// Ensure that an annotated tag's own object is peeled: its run is of the
// commit, and never of the tag object.
func TestPrepare_AnnotatedTag(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	h.stage.resolve = func(ref string) (string, error) {
		if ref != "refs/tags/v1 "+commit(40) {
			return "", fmt.Errorf("asked for %s", ref)
		}
		return commit(41), nil
	}
	id := request(t, s, "tag", ci.Job{Resolve: true}, func(d *ci.Draft) {
		d.Spec.Report = true
		d.Source = ci.Source{Repository: "acme/api", Ref: "refs/tags/v1", Tag: "v1", Commit: commit(40)}
	})
	r := h.waitState(id, ci.Queued)
	if r.Source.Commit != commit(41) {
		t.Fatalf("commit %s", r.Source.Commit)
	}
	list, _, err := s.Entries("", store.Page{})
	if err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Target, commit(41)) {
		t.Fatalf("entries %+v, %v", list, err)
	}
}

// Ensure that the pipeline file is read at the run's commit, that a fork's
// pull request uses the base's, and that a mistake in it fails the run with
// its place.
func TestPrepare_Pipeline(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	h.stage.resolve = func(ref string) (string, error) {
		if ref != "refs/heads/main" {
			return "", fmt.Errorf("asked for %s", ref)
		}
		return commit(9), nil
	}
	h.stage.readFile = func(ref, at, path string) ([]byte, error) {
		switch at {
		case commit(1):
			return []byte("steps:\n  - {name: own, run: make}\n"), nil
		case commit(9):
			return []byte("steps:\n  - {name: base, run: make}\n"), nil
		}
		return []byte("steps: 5\n"), nil
	}
	job := ci.Job{Pipeline: ".docket.yml"}
	own := request(t, s, "own", job, func(d *ci.Draft) { d.Source.Commit = commit(1) })
	if r := h.waitState(own, ci.Queued); len(r.Steps) != 1 || r.Steps[0].Name != "own" {
		t.Fatalf("steps %+v", r.Steps)
	}
	fork := request(t, s, "fork", job, func(d *ci.Draft) {
		d.Fork = true
		d.Source = ci.Source{Repository: "acme/api", Ref: "refs/pull/3/head", Commit: commit(2), PullRequest: &ci.PullRequest{Number: 3, Base: "main", Fork: true}}
	})
	if r := h.waitState(fork, ci.Held); len(r.Steps) != 1 || r.Steps[0].Name != "base" {
		t.Fatalf("steps %+v", r.Steps)
	}
	bad := request(t, s, "bad", job, func(d *ci.Draft) { d.Source.Commit = commit(3) })
	if r := h.waitState(bad, ci.Failed); !strings.Contains(r.Reason, ".docket.yml:1:") {
		t.Fatalf("reason %q", r.Reason)
	}
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
		c.Retention, c.ScanInterval = time.Hour, 10*time.Millisecond
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) }
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
