package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that pending runs of a branch give way to the newest one and say so
// to GitHub on their own commit, that a run that deploys stays, and that a
// push that arrives late does not become the newest.
func TestSupersede(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 1
		deploy := waitStep("deploy")
		deploy["deploy"] = true
		d.addProject("api", repo, obj{"supersede": "running"}, deploy)
	})
	const ref = "refs/heads/main"
	commits := []string{repo.commit(ref)}
	for i := range 4 {
		commits = append(commits, repo.commit(ref, commits[i]))
	}
	pushed := map[int]string{} // index of the commit -> run
	push := func(i int) {
		t.Helper()
		before := ""
		if i > 0 {
			before = commits[i-1]
		}
		pushed[i] = d.mustDeliver(http.StatusAccepted, fmt.Sprintf("d-%d", i), repo.push(ref, before, commits[i])).Runs[0].ID
	}
	gaveWay := func(old, to int) {
		t.Helper()
		run := d.waitRun(pushed[old], ci.Superseded)
		if run.SupersededBy != pushed[to] || run.Attempt != 0 || !strings.Contains(run.Reason, pushed[to]) {
			t.Errorf("run of commit %d is %+v, want it superseded by %s", old, run, pushed[to])
		}
		if why := d.mustDecide(run.ID, ci.DecisionSuperseded); why.OtherRun != pushed[to] || why.By.Kind != ci.ByScheduler {
			t.Errorf("decided %+v", why)
		}
		hub.waitFor(t, commits[old], run.ID, "error", pushed[to])
	}
	d.start()
	push(0)
	d.waitStarted("deploy", pushed[0]) // holds the only slot
	push(1)
	hub.waitFor(t, commits[1], pushed[1], "pending", "is queued")
	push(2)
	gaveWay(1, 2)
	push(4) // what lies between is not known yet, so arrival counts
	gaveWay(2, 4)
	push(3) // late: 4 came after it
	gaveWay(3, 4)

	d.open("all")
	if run := d.waitRun(pushed[0], ci.Succeeded); run.SupersededBy != "" {
		t.Errorf("the run that deployed is %+v", run)
	}
	d.waitRun(pushed[4], ci.Succeeded)
	hub.waitFor(t, commits[0], pushed[0], "success", "succeeded")
	hub.waitFor(t, commits[4], pushed[4], "success", "succeeded")
	if got, want := strings.Join(d.order(), " "), pushed[0]+" "+pushed[4]; got != want {
		t.Errorf("started %s, want %s", got, want)
	}
	p := get[struct {
		Latest map[string]struct{ Run, Commit string }
	}](d, "/projects/api")
	if l := p.Latest["main"]; l.Run != pushed[4] || l.Commit != commits[4] {
		t.Errorf("the branch's latest is %+v, want %s", l, pushed[4])
	}
	for i := 1; i <= 3; i++ { // each commit only heard of its own run
		for _, s := range hub.on(commits[i]) {
			if !strings.HasPrefix(s.Description, pushed[i]+" ") {
				t.Errorf("commit %d was told %+v", i, s)
			}
		}
	}
}
