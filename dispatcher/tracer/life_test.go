package tracer_test

import (
	"strings"
	"testing"
	"time"

	"docket/dispatcher/tracer"
	"docket/dispatcher/tracer/collectortest"
	"docket/store"
	"docket/store/ci"
)

func one(n int) *int { return &n }

// Ensure that each attempt to notify is a span with what came of it, also one
// whose end nobody knows, and that neither the receiver's address beyond its
// host nor its words are told.
func TestAttemptsOfANotification(t *testing.T) {
	h := newHouse(t, nil)
	h.deliver()
	r := h.claim()
	h.must(h.store.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Succeeded}))
	due, _, err := h.store.DueEntries(time.Now(), 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("%v, %v", due, err)
	}
	id := due[0].ID
	begin := func() ci.OutboxEntry {
		t.Helper()
		e, ok, err := h.store.BeginAttempt(t.Context(), id)
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		return e
	}
	begin() // and docket is killed
	begin()
	h.must(h.store.FinishAttempt(t.Context(), id, 2, store.AttemptResult{State: ci.OutboxPending, Error: "answered 503: echo of a payload", Status: 503, NextAt: time.Now()}))
	begin()
	h.must(h.store.FinishAttempt(t.Context(), id, 3, store.AttemptResult{State: ci.OutboxPending, Error: "it could not be reached", NextAt: time.Now()}))
	begin()
	h.must(h.store.FinishAttempt(t.Context(), id, 4, store.AttemptResult{State: ci.OutboxSent, Status: 204}))
	spans := h.coll.Wait(t, "the notification", func(s []collectortest.Span) bool { return len(collectortest.Named(s, "notify webhook")) == 1 })

	whole, run := collectortest.Named(spans, "notify webhook")[0], collectortest.Named(spans, "RUN api")[0]
	if whole.Parent != run.ID || whole.Failed || whole.Attrs["docket.notification.attempts"] != "4" || whole.Attrs["docket.notification.state"] != "sent" {
		t.Errorf("%+v", whole)
	}
	tries := collectortest.Named(spans, "send webhook")
	want := []struct{ fault, status, says string }{
		{"unknown", "", "docket ended before"}, {"503", "503", "the receiver answered 503"}, {"unanswered", "", "it could not be reached"}, {"", "204", ""},
	}
	if len(tries) != len(want) {
		t.Fatalf("%d attempts", len(tries))
	}
	for i, s := range tries {
		w := want[i]
		if s.Parent != whole.ID || s.Kind != "CLIENT" || s.Failed != (w.fault != "") || s.Attrs["error.type"] != w.fault ||
			s.Attrs["http.response.status_code"] != w.status || !strings.HasPrefix(s.Says, w.says) || s.Attrs["server.address"] != "user.example" {
			t.Errorf("attempt %d: %+v", i+1, s)
		}
	}
	for _, s := range spans {
		for key, v := range s.Attrs {
			if strings.Contains(v, "secret-path") || strings.Contains(v+s.Says, "echo of") {
				t.Errorf("%s: %s is %q", s.Name, key, v)
			}
		}
	}
}

// Ensure that a notification that is given up, brought back and given up again
// is told twice, under ids of their own.
func TestNotificationBroughtBack(t *testing.T) {
	h := newHouse(t, nil)
	h.deliver()
	r := h.claim()
	h.must(h.store.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Succeeded}))
	for n := 1; n <= 2; n++ {
		due, _, err := h.store.DueEntries(time.Now().Add(time.Hour), 10)
		h.must(err)
		e, _, err := h.store.BeginAttempt(t.Context(), due[0].ID)
		h.must(err)
		h.must(h.store.FinishAttempt(t.Context(), e.ID, e.Attempts, store.AttemptResult{State: ci.OutboxDead, Status: 410, Error: "gone"}))
		if n == 1 {
			h.ahead.Store(int64(time.Minute))
			_, _, err = h.store.RetryEntry(t.Context(), store.EntryAction{ID: e.ID, By: ci.By{Kind: ci.ByToken, Name: "ops"}})
			h.must(err)
		}
	}
	spans := h.coll.Wait(t, "both ends", func(s []collectortest.Span) bool { return len(collectortest.Named(s, "notify webhook")) == 2 })
	whole, tries := collectortest.Named(spans, "notify webhook"), collectortest.Named(spans, "send webhook")
	for i := range 2 {
		if whole[i].ID == whole[1-i].ID || tries[i].Parent != whole[i].ID || !whole[i].Failed || whole[i].Attrs["error.type"] != "dead" {
			t.Errorf("%+v\n%+v", whole[i], tries[i])
		}
	}
}

