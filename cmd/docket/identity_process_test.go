package main

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"

	"docket/store"
	"docket/store/ci"
)

// deliverAtOnce sends the same delivery n times at the same moment, spread
// over the listeners.
func (d *daemon) deliverAtOnce(n int, w delivery) []answer {
	answers := make([]answer, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			one := w
			one.listener = i % len(d.addresses)
			<-start
			answers[i] = d.deliver(one)
		})
	}
	close(start)
	wg.Wait()
	return answers
}

// Ensure that a delivery is taken once, however often, at the same time and
// over whatever listener it comes, and after a kill too.
func TestSameDeliveryManyTimesIsOneRun(t *testing.T) {
	t.Parallel()
	hub, told, repo := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.config["listen"] = []obj{{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:0", "serve": []string{"hooks"}}}
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunQueued, ci.RunStarted, ci.RunFinished)}, waitStep("work"))
	})
	d.start()
	commit := repo.commit("refs/heads/main")
	w := delivery{event: ci.EventPush, id: "72d3162e-cc78-11e3-81ab-4c9367dc0958", body: repo.push("refs/heads/main", "", commit)}

	check := func(accepted int, answers []answer) {
		t.Helper()
		for _, a := range answers {
			status := http.StatusOK
			if a.status == http.StatusAccepted {
				accepted--
				status = http.StatusAccepted
			}
			got := mustReply(d, a, status)
			if got.Receipt != "github/-/"+w.id || got.Outcome != ci.Accepted || len(got.Runs) != 1 || got.Runs[0].ID != "api-1" || got.Duplicate != (status == http.StatusOK) {
				t.Errorf("answer %v", a)
			}
		}
		if accepted != 0 {
			t.Errorf("%d answers too few say that it was accepted", accepted)
		}
		if list := d.receipts(); len(list) != 1 || !slices.Equal(list[0].Runs, []string{"api-1"}) {
			t.Errorf("receipts %+v, want one", list)
		}
		if list := d.runs(); len(list) != 1 {
			t.Errorf("runs %+v, want one", list)
		}
	}
	check(1, d.deliverAtOnce(50, w))
	d.waitStarted("work", "api-1")
	d.kill()
	d.start()
	d.waitRun("api-1", ci.Interrupted)
	check(0, d.deliverAtOnce(50, w))

	var tells []string
	for _, e := range d.waitSettled() {
		tells = append(tells, e.Kind+" "+e.Event)
	}
	slices.Sort(tells)
	want := []string{
		"github.status error", "github.status pending", "github.status pending",
		"webhook run.finished", "webhook run.queued", "webhook run.started",
	}
	if !slices.Equal(tells, want) {
		t.Errorf("the outbox has %q, want %q", tells, want)
	}
}

// Ensure that an idempotency key stands for its run across kills, also one
// between the commit and the reply.
func TestIdempotencyKeyOutlivesAKill(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"inputs": []obj{{"name": "target", "default": "staging"}}}, waitStep("work"))
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	ask := func(key string, body any) answer { return d.call("POST", apiPrefix+"/projects/api/runs", key, body) }
	request := obj{"branch": "main", "commit": commit, "inputs": obj{"target": "staging"}}

	first := mustBe[ci.Run](d, ask("K", request), http.StatusCreated)
	d.waitStarted("work", "api-1")
	d.arm(store.FailAfterCommit, 1)
	if a := ask("L", request); a.err == nil {
		t.Fatalf("the killed server answered %v", a)
	}
	d.waitKilled()
	d.disarm()
	d.start()

	for key, id := range map[string]string{"K": "api-1", "L": "api-2"} {
		for _, same := range []any{request, obj{"commit": commit}} { // with defaults left out too
			a := ask(key, same)
			if again := mustBe[ci.Run](d, a, http.StatusOK); again.ID != id || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("key %s again: %v", key, a)
			}
		}
		a := ask(key, obj{"commit": commit, "inputs": obj{"target": "production"}})
		if other := mustBe[struct {
			Existing string `json:"existing_run"`
		}](d, a, http.StatusConflict); other.Existing != id {
			t.Errorf("key %s for another request: %v", key, a)
		}
	}
	if list := d.runs(); first.ID != "api-1" || len(list) != 2 {
		t.Errorf("runs %+v, want two", list)
	}
}

// Ensure that a delivery whose commit never came about has not happened, and
// is taken when it comes again.
func TestKilledBeforeTheCommit(t *testing.T) {
	t.Parallel()
	hub, told, repo := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunQueued, ci.RunFinished)})
	})
	commit := repo.commit("refs/heads/main")
	w := delivery{event: ci.EventPush, id: "d-1", body: repo.push("refs/heads/main", "", commit)}
	d.start()
	d.arm(store.FailBeforeCommit, 1)
	if a := d.deliver(w); a.err == nil {
		t.Fatalf("it was answered before it was on disk: %v", a)
	}
	d.waitKilled()
	d.disarm()

	d.start()
	if receipts, runs, entries := d.receipts(), d.runs(), d.entries(); len(receipts)+len(runs)+len(entries) != 0 {
		t.Errorf("left behind: receipts %+v, runs %+v, entries %+v", receipts, runs, entries)
	}
	if hub.called() != 0 || len(told.messages()) != 0 {
		t.Errorf("somebody was notified: %+v %+v", hub.on(""), told.messages())
	}
	if got := mustReply(d, d.deliver(w), http.StatusAccepted); got.Duplicate || len(got.Runs) != 1 {
		t.Errorf("redelivered: %+v", got)
	}
	d.waitRun("api-1", ci.Succeeded)
	hub.waitFor(t, commit, "api-1", "success", "succeeded")
	if got := mustReply(d, d.deliver(w), http.StatusOK); !got.Duplicate {
		t.Errorf("redelivered again: %+v", got)
	}
	if list := d.runs(); len(list) != 1 {
		t.Errorf("runs %+v, want one", list)
	}
}

// Ensure that a delivery that is on disk proceeds although nobody was told,
// and that the redelivery finds it.
func TestKilledAfterTheCommitBeforeTheReply(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) { d.addProject("api", repo, nil) })
	commit := repo.commit("refs/heads/main")
	w := delivery{event: ci.EventPush, id: "d-1", body: repo.push("refs/heads/main", "", commit)}
	d.start()
	d.arm(store.FailAfterCommit, 1)
	if a := d.deliver(w); a.err == nil {
		t.Fatalf("the killed server answered %v", a)
	}
	d.waitKilled()
	d.disarm()

	d.start()
	run := d.waitRun("api-1", ci.Succeeded) // before the redelivery
	hub.waitFor(t, commit, "api-1", "success", "succeeded")
	got := mustReply(d, d.deliver(w), http.StatusOK)
	if want := fmt.Sprint(true, "github/-/d-1", "api-1"); fmt.Sprint(got.Duplicate, got.Receipt, got.Runs[0].ID) != want {
		t.Errorf("redelivered: %+v, want %s", got, want)
	}
	if now := d.run("api-1"); !reflect.DeepEqual(now, run) || len(d.runs()) != 1 {
		t.Errorf("the redelivery changed %+v to %+v, runs %+v", run, now, d.runs())
	}
}
