package scheduler

import (
	"maps"
	"sync"

	"docket/store/ci"
)

// RecoveryCounts are what comparisons did in this process's life.
type RecoveryCounts struct {
	Rounds, Failed uint64 // Failed: those that could not be made in full
	Asked          uint64 // redeliveries that were asked for
	Arrived        uint64 // deliveries that arrived after they were missed
	GaveUp         uint64
	Started        uint64 // runs that were started for heads
}

type recoveryStats struct {
	mu sync.Mutex
	m  map[string]RecoveryCounts
}

func (s *recoveryStats) count(integration string, r *ci.Recovery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]RecoveryCounts{}
	}
	n := s.m[integration]
	n.Rounds++
	if r.Problem != "" {
		n.Failed++
	}
	n.Asked += uint64(r.Last.Asked)
	n.Arrived += uint64(r.Last.Arrived)
	n.GaveUp += uint64(r.Last.GaveUp)
	n.Started += uint64(r.Last.Started)
	s.m[integration] = n
}

// RecoveryStats returns the counts by integration.
func (s *Scheduler) RecoveryStats() map[string]RecoveryCounts {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	return maps.Clone(s.stats.m)
}
