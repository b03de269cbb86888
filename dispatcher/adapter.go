package dispatcher

import (
	"context"
	"time"

	"docket/store/ci"
)

// Adapter speaks to one kind of receiver.
//
// Send makes one attempt and judges the answer. It never retries by itself,
// never follows a redirect, calls only what is configured at this moment, and
// puts no secret into the result's text.
type Adapter interface {
	Send(ctx context.Context, e ci.OutboxEntry) Result
}

// Outcome is an adapter's judgement of one attempt.
type Outcome string

const (
	Sent    Outcome = "sent"    // the receiver said yes
	Retry   Outcome = "retry"   // it may yet succeed, or nobody knows whether it did
	Dead    Outcome = "dead"    // another try would meet the same answer
	Skipped Outcome = "skipped" // something newer made it wrong to send
)

// Result is what came of one attempt.
type Result struct {
	Outcome Outcome
	Detail  string    // one sentence for people; "" when sent
	RetryAt time.Time // when the receiver asked to be tried again; zero: the backoff decides
	Hold    bool      // everything for the same receiver waits until RetryAt
	Status  int       // the answer's HTTP status; 0: there was none
}

// to returns what came of an attempt that was answered with a status.
func (r Result) to(status int) Result {
	r.Status = status
	return r
}
