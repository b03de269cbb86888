package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"docket/store"
	"docket/store/ci"
)

// treeStep leaves a tree behind: the shell, a child, and one in a session of
// its own that ignores SIGTERM. Each writes its process id.
func treeStep() obj {
	return step("tree", `echo "$DOCKET_RUN" >>"$ROOM/order"
setsid sh -c 'trap "" TERM; echo $$ >"$ROOM/pid.session"; while :; do sleep 1; done' &
sh -c 'echo $$ >"$ROOM/pid.child"; while :; do sleep 1; done' &
echo $$ >"$ROOM/pid.shell"
wait`)
}

// tree waits until every process of treeStep runs, and returns their ids.
func (d *daemon) tree() (pids []int) {
	d.t.Helper()
	for _, name := range []string{"pid.session", "pid.child", "pid.shell"} {
		var pid int
		eventually(d.t, name+" is written", func() bool {
			b, _ := os.ReadFile(filepath.Join(d.room, name))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			return pid > 0
		})
		pids = append(pids, pid)
	}
	return pids
}

// alive returns which processes are there and no zombies.
func alive(pids []int) (list []int) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(b), ") ")
		if err == nil && !strings.HasPrefix(rest, "Z") {
			list = append(list, pid)
		}
	}
	return list
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// killWithSupervisor kills the server and the supervisor of a step's shell,
// so that nobody is left who would end the step's tree.
func (d *daemon) killWithSupervisor(shell int) {
	d.t.Helper()
	d.signal(syscall.SIGSTOP) // it must not see the supervisor go
	if err := syscall.Kill(parentOf(d.t, shell), syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	d.kill()
}

// Ensure that what ran when docket was killed is ended and settled at the next
// start, that nothing starts twice, and that those in the queue keep their
// order; also if docket is killed again and again while it recovers.
func TestKilledWhileAStepRuns(t *testing.T) {
	for name, recover := range map[string]func(d *daemon){
		"and started again": func(*daemon) {},
		"and killed again during recovery": func(d *daemon) {
			for _, n := range []int{1, 2} {
				for _, point := range []string{store.FailBeforeCommit, store.FailAfterCommit} {
					d.arm(point, n)
					d.launch()
					d.waitKilled()
					d.disarm()
				}
			}
		},
	} {
		for supervised, kill := range map[string]func(d *daemon, shell int){
			"alone":                func(d *daemon, _ int) { d.kill() },
			"with its supervisors": (*daemon).killWithSupervisor,
		} {
			t.Run(supervised+" "+name, func(t *testing.T) {
				t.Parallel()
				testKilledWhileAStepRuns(t, kill, recover)
			})
		}
	}
}

func testKilledWhileAStepRuns(t *testing.T, kill func(d *daemon, shell int), recover func(d *daemon)) {
	hub, told, repo := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunFinished)}, treeStep())
		other := *repo
		other.fullName, other.id = "acme/web", 8
		d.addProject("web", &other, nil, waitStep("work"))
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	pids := d.tree()
	for i := range 3 {
		d.mustStart("web", fmt.Sprintf("K%d", i), obj{"commit": commit})
	}
	d.open("all")
	kill(d, pids[2])
	recover(d)
	d.start()

	eventually(t, "the tree is gone", func() bool { return len(alive(pids)) == 0 })
	run := d.waitRun("api-1", ci.Interrupted)
	if run.Attempt != 1 || run.Reason == "" || run.FinishedAt.IsZero() {
		t.Errorf("the run is %+v", run)
	}
	if by := d.mustDecide("api-1", ci.DecisionInterrupted).By.Kind; by != ci.ByScheduler {
		t.Errorf("decided by %s", by)
	}
	hub.waitFor(t, commit, "api-1", "error", "was interrupted")
	for i := range 3 {
		if run := d.waitRun(fmt.Sprintf("web-%d", i+1), ci.Succeeded); run.Attempt != 1 {
			t.Errorf("%s was started %d times", run.ID, run.Attempt)
		}
	}
	if got, want := d.order(), []string{"api-1", "web-1", "web-2", "web-3"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
	d.waitSettled()
	ids := map[string]bool{}
	for _, m := range told.messages() {
		ids[m.id] = true
	}
	if len(ids) != 1 {
		t.Errorf("notifications %+v, want one", told.messages())
	}
}

