package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// mustBeRefused checks that a delivery was answered as the contract wants it
// where nothing can be promised.
func mustBeRefused(t *testing.T, a answer) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Fatalf("answered %v with the header %v, want 503 with Retry-After", a, a.header)
	}
}

// waitReadiness waits until /readyz has a status, and returns its body.
func (d *daemon) waitReadiness(status int) (body string) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("readiness is %d", status), func() bool {
		a := d.call("GET", "/readyz", "", nil)
		body = string(a.body)
		return a.status == status
	})
	return body
}

// Ensure that a failing commit promises nothing and is told, and that docket
// works again when the fault is gone.
func TestFailingCommitPromisesNothing(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil) })
	commit := repo.commit("refs/heads/main")
	w := delivery{event: ci.EventPush, id: "d-1", body: repo.push("refs/heads/main", "", commit)}
	d.start()
	d.setControl("fail", "1")
	mustBeRefused(t, d.deliver(w))
	mustBeRefused(t, d.call("POST", apiPrefix+"/projects/api/runs", "K", obj{"commit": commit}))
	if why := d.waitReadiness(http.StatusServiceUnavailable); !strings.Contains(why, "could not commit") {
		t.Errorf("readiness says %s", why)
	}
	if receipts, runs, entries := d.receipts(), d.runs(), d.entries(); len(receipts)+len(runs)+len(entries) != 0 {
		t.Errorf("stored: receipts %+v, runs %+v, entries %+v", receipts, runs, entries)
	}
	d.disarm()
	mustReply(d, d.deliver(w), http.StatusAccepted)
	d.waitRun("api-1", ci.Succeeded)
	hub.waitFor(t, commit, "api-1", "success", "succeeded")
	d.waitReadiness(http.StatusOK)
}

// Ensure that a run whose end cannot be committed at first ends all the same.
func TestCommitFailsWhileARunEnds(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil, waitStep("work")) })
	commit := repo.commit("refs/heads/main")
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitStarted("work", "api-1")
	d.setControl("fail", "1")
	d.open("api-1")
	d.waitLog("run's end not recorded")
	d.disarm()
	if run := d.waitRun("api-1", ci.Succeeded); run.Attempt != 1 {
		t.Errorf("attempt %d", run.Attempt)
	}
	hub.waitFor(t, commit, "api-1", "success", "succeeded")
}

// Ensure that a run goes on whose next step cannot be committed at first: it is
// not interrupted by a disk that is full for a moment.
func TestCommitFailsWhileAStepBegins(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.troubled = true
		d.addProject("api", repo, nil, waitStep("first"), waitStep("second"))
	})
	d.start()
	d.mustStart("api", "K", obj{"commit": repo.commit("refs/heads/main")})
	d.waitStarted("first", "api-1")
	d.setControl("fail", "1")
	d.open("first.api-1")
	d.waitLog("step's start not recorded")
	if _, err := os.Stat(filepath.Join(d.room, "second.api-1")); err == nil {
		t.Error("the second step began before that was on record")
	}
	d.disarm()
	d.waitStarted("second", "api-1")
	d.open("all")
	if run := d.waitRun("api-1", ci.Succeeded); run.Attempt != 1 {
		t.Errorf("attempt %d", run.Attempt)
	}
}

