package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
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
	changed  func(span runner.Span) ([]string, string, error)
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

func (s *stage) Changed(_ context.Context, _, _ string, span runner.Span) ([]string, string, error) {
	return s.changed(span)
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
