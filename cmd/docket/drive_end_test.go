package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
)

// driveClock is a time that a drive moves on.
type driveClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *driveClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *driveClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// driveRunner carries runs until it is told how they end.
type driveRunner struct {
	mu   sync.Mutex
	ends map[string]chan ci.State
	all  bool // those that come end at once
}

func (r *driveRunner) Carry(ctx context.Context, w runner.Work, _ runner.Recorder) runner.Result {
	c := make(chan ci.State, 1)
	r.mu.Lock()
	if r.all {
		c <- ci.Succeeded
	}
	r.ends[w.Run.ID] = c
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.ends, w.Run.ID)
		r.mu.Unlock()
	}()
	select {
	case state := <-c:
		return runner.Result{State: state}
	case <-ctx.Done():
		if stop, ok := context.Cause(ctx).(*runner.Stop); ok {
			return runner.Result{State: stop.State, Reason: stop.Reason}
		}
		return runner.Result{State: ci.Interrupted, Reason: "no cause"}
	}
}

// end ends one of the runs that are carried, one way or the other.
func (r *driveRunner) end(rnd *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, 0, len(r.ends))
	for id := range r.ends {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	r.tell(ids[rnd.IntN(len(ids))], []ci.State{ci.Succeeded, ci.Failed}[rnd.IntN(2)])
}

func (r *driveRunner) tell(id string, state ci.State) {
	select {
	case r.ends[id] <- state:
	default: // it was told already
	}
}

// endAll ends all that is carried, and what comes, at once.
func (r *driveRunner) endAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = true
	for id := range r.ends {
		r.tell(id, ci.Succeeded)
	}
}

func (r *driveRunner) Resolve(context.Context, string, string) (string, error) {
	return driveCommit(1), nil
}

func (r *driveRunner) Peel(context.Context, string, string, string) (string, error) {
	return driveCommit(1), nil
}

func (r *driveRunner) ReadFile(context.Context, string, string, string, string, string, int64) ([]byte, error) {
	return nil, nil
}

// Changed decides by the commit, so that some runs are skipped and some go on.
func (r *driveRunner) Changed(_ context.Context, _, _ string, span runner.Span) ([]string, string, error) {
	if strings.ContainsAny(span.Commit[39:], "02468ace") {
		return []string{"x"}, "", nil
	}
	return []string{"y"}, "", nil
}

func (r *driveRunner) Reap(context.Context, ci.Run) (int, error) { return 0, nil }
func (r *driveRunner) Remove(ci.Run) error                       { return nil }
func (r *driveRunner) Sweep(map[string]bool) error               { return nil }

// settle lets everything that was begun come to its end.
func (d *drive) settle() {
	d.t.Helper()
	d.lateOnes()
	d.stage.endAll()
	within := time.Minute + time.Duration(d.serial)*50*time.Millisecond // more may be left of a longer drive
	for deadline := time.Now().Add(within); ; time.Sleep(2 * time.Millisecond) {
		st, err := d.store.Stats()
		if err != nil {
			d.t.Fatal(err)
		}
		if st.Queued+st.Running+st.Held+st.Preparing+st.OutboxPending == 0 {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("it does not come to rest: %+v", st)
		}
		d.clock.add(time.Minute) // held runs lapse, limits end
	}
}

// check compares what GitHub was told last with what is on record.
func (d *drive) check() {
	d.t.Helper()
	speaks := map[string]ci.Run{} // by commit and context
	count := 0
	for p := (store.Page{Limit: store.MaxLimit}); ; {
		list, next, err := d.store.Runs(store.RunFilter{}, p)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, r := range list { // newest first
			count++
			key := r.Source.Commit + " " + r.Internal.Context
			now, known := speaks[key]
			switch {
			case r.Internal.Silent:
			case !known, now.SupersededBy == r.ID, now.Internal.Skip:
				speaks[key] = r
			}
		}
		if next == "" {
			break
		}
		p.Cursor = next
	}
	for key, r := range speaks {
		commit, context, _ := strings.Cut(key, " ")
		told := d.hub.Statuses(commit, context)
		if len(told) == 0 {
			d.t.Errorf("%s: nothing was told, and %s is %s", key, r.ID, r.State)
			continue
		}
		last := told[len(told)-1]
		want := map[ci.State]string{ci.Succeeded: "success", ci.Failed: "failure"}[r.State]
		if r.Internal.Skip {
			want = "success"
		} else if want == "" {
			want = "error"
		}
		if last.State != want || !strings.HasPrefix(last.Description, r.ID+" ") {
			d.t.Errorf("%s: told last %s %q, and %s is %s (%s)", key, last.State, last.Description, r.ID, r.State, r.Reason)
		}
	}
	for _, s := range d.hub.Statuses("", "") {
		if _, ok := speaks[s.Commit+" "+s.Context]; !ok {
			d.t.Errorf("told %s %q of a commit without a run", s.State, s.Description)
		}
	}
	dead, _, err := d.store.Entries(ci.OutboxDead, store.Page{})
	if err != nil || len(dead) > 0 {
		d.t.Errorf("%d notifications were given up, %v: %+v", len(dead), err, dead)
	}
	d.t.Logf("%d runs of %d commits and contexts, %d statuses in %d calls", count, len(speaks), len(d.hub.Statuses("", "")), len(d.hub.Calls("")))
}
