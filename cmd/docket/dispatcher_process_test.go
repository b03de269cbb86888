package main

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that what a receiver acted on without docket having it on record is
// sent again under the same id, and then is on record once.
func TestDispatcherKilledBeforeTheRecord(t *testing.T) {
	t.Parallel()
	told, repo := newReceiver(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunFinished)})
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	d.arm(pointAfterSend, 1)
	if a := d.deliver(delivery{event: ci.EventPush, id: "d-1", body: repo.push("refs/heads/main", "", commit)}); a.status != http.StatusAccepted {
		t.Fatalf("answered %v", a)
	}
	d.waitKilled()
	d.launch() // and killed once more at the same point
	d.waitKilled()
	d.disarm()
	if n := len(told.messages()); n != 2 {
		t.Fatalf("the receiver acted %d times, want 2", n)
	}

	d.start()
	run := d.run("api-1")
	if run.State != ci.Succeeded {
		t.Errorf("the run is %+v", run)
	}
	entries := d.waitSettled()
	if len(entries) != 1 || entries[0].State != ci.OutboxSent || entries[0].Attempts != 3 || entries[0].LastError != "" {
		t.Fatalf("the outbox is %+v", entries)
	}
	for _, m := range told.messages() {
		if m != (message{entries[0].ID, ci.RunFinished, "api-1"}) {
			t.Errorf("the receiver was told %+v", m)
		}
	}
	d.kill()
	d.start()
	if n := len(told.messages()); n != 3 || d.entries()[0].Attempts != 3 {
		t.Errorf("sent again after it was on record: %d messages, %+v", n, d.entries())
	}
	if now := d.run("api-1"); !reflect.DeepEqual(now, run) {
		t.Errorf("the run was %+v and is %+v", run, now)
	}
}

// Ensure that a receiver's refusal changes nothing about the run.
func TestRefusedNotificationLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	hub, told, repo := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7)
	told.status = http.StatusGone
	hub.script = []fakeAnswer{{status: http.StatusNotFound, body: "Not Found"}}
	d := newDaemon(t, hub, func(d *daemon) {
		d.troubled = true
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunFinished)}, waitStep("work"))
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitStarted("work", "api-1")
	eventually(t, "GitHub refused once", func() bool { return hub.called() >= 2 })
	d.open("api-1")
	run := d.waitRun("api-1", ci.Succeeded)
	got := map[string]int{}
	for _, e := range d.waitSettled() {
		got[e.Kind+" "+string(e.State)]++
	}
	if want := map[string]int{"github.status sent": 2, "github.status dead": 1, "webhook dead": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("the outbox is %v, want %v", got, want)
	}
	if now := d.run("api-1"); !reflect.DeepEqual(now, run) {
		t.Errorf("the run was %+v and is %+v", run, now)
	}
}

// Ensure that a rate limit is waited out for the whole integration, also
// across a kill, and that the statuses then come in their order.
func TestRateLimitOutlivesAKill(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	hub.script = []fakeAnswer{
		{status: http.StatusForbidden, header: map[string]string{"Retry-After": "3"}, body: "You have exceeded a secondary rate limit"},
	}
	d := newDaemon(t, hub, func(d *daemon) { d.addProject("api", repo, nil) })
	d.start()
	limited := time.Now()
	commits := []string{repo.commit("refs/heads/a"), repo.commit("refs/heads/b")}
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/a", "", commits[0]))
	d.waitLog("rate limit")
	d.mustDeliver(http.StatusAccepted, "d-2", repo.push("refs/heads/b", "", commits[1]))
	d.waitRun("api-1", ci.Succeeded)
	d.waitRun("api-2", ci.Succeeded)
	d.kill()
	d.start()
	for i, commit := range commits {
		hub.waitFor(t, commit, fmt.Sprintf("api-%d", i+1), "success", "succeeded")
	}
	if waited := hub.first.Sub(limited); waited < 3*time.Second {
		t.Errorf("GitHub was told again after %s", waited)
	}
	if n := hub.called(); n > 7 {
		t.Errorf("GitHub was called %d times", n)
	}
	d.waitSettled()
}

// Ensure that a wakeup is a hint: with none of them everything happens all
// the same within a few scan intervals, and with hardly a scan it happens too.
func TestWakeupsAreHints(t *testing.T) {
	for name, c := range map[string]struct {
		scan      string
		noWakeups bool
	}{
		"scans alone":   {"100ms", true},
		"wakeups alone": {"1h", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
			d := newDaemon(t, hub, func(d *daemon) {
				d.config["scan_interval"] = c.scan
				d.addProject("api", repo, nil)
			})
			if c.noWakeups {
				d.setControl("no-wakeups", "")
			}
			commit := repo.commit("refs/heads/main")
			d.start()
			d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
			within(t, 10*time.Second, "the run's success is told", func() bool { return hub.last(commit).State == "success" })
			d.mustStart("api", "K", obj{"branch": "main"}) // has its commit looked up first
			within(t, 10*time.Second, "the second run's success is told", func() bool {
				return strings.HasPrefix(hub.last(commit).Description, "api-2 succeeded")
			})
		})
	}
}

// Ensure that a late result of an older run of a commit is not told over that
// of a newer one.
func TestDelayedResultOfAnOlderRun(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) { d.addProject("api", repo, nil, waitStep("work")) })
	commit := repo.commit("refs/heads/main")
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.open("api-1")
	d.waitRun("api-1", ci.Succeeded)
	older := d.mustAct(http.StatusCreated, "api-1", "rerun").ID
	d.waitStarted("work", older)
	hub.waitFor(t, commit, older, "pending", "is running")
	newer := d.mustAct(http.StatusCreated, "api-1", "rerun").ID
	d.waitStarted("work", newer)
	d.open(newer)
	d.waitRun(newer, ci.Succeeded)
	hub.waitFor(t, commit, newer, "success", "succeeded")
	d.open(older)
	d.waitRun(older, ci.Succeeded)

	var last ci.OutboxEntry
	for _, e := range d.waitSettled() {
		if e.Run == older && e.Final {
			last = e
		}
	}
	if last.State != ci.OutboxSkipped || !strings.Contains(last.LastError, newer) {
		t.Errorf("the older run's end is %+v, want it skipped because of %s", last, newer)
	}
	if why := d.mustDecide(older, ci.DecisionSkipped); why.OtherRun != newer || why.By.Kind != ci.ByDispatcher {
		t.Errorf("decided %+v", why)
	}
	if s := hub.last(commit); !strings.HasPrefix(s.Description, newer+" ") {
		t.Errorf("GitHub's last status is %+v, want that of %s", s, newer)
	}
	if p := get[struct {
		Latest map[string]struct{ Run string }
	}](d, "/projects/api"); fmt.Sprint(p.Latest["main"].Run) == older {
		t.Errorf("the branch shows the older run: %+v", p)
	}
}