// Ensure that a full disk ends intake with a reason, and only for as long as
// it is full.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("mounting a tmpfs is not permitted; run the tests as root to see docket on a full disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.troubled = true
		d.data = filepath.Join(dir, "data")
		d.config["data_dir"] = d.data
		d.config["limits"].(obj)["free_space"] = 0
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.addProject("api", repo, nil, waitStep("work"))
	})
	d.start()
	push := func() []byte { // what does not compress
		noise := make([]byte, 100<<10)
		_, _ = rand.Read(noise)
		body := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
		return append(body[:len(body)-1], `,"noise":"`+hex.EncodeToString(noise)+`"}`...)
	}
	// What the run needs is there before the disk is full.
	d.mustDeliver(http.StatusAccepted, "d-0", push())
	d.waitStarted("work", "api-1")

	fillDisk(t, filepath.Join(dir, "full"))
	accepted := 1
	var refused delivery
	for i := 1; refused.id == ""; i++ {
		w := delivery{event: ci.EventPush, id: fmt.Sprintf("d-%d", i), body: push()}
		if a := d.deliver(w); a.status != http.StatusAccepted {
			mustBeRefused(t, a)
			refused = w
		} else if accepted++; accepted > 50 {
			t.Fatal("the full disk takes everything")
		}
	}
	if why := d.waitReadiness(http.StatusServiceUnavailable); !strings.Contains(why, "space on its disk") {
		t.Errorf("readiness says %s", why)
	}
	if receipts, runs := d.receipts(), d.runs(); len(receipts) != accepted || len(runs) != accepted {
		t.Errorf("%d receipts and %d runs, but %d were accepted", len(receipts), len(runs), accepted)
	}

	if err := os.Remove(filepath.Join(dir, "full")); err != nil {
		t.Fatal(err)
	}
	mustReply(d, d.deliver(refused), http.StatusAccepted) // the same process
	accepted++
	d.waitReadiness(http.StatusOK)
	if receipts, runs := d.receipts(), d.runs(); len(receipts) != accepted || len(runs) != accepted {
		t.Errorf("%d receipts and %d runs, but %d were accepted", len(receipts), len(runs), accepted)
	}
	d.open("api-1")
	d.waitRun("api-1", ci.Succeeded)
}

// fillDisk writes a file until no byte more fits.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); ; {
		if _, err = f.Write(chunk); errors.Is(err, syscall.ENOSPC) && len(chunk) > 1 {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// Ensure that what was answered with 2xx is on record and nothing else, when
// 200 pushes for 20 repositories come at once and every third commit fails.
func TestManyPushesAtOnceUnderFailingCommits(t *testing.T) {
	t.Parallel()
	hold := newRepository(t, "acme/hold", 1000)
	repos := make([]*repository, 20)
	d := newDaemon(t, nil, func(d *daemon) {
		d.troubled = true
		d.config["limits"].(obj)["concurrent_runs"] = 1
		d.addProject("hold", hold, nil, waitStep("work"))
		for i := range repos {
			repos[i] = &repository{t: t, dir: hold.dir, fullName: fmt.Sprintf("acme/r%d", i), id: int64(i + 1)}
			d.addProject(fmt.Sprintf("r%d", i), repos[i], nil)
		}
	})
	d.start()
	d.mustStart("hold", "K", obj{"commit": hold.commit("refs/heads/main")}) // keeps the only slot
	d.waitStarted("work", "hold-1")

	var list []delivery
	for i := range 200 {
		after := fmt.Sprintf("%040x", i+1)
		body := repos[i%20].push(fmt.Sprintf("refs/heads/b%d", i/20), "", after)
		list = append(list, delivery{event: ci.EventPush, id: fmt.Sprintf("d-%d", i), body: body})
	}
	d.setControl("fail", "3")
	taken, refused := map[string]bool{}, 0
	for rounds := 0; len(list) > 0; rounds++ {
		answers := make([]answer, len(list))
		var wg sync.WaitGroup
		for i, w := range list {
			if rounds == 0 && i < 3 { // else all might share one commit
				answers[i] = d.deliver(w)
				continue
			}
			wg.Go(func() { answers[i] = d.deliver(w) })
		}
		wg.Wait()
		var again []delivery
		for i, a := range answers {
			if a.status != http.StatusAccepted {
				mustBeRefused(t, a)
				again = append(again, list[i])
				continue
			}
			taken[mustReply(d, a, http.StatusAccepted).Receipt] = true
		}
		if receipts, runs := d.receipts(), d.runs(); len(receipts) != len(taken) || len(runs) != len(taken)+1 {
			t.Fatalf("%d accepted, but %d receipts and %d runs", len(taken), len(receipts), len(runs)-1)
		}
		if refused += len(again); rounds == 20 {
			d.disarm()
		}
		list = again
	}
	if len(taken) != 200 || refused == 0 {
		t.Errorf("%d taken, %d refused", len(taken), refused)
	}
}