// Ensure that the tree of a killed docket is really there to be ended, where
// no supervisor does it: else the test above shows nothing.
func TestTreeOutlivesDocketAndItsSupervisor(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil, treeStep()) })
	d.start()
	d.mustStart("api", "K", obj{"commit": repo.commit("refs/heads/main")})
	pids := d.tree()
	d.killWithSupervisor(pids[2])
	if left := alive(pids); len(left) != 3 {
		t.Errorf("of %v only %v are left", pids, left)
	}
	d.start()
	if left := alive(pids); len(left) != 0 {
		t.Errorf("%v are alive though docket is ready", left)
	}
	d.waitRun("api-1", ci.Interrupted)
}

// Ensure that a lost run starts again where its project wants that, but not
// once it has begun to deploy.
func TestRequeueAfterAKill(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		deploy := waitStep("deploy")
		deploy["deploy"] = true
		d.addProject("api", repo, obj{"on_interrupt": "requeue"}, waitStep("test"), deploy)
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitStarted("test", "api-1")
	d.kill()
	if err := os.Remove(filepath.Join(d.room, "test.api-1")); err != nil {
		t.Fatal(err)
	}

	d.start()
	d.waitStarted("test", "api-1") // once more
	if run := d.run("api-1"); run.State != ci.Running || run.Attempt != 2 {
		t.Errorf("the requeued run is %+v", run)
	}
	d.mustDecide("api-1", ci.DecisionRequeued)
	d.open("test.api-1")
	d.waitStarted("deploy", "api-1")
	d.kill()

	d.start()
	if run := d.waitRun("api-1", ci.Interrupted); run.Attempt != 2 {
		t.Errorf("the run that deployed is %+v", run)
	}
	d.mustDecide("api-1", ci.DecisionInterrupted)
	hub.waitFor(t, commit, "api-1", "error", "was interrupted")
}

// Ensure that SIGTERM gives running steps the configured time, ends them then
// as interrupted, and leaves the queue for the next start.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.config["shutdown_grace"] = "700ms"
		d.addProject("api", repo, nil, waitStep("work"))
	})
	commit := repo.commit("refs/heads/main")
	start := func(n int) {
		t.Helper()
		d.mustStart("api", fmt.Sprintf("K%d", n), obj{"commit": commit})
	}
	d.start()
	start(1)
	start(2)
	d.waitStarted("work", "api-1")
	d.signal(syscall.SIGTERM)
	d.waitLog("shutting down")
	d.open("api-1") // within the grace
	d.waitExit()

	d.start()
	if run := d.waitRun("api-1", ci.Succeeded); run.Attempt != 1 {
		t.Errorf("%+v", run)
	}
	d.waitStarted("work", "api-2")
	start(3)
	d.stop() // api-2 outlasts the grace

	d.start()
	if run := d.waitRun("api-2", ci.Interrupted); run.Attempt != 1 || !strings.Contains(run.Reason, "shut down") {
		t.Errorf("%+v", run)
	}
	d.mustDecide("api-2", ci.DecisionInterrupted)
	d.open("api-3")
	d.waitRun("api-3", ci.Succeeded)
	hub.waitFor(t, commit, "api-3", "success", "succeeded")
	if got, want := d.order(), []string{"api-1", "api-2", "api-3"}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
}

// Ensure that a second signal does not wait, and that what ran then is settled
// like after a kill.
func TestSecondSignalDoesNotWait(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.config["shutdown_grace"] = "1h"
		d.addProject("api", repo, nil, waitStep("work"))
	})
	d.start()
	d.mustStart("api", "K", obj{"commit": repo.commit("refs/heads/main")})
	d.waitStarted("work", "api-1")
	d.signal(syscall.SIGTERM)
	d.waitLog("shutting down")
	d.signal(syscall.SIGTERM)
	d.waitExit()
	d.start()
	d.waitRun("api-1", ci.Interrupted)
}
