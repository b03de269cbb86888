package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
)

// machine drives a store and its model side by side.
type machine struct {
	dir     string
	n       int // of crashes
	actions int
	s       *store.Store
	m       *model
	clock   *clock
	failing failing
}

func (x *machine) path() string { return filepath.Join(x.dir, fmt.Sprintf("docket-%d.db", x.n)) }

func (x *machine) open(t *rapid.T) {
	t.Helper()
	s, err := store.Open(x.path(), store.Options{Now: x.clock.now, Failpoint: x.failing.hook})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	x.s = s
}

// Ensure that whatever is asked of a store, in whatever order, with crashes
// and failed commits between, it does what a few maps say.
func TestStore_DoesWhatItsModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "docket-machine-*")
		if err != nil {
			t.Fatalf("%v", err)
		}
		c := newClock()
		x := &machine{dir: dir, clock: c, m: newModel(c.now())}
		x.open(t)
		defer func() {
			x.s.Close()
			os.RemoveAll(dir)
		}()
		t.Repeat(map[string]func(*rapid.T){
			"":           x.sometimes,
			"accept":     x.accept,
			"request":    x.request,
			"slot":       x.slot,
			"cancel":     x.cancel,
			"approve":    x.approve,
			"rerun":      x.rerun,
			"resolve":    x.resolve,
			"claim":      x.claim,
			"step":       x.step,
			"finish":     x.finish,
			"lost":       x.lost,
			"supersede":  x.supersede,
			"begin":      x.begin,
			"end":        x.end,
			"retry":      x.retry,
			"discard":    x.discard,
			"hold":       x.hold,
			"wait":       x.wait,
			"crash":      x.crash,
			"failpoint":  x.failpoint,
			"deliveries": x.accept,
			"claims":     x.claim,
			"attempts":   x.begin,
		})
		x.check(t)
		if err := x.s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		broken, err := store.VerifyFile(context.Background(), x.path())
		if err != nil || len(broken) > 0 {
			t.Fatalf("verify: %q, %v", broken, err)
		}
	})
}

// sometimes checks after some of the actions: comparing everything costs more
// than doing it.
func (x *machine) sometimes(t *rapid.T) {
	if x.actions++; x.actions%8 == 0 {
		x.check(t)
	}
}

// check compares all that can be seen.
func (x *machine) check(t *rapid.T) {
	x.checkSlot(t)
	for _, want := range x.m.order {
		got := mustRun(t, x.s, want.id)
		asked := ci.State("")
		if got.CancelRequested != nil {
			asked = got.CancelRequested.Into
		}
		if got.State != want.state || got.Attempt != want.attempt || got.Fork != want.fork || got.Source.Commit != want.commit ||
			asked != want.cancel || got.SupersededBy != want.supersededBy || got.Internal.Deploying != want.deploying {
			t.Fatalf("run %s: %+v, want %+v", want.id, got, *want)
		}
	}
	if _, err := x.s.Run(fmt.Sprintf("api-%d", len(x.m.order)+1)); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a run too many: %v", err)
	}
	for id, want := range x.m.receipts {
		got, err := x.s.Receipt(ci.NewReceiptID("github", 12345, id))
		if err != nil || got.Outcome != want.outcome || !slices.Equal(got.Runs, append([]string{}, want.runs...)) {
			t.Fatalf("receipt %s: %+v, %v; want %+v", id, got, err, *want)
		}
	}
	entries := x.entries(t)
	if len(entries) != len(x.m.entries) {
		t.Fatalf("%d entries, want %d", len(entries), len(x.m.entries))
	}
	for i, want := range x.m.entries {
		got := entries[i]
		if got.Run != want.run || got.Event != want.event || got.State != want.state || got.Attempts != want.attempts || got.Final != want.final {
			t.Fatalf("entry %s: %+v, want %+v", got.ID, got, *want)
		}
	}
	x.checkDue(t, entries)
}

