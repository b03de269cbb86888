package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/dispatcher/forge/forgetest"
	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// drive is a store, a scheduler and a dispatcher on the way to a GitHub that
// enforces what GitHub enforces, through whatever comes.
type drive struct {
	t     *testing.T
	rnd   *rand.Rand
	path  string
	clock *driveClock
	hub   *forgetest.GitHub
	cfg   *ci.Config

	store  *store.Store
	stage  *driveRunner
	boots  int
	stop   func()
	serial int

	heads map[string]string // of each branch
	late  []store.Acceptance
}

var driveProjects = []string{"api", "web"}

func driveCommit(n int) string { return fmt.Sprintf("%040x", n+1) }

// Ensure that after whatever pushes, reruns, cancels, failures, limits, lost
// answers and restarts, in whatever order, each commit's last status under each
// context is that of the newest run that speaks for it. DOCKET_DRIVE sets the
// number of steps, DOCKET_DRIVE_SEED the seed of another way.
func TestDrive(t *testing.T) {
	steps, seed := 250, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("DOCKET_DRIVE")); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv("DOCKET_DRIVE_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("DOCKET_DRIVE=%d DOCKET_DRIVE_SEED=%d", steps, seed)
	d := newDrive(t, seed)
	ways := []func(){
		d.push, d.push, d.push, d.push, d.request, d.rerun, d.cancel, d.approve,
		d.end, d.end, d.end, d.fault, d.restart, d.pass, d.lateOnes,
	}
	for range steps {
		ways[d.rnd.IntN(len(ways))]()
	}
	d.settle()
	d.check()
}

func newDrive(t *testing.T, seed uint64) *drive {
	t.Helper()
	d := &drive{
		t: t, rnd: rand.New(rand.NewPCG(seed, seed)), path: filepath.Join(t.TempDir(), "docket.db"),
		clock: &driveClock{at: time.Now()}, hub: forgetest.New(t), heads: map[string]string{},
	}
	d.hub.Clock(d.clock.now)
	d.hub.AddRepository("acme/api", 7)
	d.hub.AddToken("token")
	d.cfg = &ci.Config{
		DataDir: t.TempDir(), PublicURL: "https://ci.example.org", ScanInterval: 20 * time.Millisecond,
		Limits:       ci.Limits{ConcurrentRuns: 3},
		Integrations: []ci.Integration{{Name: "github", Provider: ci.ProviderGitHub, APIURL: d.hub.API(), Token: ci.NewSecret("token", "token"), Report: ci.ReportStatuses}},
	}
	for i, name := range driveProjects {
		policy := []ci.SupersedePolicy{ci.SupersedePending, ci.SupersedeRunning}[i]
		d.cfg.Projects = append(d.cfg.Projects, ci.Project{Name: name, Integration: "github", Repository: "acme/api", RepositoryID: 7, Supersede: policy})
	}
	d.start()
	t.Cleanup(func() { d.stop() })
	return d
}

func (d *drive) start() {
	d.boots++
	d.store = storetest.MustOpenAt(d.t, d.path, store.Options{Now: d.clock.now, RunURL: func(id string) string { return "https://ci.example.org/runs/" + id }})
	d.stage = &driveRunner{ends: map[string]chan ci.State{}}
	config := func() *ci.Config { return d.cfg }
	sched := scheduler.New(scheduler.Options{Store: d.store, Config: config, Runner: d.stage, Now: d.clock.now, Boot: fmt.Sprint("boot-", d.boots)})
	disp := dispatcher.New(dispatcher.Options{Store: d.store, Config: config, Now: d.clock.now, Scan: 10 * time.Millisecond, Timeout: 200 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- sched.Run(ctx) }()
	go func() { ended <- disp.Run(ctx) }()
	d.stop = func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				d.t.Error(err)
			}
		}
		d.stop = func() {}
	}
}

func (d *drive) restart() {
	if d.rnd.IntN(4) > 0 {
		return
	}
	d.stop()
	storetest.MustClose(d.t, d.store)
	d.start()
}

// push moves a branch to a commit, which may be an old one, and has the
// delivery arrive now, later or twice.
func (d *drive) push() {
	project := driveProjects[d.rnd.IntN(2)]
	branch := []string{"main", "dev"}[d.rnd.IntN(2)]
	to := driveCommit(d.rnd.IntN(40))
	at := project + "/" + branch
	before := d.heads[at]
	if before == to {
		return
	}
	d.heads[at] = to
	switch a := d.pushed(project, branch, before, to); d.rnd.IntN(8) {
	case 0:
		d.late = append(d.late, a)
	case 1: // never
	case 2:
		d.accept(a)
		d.accept(d.pushed(project, branch, before, to))
	default:
		d.accept(a)
	}
}

func (d *drive) lateOnes() {
	d.rnd.Shuffle(len(d.late), func(i, j int) { d.late[i], d.late[j] = d.late[j], d.late[i] })
	for _, a := range d.late {
		d.accept(a)
	}
	d.late = nil
}

