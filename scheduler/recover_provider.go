package scheduler

import (
	"context"
	"fmt"
	"time"

	"docket/scheduler/recovery"
	"docket/store/ci"
)

// Provider answers what a provider knows of its deliveries and heads: GitHub,
// and in tests one that a test scripts. Projects come with their repository's
// present name.
//
// An error is *RateLimited where the provider wants to be left alone, and else
// says its sentence as a ci.Error: CodeUnavailable where it may work next time.
type Provider interface {
	// Hook finds the webhook that brings a project's deliveries.
	Hook(ctx context.Context, p ci.Project, publicURL string) (h ci.Hook, active bool, err error)
	// Deliveries lists a webhook's attempts since a time, newest first, at most limit.
	Deliveries(ctx context.Context, integration string, h ci.Hook, since time.Time, limit int) ([]recovery.Delivery, error)
	// Redeliver asks for an attempt to be made again.
	Redeliver(ctx context.Context, integration string, h ci.Hook, id int64) error
	// Repository returns the repository that has the project's name now.
	Repository(ctx context.Context, p ci.Project) (ci.Repository, error)
	// Heads lists its branches, tags and open pull requests.
	Heads(ctx context.Context, p ci.Project) ([]ci.Head, error)
	// Message returns the message of a commit.
	Message(ctx context.Context, p ci.Project, commit string) (string, error)
}

// RateLimited says until when a provider wants to be left alone.
type RateLimited struct {
	Until time.Time
	Err   error
}

// Error is a sentence for people.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("the provider's rate limit is used up until %s", e.Until.UTC().Format("15:04:05 UTC"))
}

// Unwrap returns the provider's own words.
func (e *RateLimited) Unwrap() error { return e.Err }
