package scheduler

import (
	"context"

	"docket/store/ci"
)

// CompareNow makes the round that would be made by itself when it is due.
func (s *Scheduler) CompareNow(ctx context.Context, integration string) ci.Recovery {
	cfg := s.Config()
	return s.compare(ctx, cfg, cfg.Integration(integration), round{}).Recovery
}

// Redeliveries is redeliveries.
const Redeliveries = redeliveries

// Decide decides once on all superseding.
func (s *Scheduler) Decide(ctx context.Context) error { return s.supersede(ctx) }

// RetentionTime is retentionTime.
var RetentionTime = retentionTime
