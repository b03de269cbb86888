package dispatcher

import (
	"time"

	"docket/store"
	"docket/store/ci"
)

// The clock of retrying.
const (
	// firstDelay is the longest wait after the first attempt; each further
	// one may be twice as long, up to maxDelay.
	firstDelay = 10 * time.Second
	maxDelay   = time.Hour

	// giveUpAfter ends retrying, counted from the first attempt.
	giveUpAfter = 3 * 24 * time.Hour

	// patience is how many attempts take the receiver's word for when to come
	// back even if that is sooner than the backoff: one that answers
	// "Retry-After: 1" for ever is not asked every second for three days.
	patience = 5
)

// nextDelay returns how long to wait after an attempt, counted from 1: half of
// firstDelay doubled attempt-1 times and at most maxDelay, plus the other half
// times jitter, which is in [0, 1). The first is 5 to 10 s.
//
// It is a pure function of the recorded attempt, so that a restart goes on
// where the last process was.
func nextDelay(attempt int, jitter float64) time.Duration {
	d := firstDelay
	for i := 1; i < attempt && d < maxDelay; i++ {
		d *= 2
	}
	d = min(d, maxDelay)
	return d/2 + time.Duration(jitter*float64(d/2))
}

// settle turns an adapter's judgement into what the store records, and tells
// until when everything for the same receiver waits (zero: it does not).
func settle(e ci.OutboxEntry, r Result, now time.Time, jitter float64) (rec store.AttemptResult, hold time.Time) {
	if r.Hold {
		hold = r.RetryAt
	}
	switch r.Outcome {
	case Sent:
		return store.AttemptResult{State: ci.OutboxSent}, hold
	case Skipped:
		return store.AttemptResult{State: ci.OutboxSkipped, Error: r.Detail}, hold
	case Dead:
		return store.AttemptResult{State: ci.OutboxDead, Error: r.Detail}, hold
	}
	first := e.FirstAttemptAt.Time
	if first.IsZero() {
		first = now
	}
	end := first.Add(giveUpAfter)
	if !now.Before(end) {
		return store.AttemptResult{State: ci.OutboxDead, Error: "gave up after 3 days: " + r.Detail}, hold
	}
	at, backoff := r.RetryAt, now.Add(nextDelay(e.Failures+1, jitter))
	switch {
	case at.IsZero() && backoff.After(end):
		at = end // the last try
	case at.IsZero(), e.Failures >= patience && at.Before(backoff):
		at = backoff
	}
	return store.AttemptResult{State: ci.OutboxPending, Error: r.Detail, NextAt: at}, hold
}
