package dispatcher_test

import (
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store"
	"docket/store/ci"
)

func TestNextDelayDoublesToAnHour(t *testing.T) {
	const almost = 0.999999
	for _, c := range []struct {
		attempt int
		lo, hi  time.Duration
	}{
		{0, 5 * time.Second, 10 * time.Second},
		{1, 5 * time.Second, 10 * time.Second},
		{2, 10 * time.Second, 20 * time.Second},
		{3, 20 * time.Second, 40 * time.Second},
		{9, 1280 * time.Second, 2560 * time.Second},
		{10, 30 * time.Minute, time.Hour},
		{11, 30 * time.Minute, time.Hour},
		{1 << 30, 30 * time.Minute, time.Hour},
	} {
		if got := dispatcher.NextDelay(c.attempt, 0); got != c.lo {
			t.Errorf("attempt %d without jitter: %s, want %s", c.attempt, got, c.lo)
		}
		if got := dispatcher.NextDelay(c.attempt, almost); got > c.hi || got < c.hi-10*time.Millisecond {
			t.Errorf("attempt %d with full jitter: %s, want almost %s", c.attempt, got, c.hi)
		}
	}
}

func TestSettle(t *testing.T) {
	retry := dispatcher.Result{Outcome: dispatcher.Retry, Detail: "why"}
	told := func(d time.Duration, hold bool) dispatcher.Result {
		return dispatcher.Result{Outcome: dispatcher.Retry, Detail: "why", RetryAt: noon.Add(d), Hold: hold}
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		result   dispatcher.Result
		attempts int
		age      time.Duration
		want     store.AttemptResult
		hold     time.Time
	}{
		"sent":                              {result: dispatcher.Result{Outcome: dispatcher.Sent}, attempts: 1, want: store.AttemptResult{State: ci.OutboxSent}},
		"dead":                              {result: dispatcher.Result{Outcome: dispatcher.Dead, Detail: "why"}, attempts: 1, want: store.AttemptResult{State: ci.OutboxDead, Error: "why"}},
		"skipped":                           {result: dispatcher.Result{Outcome: dispatcher.Skipped, Detail: "why"}, attempts: 1, want: store.AttemptResult{State: ci.OutboxSkipped, Error: "why"}},
		"first failure":                     {result: retry, attempts: 1, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(5 * time.Second)}},
		"third failure":                     {result: retry, attempts: 3, age: time.Minute, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(20 * time.Second)}},
		"told sooner than the backoff":      {result: told(time.Second, true), attempts: 5, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(time.Second)}, hold: noon.Add(time.Second)},
		"told sooner, and patience is over": {result: told(time.Second, true), attempts: 6, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(160 * time.Second)}, hold: noon.Add(time.Second)},
		"told later than the backoff":       {result: told(time.Hour, false), attempts: 6, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(time.Hour)}},
		"the last try is at three days":     {result: retry, attempts: 80, age: 3*day - time.Minute, want: store.AttemptResult{State: ci.OutboxPending, Error: "why", NextAt: noon.Add(time.Minute)}},
		"three days are over":               {result: retry, attempts: 80, age: 3 * day, want: store.AttemptResult{State: ci.OutboxDead, Error: "gave up after 3 days: why"}},
		"three days are over, but it holds": {result: told(time.Minute, true), attempts: 80, age: 3 * day, want: store.AttemptResult{State: ci.OutboxDead, Error: "gave up after 3 days: why"}, hold: noon.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			e := ci.OutboxEntry{Failures: c.attempts - 1, FirstAttemptAt: ci.At(noon.Add(-c.age))}
			rec, hold := dispatcher.Settle(e, c.result, noon, 0)
			if rec != c.want {
				t.Errorf("recorded %+v, want %+v", rec, c.want)
			}
			if !hold.Equal(c.hold) {
				t.Errorf("hold %s, want %s", hold, c.hold)
			}
		})
	}
}