func (x *machine) checkDue(t *rapid.T, entries []ci.OutboxEntry) {
	due, _, _ := mustDue(t, x.s, x.clock.now())
	var want []string
	for _, i := range x.m.due() {
		want = append(want, entries[i].ID)
	}
	slices.Sort(due)
	slices.Sort(want)
	if !slices.Equal(due, want) {
		t.Fatalf("due %v, want %v", due, want)
	}
}

// entries returns all entries, oldest first.
func (x *machine) entries(t *rapid.T) (list []ci.OutboxEntry) {
	for p := (store.Page{Limit: store.MaxLimit}); ; {
		page, next, err := x.s.Entries("", p)
		if err != nil {
			t.Fatalf("entries: %v", err)
		}
		list = append(list, page...)
		if next == "" {
			slices.Reverse(list)
			return list
		}
		p.Cursor = next
	}
}

// entryID returns the id of the model's i-th entry, in the order in which they
// were made.
func (x *machine) entryID(t *rapid.T, i int) string {
	list := x.entries(t)
	if len(list) <= i {
		t.Fatalf("%d entries, and there should be a %d.", len(list), i+1)
	}
	return list[i].ID
}

func (x *machine) someRun(t *rapid.T, keep func(*mRun) bool) *mRun {
	var list []*mRun
	for _, r := range x.m.order {
		if keep(r) {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		t.Skip("no such run")
	}
	return rapid.SampledFrom(list).Draw(t, "run")
}

func anyRun(*mRun) bool { return true }

func running(r *mRun) bool { return r.state == ci.Running }

func (x *machine) someEntry(t *rapid.T, keep func(i int) bool) int {
	var list []int
	for i := range x.m.entries {
		if keep(i) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		t.Skip("no such entry")
	}
	return rapid.SampledFrom(list).Draw(t, "entry")
}

// delivery draws an acceptance and the runs that the model makes of it.
func (x *machine) delivery(t *rapid.T) (a store.Acceptance, body string, drafts []mRun) {
	id := fmt.Sprint("d-", rapid.IntRange(0, 30).Draw(t, "id"))
	project := rapid.SampledFrom([]string{"api", "web"}).Draw(t, "project")
	branch := rapid.SampledFrom([]string{"main", "dev"}).Draw(t, "branch")
	before, after := rapid.IntRange(0, 5).Draw(t, "before"), rapid.IntRange(1, 5).Draw(t, "after")
	body = fmt.Sprint(id, " ", rapid.SampledFrom([]int{1, 1, 1, 1, 2}).Draw(t, "body"))
	d := mRun{project: project, branch: branch, commit: sha(after), context: "docket/" + project, cause: ci.CauseDelivery, state: ci.Queued}
	d.group = rapid.SampledFrom([]string{"", "", "g"}).Draw(t, "group")
	change := []func(*store.Acceptance){func(a *store.Acceptance) {
		a.Delivery.Body = []byte(body)
		a.Drafts[0].Spec, a.Drafts[0].Group = modelSpec(), d.group
	}}
	switch rapid.SampledFrom([]string{"push", "push", "push", "fork", "pipeline", "ignored", "skip", "undecided"}).Draw(t, "kind") {
	case "fork":
		d.fork, d.state, d.context = true, ci.Held, d.context+"/pr"
		change = append(change, fromFork(7))
	case "pipeline":
		d.state = ci.Preparing
		change = append(change, func(a *store.Acceptance) {
			a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
		})
	case "skip":
		d.state, d.skip = ci.Cancelled, true
		change = append(change, func(a *store.Acceptance) {
			a.Drafts[0].State, a.Drafts[0].Skip, a.Drafts[0].Reason = ci.Cancelled, true, "no file"
		})
	case "undecided":
		d.state, d.undecided = ci.Preparing, true
		change = append(change, func(a *store.Acceptance) {
			a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Paths: &ci.Paths{Only: []string{"x"}}, OnSkip: ci.OnSkipReport}
		})
	case "ignored":
		return pushed(id, project, branch, before, after, append(change, ignored("x"))...), body, nil
	}
	return pushed(id, project, branch, before, after, change...), body, []mRun{d}
}

