package main

import (
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that of two runs of one concurrency group, of two projects, the second
// begins only when the first has ended, that it says what it waits for, and
// that killing the server in between changes nothing about it.
func TestGroup(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 3
		d.addProject("api", repo, obj{"concurrency": "production", "on_interrupt": "requeue", "supersede": "none"}, waitStep("work"))
		other := *repo
		other.fullName, other.id = "acme/web", 8
		d.addProject("web", &other, obj{"concurrency": obj{"group": "production"}}, waitStep("work"))
	})
	const ref = "refs/heads/main"
	commit := repo.commit(ref)
	web := *repo
	web.fullName, web.id = "acme/web", 8
	d.start()
	first := d.mustDeliver(http.StatusAccepted, "d-1", repo.push(ref, "", commit)).Runs[0].ID
	d.waitStarted("work", first)
	second := d.mustDeliver(http.StatusAccepted, "d-2", web.push(ref, "", commit)).Runs[0].ID
	third := d.mustDeliver(http.StatusAccepted, "d-3", repo.push(ref, commit, repo.commit(ref, commit))).Runs[0].ID
	waits := func(run, want string) {
		t.Helper()
		r := d.waitRun(run, ci.Queued)
		if w := r.WaitingFor; w == nil || w.Group != "production" || w.Run != want {
			t.Errorf("%s waits for %+v, want %s", run, w, want)
		}
	}
	waits(second, first)
	waits(third, first)
	d.kill()
	d.start() // what ran is queued again, and comes first again
	d.waitStarted("work", first)
	waits(second, first)
	d.open("all")
	for _, run := range []string{first, second, third} {
		d.waitRun(run, ci.Succeeded)
	}
	if got, want := strings.Join(d.order(), " "), strings.Join([]string{first, first, second, third}, " "); got != want {
		t.Errorf("started %s, want %s", got, want)
	}
	if two := d.waitRun(second, ci.Succeeded); two.StartedAt.Before(d.waitRun(first, ci.Succeeded).FinishedAt.Time) {
		t.Errorf("%s began before the first one ended", second)
	}
}
