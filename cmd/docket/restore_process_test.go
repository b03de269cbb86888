package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// moveAway takes the stopped server's data directory out of the way.
func (d *daemon) moveAway() {
	d.t.Helper()
	if err := os.Rename(d.data, d.data+".lost"); err != nil {
		d.t.Fatal(err)
	}
}

// Ensure that after a restore nothing is sent and nothing runs before an
// operator says so, that intake goes on meanwhile, and that all of it is done
// afterwards.
func TestRestoreWaitsForTheOperator(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.addProject("api", repo, obj{"on_interrupt": "requeue"}, waitStep("work"))
	})
	push := func(ref, id string) string {
		commit := repo.commit("refs/heads/" + ref)
		d.mustDeliver(http.StatusAccepted, id, repo.push("refs/heads/"+ref, "", commit))
		return commit
	}
	d.start()
	first := push("a", "d-1")
	d.waitStarted("work", "api-1")
	second := push("b", "d-2")
	hub.waitFor(t, second, "api-2", "pending", "")
	backup := filepath.Join(d.dir, "backup.db")
	if r := d.output("backup", "-c", d.configPath(), backup); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	third := push("c", "d-3")
	hub.waitFor(t, third, "api-3", "pending", "")
	if r := d.output("restore", "-c", d.configPath(), backup); r.code != exitFailed {
		t.Fatalf("restored under a running server: %+v", r)
	}
	d.kill()
	if r := d.output("restore", "-c", d.configPath(), backup); r.code != exitFailed {
		t.Fatalf("restored over a store: %+v", r)
	}
	d.moveAway()
	r := d.output("restore", "-c", d.configPath(), backup)
	if r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	mustContain(t, "the report", r.out, "verified", "docket outbox resume", "docket runs resume")

	d.open("all")
	before := len(hub.on(""))
	d.start()
	d.waitLog("runs are held back until `docket runs resume`")
	d.waitRun("api-1", ci.Queued) // lost its process, and its project wants it again
	if reply := d.mustDeliver(http.StatusAccepted, "d-3", repo.push("refs/heads/c", "", third)); len(reply.Runs) != 1 || reply.Runs[0].ID != "api-3" {
		t.Fatalf("%+v", reply)
	}
	scans := time.NewTimer(4 * 250 * time.Millisecond) // several scans of both workers
	<-scans.C
	for _, run := range d.runs() {
		if run.State != ci.Queued {
			t.Errorf("%s is %s", run.ID, run.State)
		}
	}
	if n := len(hub.on("")); n != before {
		t.Errorf("%d statuses were sent", n-before)
	}
	if r := d.output("runs", "resume", "-c", d.configPath()); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	for _, run := range []string{"api-1", "api-2", "api-3"} {
		d.waitRun(run, ci.Succeeded)
	}
	if n := len(hub.on("")); n != before {
		t.Errorf("%d statuses were sent", n-before)
	}
	if r := d.output("outbox", "resume", "-c", d.configPath()); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	for i, commit := range []string{first, second, third} {
		hub.waitFor(t, commit, ci.RunID("api", uint64(i+1)), "success", "succeeded")
	}
	var kinds []string
	for _, x := range all[ci.Decision](d, "decisions", "/decisions") {
		if x.Kind == ci.DecisionPaused || x.Kind == ci.DecisionResumed {
			kinds = append(kinds, x.Kind+" by "+x.By.Name)
		}
	}
	if want := []string{"resumed by admin socket", "resumed by admin socket", "paused by restore", "paused by restore"}; !slices.Equal(kinds, want) {
		t.Errorf("decisions %q", kinds)
	}
}

// Ensure that a restore and a compact which are killed at any point leave a
// whole store or none, and that the next one goes on.
func TestKilledRestoreAndCompact(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil) })
	d.start()
	for _, id := range []string{"d-1", "d-2", "d-3"} {
		d.mustDeliver(http.StatusAccepted, id, repo.push("refs/heads/"+id, "", repo.commit("refs/heads/"+id)))
	}
	for _, run := range []string{"api-1", "api-2", "api-3"} {
		d.waitRun(run, ci.Succeeded)
	}
	backup := filepath.Join(d.dir, "backup.db")
	if r := d.output("backup", "-c", d.configPath(), backup); r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	d.stop()
	d.moveAway()
	path := filepath.Join(d.data, storeFile)
	points := []string{store.FailCopied, store.FailVerified, store.FailSynced, store.FailRenamed}
	killed := func(point string, args ...string) {
		t.Helper()
		d.arm(point, 1)
		if r := d.output(append(args, "-c", d.configPath())...); r.code != -1 {
			t.Fatalf("%v was not killed %s: %+v", args, point, r)
		}
		d.disarm()
	}
	for _, point := range points {
		killed(point, "restore", backup)
		if _, err := os.Stat(path); (err == nil) != (point == store.FailRenamed) {
			t.Fatalf("killed %s, the store is there: %v", point, err)
		}
	}
	d.verify()
	for _, point := range points {
		inode := mustStat(t, path)
		killed(point, "compact")
		if replaced := !os.SameFile(inode, mustStat(t, path)); replaced != (point == store.FailRenamed) {
			t.Fatalf("killed %s, the store was replaced: %v", point, replaced)
		}
		d.verify()
	}
	r := d.output("compact", "-c", d.configPath())
	if r.code != exitDone {
		t.Fatalf("%+v", r)
	}
	d.start()
	if n := len(d.receipts()); n != 3 {
		t.Errorf("%d receipts", n)
	}
	if r := d.output("compact", "-c", d.configPath()); r.code != exitFailed {
		t.Errorf("compacted under a running server: %+v", r)
	}
	d.stop()
	left, err := filepath.Glob(filepath.Join(d.data, "*.compact"))
	hidden, err2 := filepath.Glob(filepath.Join(d.data, ".*"))
	if err != nil || err2 != nil || len(left)+len(hidden) != 0 {
		t.Errorf("left behind: %v %v, %v %v", left, hidden, err, err2)
	}
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