func modelSpec() ci.Spec {
	s := notifying(modelTarget)
	s.Notify[0].Events = []string{ci.RunQueued, ci.RunStarted, ci.RunFinished}
	return s
}

func (x *machine) accept(t *rapid.T) {
	a, body, drafts := x.delivery(t)
	out, err := x.s.Accept(context.Background(), a)
	runs, duplicate, conflict := x.m.accept(a.Delivery.ID, body, drafts)
	if conflict {
		mustCode(t, err, ci.CodeConflict)
		return
	}
	var got []string
	for _, r := range out.Runs {
		got = append(got, r.ID)
	}
	if err != nil || out.Duplicate != duplicate || !slices.Equal(got, runs) {
		t.Fatalf("accepted %v, duplicate %v, %v; want %v, %v", got, out.Duplicate, err, runs, duplicate)
	}
}

func (x *machine) manual(t *rapid.T) (store.Request, mRun) {
	commit := rapid.IntRange(0, 5).Draw(t, "commit")
	r := manualRun(rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(t, "key"), "main", commit)
	r.Draft.Spec = modelSpec()
	d := mRun{project: "api", branch: "main", commit: sha(commit), context: "docket/api", cause: ci.CauseRequest, state: ci.Queued}
	if commit == 0 {
		d.state = ci.Preparing
	}
	return r, d
}

func (x *machine) request(t *rapid.T) {
	r, d := x.manual(t)
	run, replayed, err := x.s.Request(context.Background(), r)
	known, ok := x.m.keys[r.Key]
	switch {
	case ok && known.digest != r.Digest:
		var e *ci.Error
		if !errors.As(err, &e) || e.Code != ci.CodeConflict || e.ExistingRun != known.run {
			t.Fatalf("%v, want a conflict with %s", err, known.run)
		}
	case ok:
		if err != nil || !replayed || run.ID != known.run {
			t.Fatalf("%s %v %v, want %s", run.ID, replayed, err, known.run)
		}
	default:
		want := x.m.create(d)
		if err != nil || replayed || run.ID != want.id {
			t.Fatalf("%s %v %v, want %s", run.ID, replayed, err, want.id)
		}
		if r.Key != "" {
			x.m.keys[r.Key] = mKey{r.Digest, want.id}
		}
	}
}

func (x *machine) cancel(t *rapid.T) {
	r := x.someRun(t, anyRun)
	_, _, err := x.s.CancelRun(context.Background(), action(r.id, ""))
	switch {
	case r.state.Final():
		mustCode(t, err, ci.CodeConflict)
		return
	case r.state.Pending():
		x.m.move(r, ci.Cancelled)
	default:
		r.cancel, r.cancelBy = ci.Cancelled, ""
	}
	mustNil(t, err)
}

func (x *machine) approve(t *rapid.T) {
	r := x.someRun(t, anyRun)
	_, _, err := x.s.Approve(context.Background(), action(r.id, ""))
	if r.state != ci.Held {
		mustCode(t, err, ci.CodeConflict)
		return
	}
	mustNil(t, err)
	x.m.move(r, ci.Queued)
}

func (x *machine) rerun(t *rapid.T) {
	r := x.someRun(t, anyRun)
	got, _, err := x.s.Rerun(context.Background(), action(r.id, ""))
	if !r.state.Final() || r.commit == "" {
		mustCode(t, err, ci.CodeConflict)
		return
	}
	mustNil(t, err)
	d := mRun{project: r.project, branch: r.branch, commit: r.commit, context: r.context, cause: ci.CauseRerun, fork: r.fork, group: r.group, state: ci.Queued}
	if d.fork {
		d.state = ci.Held
	}
	if want := x.m.create(d); got.ID != want.id {
		t.Fatalf("%s, want %s", got.ID, want.id)
	}
}