// Ensure that runs and steps end in the words of the conventions.
func TestResultsOfRuns(t *testing.T) {
	now := ci.At(time.Now())
	step := func(s ci.StepState, exit *int) ci.StepResult {
		return ci.StepResult{Name: "test", State: s, ExitCode: exit, StartedAt: now, FinishedAt: now}
	}
	for what, c := range map[string]struct {
		res                store.Result
		run, fault, says   string
		step, stepFault    string
		checkoutFails, ran bool
	}{
		"success":   {res: store.Result{State: ci.Succeeded, Steps: []ci.StepResult{step(ci.StepSucceeded, one(0))}}, run: "success", step: "success", ran: true},
		"failure":   {res: store.Result{State: ci.Failed, Steps: []ci.StepResult{step(ci.StepFailed, one(3))}}, run: "failure", fault: "step_failed", says: `the step "test" ended with exit code 3`, step: "failure", stepFault: "step_failed", ran: true},
		"time-out":  {res: store.Result{State: ci.Failed, Reason: ci.ReasonTimedOut, Steps: []ci.StepResult{step(ci.StepFailed, nil)}}, run: "timeout", fault: "timeout", says: "timed out", step: "timeout", stepFault: "timeout", ran: true},
		"cancelled": {res: store.Result{State: ci.Cancelled, Reason: "by ops", Steps: []ci.StepResult{step(ci.StepCancelled, nil)}}, run: "cancellation", step: "cancellation", ran: true},
		"lost":      {res: store.Result{State: ci.Interrupted, Reason: "the machine went", Steps: []ci.StepResult{step(ci.StepCancelled, nil)}}, run: "error", fault: "interrupted", says: "the machine went", step: "error", stepFault: "interrupted", ran: true},
		"no code":   {res: store.Result{State: ci.Failed, Reason: "no such commit"}, run: "error", fault: "checkout_failed", says: "no such commit", checkoutFails: true},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, nil)
			h.deliver()
			r := h.claim()
			h.must(h.store.FinishRun(t.Context(), r.ID, 1, c.res))
			spans := h.coll.Wait(t, "the run", func(s []collectortest.Span) bool { return len(collectortest.Named(s, "RUN api")) == 1 })
			run, checkout := collectortest.Named(spans, "RUN api")[0], collectortest.Named(spans, "checkout")[0]
			if run.Attrs["cicd.pipeline.result"] != c.run || run.Attrs["error.type"] != c.fault || run.Failed != (c.fault != "") || run.Says != c.says {
				t.Errorf("the run: %+v", run)
			}
			if checkout.Failed != c.checkoutFails {
				t.Errorf("the checkout: %+v", checkout)
			}
			steps := collectortest.Named(spans, "step test")
			if len(steps) == 1 != c.ran {
				t.Fatalf("%d steps", len(steps))
			}
			for _, s := range steps {
				if s.Attrs["cicd.pipeline.task.run.result"] != c.step || s.Attrs["error.type"] != c.stepFault || s.Attrs["cicd.pipeline.task.run.id"] != "api-1/1/0" {
					t.Errorf("the step: %+v", s)
				}
			}
		})
	}
}

// Ensure that the time of each state before a run begins is told, one after
// the other.
func TestWaiting(t *testing.T) {
	h := newHouse(t, nil)
	spec := ci.Spec{Version: 1, Steps: []ci.Step{{Name: "test", Run: "true"}}}
	_, _, err := h.store.Request(t.Context(), store.Request{
		Project: "api", Key: "K", Digest: "x", By: ci.By{Kind: ci.ByToken, Name: "ops"}, Draft: ci.Draft{
			Project: "api", State: ci.Preparing, Spec: spec, Fork: true, Job: &ci.Job{Resolve: true},
			Cause: ci.Cause{Kind: ci.CauseRequest}, Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main"},
		},
	})
	h.must(err)
	_, err = h.store.ResolveJob(t.Context(), "api-1", store.Resolution{Commit: commitA})
	h.must(err)
	_, _, err = h.store.Approve(t.Context(), store.Action{Run: "api-1", Key: "A", By: ci.By{Kind: ci.ByUser, Name: "ann"}})
	h.must(err)
	h.claim()
	spans := h.coll.Wait(t, "the queue", func(s []collectortest.Span) bool { return len(collectortest.Named(s, "queue")) == 1 })
	var at time.Time
	for _, name := range []string{"prepare", "wait for approval", "queue"} {
		list := collectortest.Named(spans, name)
		if len(list) != 1 || !at.IsZero() && !list[0].Start.Equal(at) {
			t.Fatalf("%s: %+v, after %s", name, list, at)
		}
		at = list[0].End
	}
}

// Ensure that ids are the same in every life of one store, and others in
// another store.
func TestIdsAreOfTheStore(t *testing.T) {
	h, other := newHouse(t, nil), newHouse(t, nil)
	r := h.deliver()
	again := tracer.New(tracer.Options{Store: h.store, Config: h.config})
	if h.tracer.RunTrace(&r) != again.RunTrace(&r) || h.tracer.RunTrace(&r) != h.tracer.ReceiptTrace("github/-/d-1") {
		t.Error("another life makes another trace")
	}
	if h.tracer.RunTrace(&r) == other.tracer.RunTrace(&r) {
		t.Error("two stores make one trace")
	}
	byHand := r
	byHand.Cause = ci.Cause{Kind: ci.CauseRequest}
	if h.tracer.RunTrace(&r) == h.tracer.RunTrace(&byHand) {
		t.Error("a request is in the trace of a delivery")
	}
}