func (d *drive) pushed(project, branch, before, after string) store.Acceptance {
	d.serial++
	id := fmt.Sprint("d-", d.serial)
	e := ci.Event{
		Kind: ci.EventPush, Ref: "refs/heads/" + branch, Branch: branch, Commit: after, Before: before,
		Repository: ci.Repository{ID: 7, FullName: "acme/api"},
	}
	draft := d.draft(project, branch, after)
	draft.Cause = ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/" + id, Event: ci.EventPush}
	draft.Source.Before, draft.Scope = before, project+" push 7 "+e.Ref
	a := store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: id, Event: ci.EventPush, Body: []byte(id)},
		Event:    e, Reason: "a filter", Projects: []string{project},
	}
	switch d.rnd.IntN(12) {
	case 0:
		draft.State, draft.Skip, draft.Reason = ci.Cancelled, true, "no changed file"
	case 1:
		draft.State, draft.Job = ci.Preparing, &ci.Job{Paths: &ci.Paths{Only: []string{"x"}}, OnSkip: ci.OnSkipReport}
	case 2:
		draft.Fork, draft.State = true, ci.Held
		draft.Context += "/pr"
		draft.Scope, draft.Source.Ref = project+" pull_request 9 #1", "refs/pull/1/head"
		draft.Source.PullRequest = &ci.PullRequest{Number: 1, Base: "main", Head: branch, Fork: true, HeadRepo: ci.Repository{ID: 9, FullName: "you/api"}}
	case 3:
		return a
	}
	a.Drafts = []ci.Draft{draft}
	return a
}

func (d *drive) draft(project, branch, commit string) ci.Draft {
	return ci.Draft{
		Project: project, Integration: "github", State: ci.Queued, Context: "docket/" + project, Supersede: d.cfg.Project(project).Supersede,
		Spec:   ci.Spec{Version: 1, CloneURL: "/nowhere", Report: true, Steps: []ci.Step{{Name: "test", Run: "true"}}},
		Source: ci.Source{Repository: "acme/api", RepositoryID: 7, Ref: "refs/heads/" + branch, Branch: branch, Commit: commit},
		Group:  []string{"", "one"}[d.rnd.IntN(2)], HoldFor: time.Hour,
	}
}

func (d *drive) accept(a store.Acceptance) {
	d.t.Helper()
	if _, err := d.store.Accept(context.Background(), a); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drive) request() {
	d.serial++
	project := driveProjects[d.rnd.IntN(2)]
	draft := d.draft(project, "main", driveCommit(d.rnd.IntN(40)))
	draft.Cause = ci.Cause{Kind: ci.CauseRequest, Event: ci.EventManual}
	key := fmt.Sprint("k-", d.serial)
	if _, _, err := d.store.Request(context.Background(), store.Request{Project: project, Key: key, Digest: key, Draft: draft}); err != nil {
		d.t.Fatal(err)
	}
}

// act does something to one of the newest runs; that it cannot be done is fine.
func (d *drive) act(f func(context.Context, store.Action) (ci.Run, bool, error)) {
	d.t.Helper()
	list, _, err := d.store.Runs(store.RunFilter{}, store.Page{Limit: 30})
	if err != nil {
		d.t.Fatal(err)
	}
	if len(list) == 0 {
		return
	}
	d.serial++
	a := store.Action{Run: list[d.rnd.IntN(len(list))].ID, Key: fmt.Sprint("a-", d.serial), By: ci.By{Kind: ci.ByToken, Name: "ops"}}
	if _, _, err := f(context.Background(), a); err != nil && ci.CodeOf(err) != ci.CodeConflict {
		d.t.Fatal(err)
	}
}

func (d *drive) rerun()   { d.act(d.store.Rerun) }
func (d *drive) cancel()  { d.act(d.store.CancelRun) }
func (d *drive) approve() { d.act(d.store.Approve) }

// end ends one of the runs that are being carried.
func (d *drive) end() { d.stage.end(d.rnd) }

// fault has GitHub answer the next status otherwise than with yes.
func (d *drive) fault() {
	answers := []forgetest.Answer{
		d.hub.PrimaryLimit(90 * time.Second), forgetest.TooMany(5 * time.Second), forgetest.SecondaryLimit(0),
		{Status: 500}, {Status: 502, Body: "<html>"}, {Lose: true}, {Lose: true, Status: 503}, {Hang: true},
	}
	d.hub.Script("POST /repos/acme/api/statuses/", answers[d.rnd.IntN(len(answers))])
}

// pass lets time go by: now and then so much that waits end.
func (d *drive) pass() {
	d.clock.add(time.Duration(d.rnd.IntN(100)) * time.Second)
	time.Sleep(time.Millisecond) // gives the workers a turn; nothing relies on it
}