func (x *machine) resolve(t *rapid.T) {
	r := x.someRun(t, func(r *mRun) bool { return r.state == ci.Preparing })
	if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		_, err := x.s.ResolveJob(context.Background(), r.id, store.Resolution{Failed: "no"})
		mustNil(t, err)
		x.m.move(r, ci.Failed)
		return
	}
	if r.undecided && rapid.Bool().Draw(t, "skipped") {
		_, err := x.s.ResolveJob(context.Background(), r.id, store.Resolution{Skipped: "no file"})
		mustNil(t, err)
		r.skip, r.silent = true, x.m.settled(r)
		x.m.move(r, ci.Cancelled)
		return
	}
	res := store.Resolution{}
	if r.commit == "" {
		res.Commit = sha(rapid.IntRange(1, 5).Draw(t, "commit"))
		r.commit = res.Commit
		delete(x.m.forks, r.project+" "+r.commit)
	}
	_, err := x.s.ResolveJob(context.Background(), r.id, res)
	mustNil(t, err)
	if r.fork {
		x.m.move(r, ci.Held)
	} else {
		x.m.move(r, ci.Queued)
	}
}

func (x *machine) claim(t *rapid.T) {
	limit := rapid.IntRange(1, 4).Draw(t, "max")
	got, ok, err := x.s.ClaimAny(context.Background(), boot, limit)
	want := x.m.claim(limit)
	if err != nil || ok != (want != nil) || ok && got.ID != want.id {
		t.Fatalf("claimed %q %v %v, want %+v", got.ID, ok, err, want)
	}
}

// attempt draws the current attempt of a run, or now and then another one.
func attempt(t *rapid.T, r *mRun) int {
	return r.attempt + rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1}).Draw(t, "attempt")
}

func (x *machine) step(t *rapid.T) {
	r := x.someRun(t, running)
	n, step := attempt(t, r), rapid.IntRange(-1, 1).Draw(t, "step")
	err := x.s.StepStarted(context.Background(), r.id, n, step, step == 1, ci.Process{PID: 1})
	switch {
	case n != r.attempt:
		if !errors.Is(err, store.ErrLate) {
			t.Fatalf("a late step: %v", err)
		}
	case step == 1 && r.cancel != "":
		mustCode(t, err, ci.CodeConflict)
	default:
		mustNil(t, err)
		r.deploying = r.deploying || step == 1
	}
}

func (x *machine) finish(t *rapid.T) {
	r := x.someRun(t, running)
	n := attempt(t, r)
	to := rapid.SampledFrom([]ci.State{ci.Succeeded, ci.Failed, ci.Interrupted}).Draw(t, "to")
	if r.cancel != "" {
		to = r.cancel
	}
	err := x.s.FinishRun(context.Background(), r.id, n, store.Result{State: to})
	if n != r.attempt {
		if !errors.Is(err, store.ErrLate) {
			t.Fatalf("a late result: %v", err)
		}
		return
	}
	mustNil(t, err)
	if to == ci.Superseded {
		r.supersededBy = r.cancelBy
	}
	x.m.move(r, to)
}

func (x *machine) lost(t *rapid.T) {
	r := x.someRun(t, running)
	n, requeue := attempt(t, r), rapid.Bool().Draw(t, "requeue")
	_, err := x.s.Lost(context.Background(), r.id, n, requeue, "killed")
	mustNil(t, err)
	x.m.lost(r, n, requeue)
}

// supersede decides on all listed scopes: the last to arrive takes the place
// of all the others. The list itself is not modelled.
func (x *machine) supersede(t *rapid.T) {
	list, err := x.s.Scopes(10)
	mustNil(t, err)
	for _, sc := range list {
		var decided []store.Supersession
		newest := ""
		for _, mv := range sc.Moves {
			if mv.Run.ID != "" {
				newest = mv.Run.ID
			}
		}
		for _, mv := range sc.Moves {
			if mv.Run.ID != "" && mv.Run.ID != newest && !mv.Run.State.Final() {
				decided = append(decided, store.Supersession{Run: mv.Run.ID, By: newest, Reason: "newer"})
			}
		}
		mustNil(t, x.s.Supersede(context.Background(), sc, decided))
		for _, d := range decided {
			x.m.supersede(d.Run, d.By)
		}
	}
	mustScopes(t, x.s, 0)
}
