package store_test

import (
	"context"
	"os"
	"strings"
	"time"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
)

func (x *machine) begin(t *rapid.T) {
	i := x.someEntry(t, func(int) bool { return true })
	if due := x.m.due(); len(due) > 0 && rapid.IntRange(0, 4).Draw(t, "any") > 0 {
		i = rapid.SampledFrom(due).Draw(t, "due")
	}
	_, ok, err := x.s.BeginAttempt(context.Background(), x.entryID(t, i))
	if want := x.m.begin(i); err != nil || ok != want {
		t.Fatalf("begin: %v %v, want %v", ok, err, want)
	}
}

func (x *machine) end(t *rapid.T) {
	i := x.someEntry(t, func(i int) bool { return x.m.entries[i].attempts > 0 })
	e := x.m.entries[i]
	n := e.attempts - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "late")
	res := store.AttemptResult{State: rapid.SampledFrom([]ci.OutboxState{ci.OutboxSent, ci.OutboxPending, ci.OutboxDead}).Draw(t, "outcome")}
	if res.State == ci.OutboxPending {
		res.NextAt = x.clock.now().Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "after")) * time.Second)
	}
	mustNil(t, x.s.FinishAttempt(context.Background(), x.entryID(t, i), n, res))
	if e.state == ci.OutboxPending && n == e.attempts {
		e.state, e.due = res.State, res.NextAt
	}
}

func (x *machine) retry(t *rapid.T) {
	i := x.someEntry(t, func(i int) bool { return x.m.entries[i].state != ci.OutboxSent || i%5 == 0 })
	e := x.m.entries[i]
	_, _, err := x.s.RetryEntry(context.Background(), store.EntryAction{ID: x.entryID(t, i), By: operator})
	switch e.state {
	case ci.OutboxDead:
		e.state, e.retried = ci.OutboxPending, true
	case ci.OutboxPending:
	default:
		mustCode(t, err, ci.CodeConflict)
		return
	}
	mustNil(t, err)
	e.due = x.m.now
}

func (x *machine) discard(t *rapid.T) {
	i := x.someEntry(t, func(i int) bool { return i%3 == 0 })
	e := x.m.entries[i]
	_, _, err := x.s.DiscardEntry(context.Background(), store.EntryAction{ID: x.entryID(t, i), By: operator})
	if e.state != ci.OutboxPending && e.state != ci.OutboxDead {
		mustCode(t, err, ci.CodeConflict)
		return
	}
	mustNil(t, err)
	e.state = ci.OutboxSkipped
}

func (x *machine) hold(t *rapid.T) {
	key := rapid.SampledFrom([]string{"github", modelTarget}).Draw(t, "key")
	until := x.clock.now().Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "for")) * time.Second)
	mustNil(t, x.s.Hold(context.Background(), key, until, "rate limit"))
	if until.After(x.m.holds[key]) {
		x.m.holds[key] = until
	}
}

func (x *machine) wait(t *rapid.T) {
	x.m.now = x.clock.add(time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second)
}

// crash goes on with the file as it is at this moment.
func (x *machine) crash(t *rapid.T) {
	from := x.path()
	x.n++
	copyFile(t, from, x.path())
	x.s.Close()
	os.Remove(from)
	x.open(t)
}

// failpoint fails the commit of some write; nothing of it must be seen.
func (x *machine) failpoint(t *rapid.T) {
	x.failing.at(store.FailBeforeCommit)
	defer x.failing.off()
	ctx := context.Background()
	hits := x.failing.hit.Load()
	var err error
	switch rapid.IntRange(0, 5).Draw(t, "op") {
	case 0:
		a, _, _ := x.delivery(t)
		_, err = x.s.Accept(ctx, a)
	case 1:
		r, _ := x.manual(t)
		_, _, err = x.s.Request(ctx, r)
	case 2:
		_, _, err = x.s.ClaimAny(ctx, boot, 4)
	case 3:
		_, _, err = x.s.CancelRun(ctx, action(x.someRun(t, anyRun).id, ""))
	case 4:
		_, _, err = x.s.BeginAttempt(ctx, x.entryID(t, x.someEntry(t, func(int) bool { return true })))
	case 5:
		_, _, err = x.s.Settle(ctx, slotRun(x.m.slot, "2026-01-01 03:00"))
	}
	if x.failing.hit.Load() > hits && (ci.CodeOf(err) != ci.CodeUnavailable || !strings.Contains(err.Error(), "injected")) {
		t.Fatalf("the commit failed, and the answer is %v", err)
	}
}
