package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// State is what an operator wants to know first: what waits, for how long,
// and what has gone wrong lately.
type State struct {
	Queued  int `json:"queued"`
	Running int `json:"running"`
	Held    int `json:"held"`
	Pending int `json:"pending"` // notifications that are still to be sent
	Dead    int `json:"dead"`    // notifications that were given up

	OldestQueued  ci.Time `json:"oldest_queued_at"`
	OldestPending ci.Time `json:"oldest_pending_at"`

	Paused     ci.Pauses          `json:"paused"`
	Recoveries []ci.Recovery      `json:"recoveries"`
	Deliveries map[string]ci.Time `json:"deliveries"` // by integration: when the newest among the last ones came
	Reasons    []string           `json:"reasons"`    // why docket is not ready
	Refusals   []Refused          `json:"refusals"`   // of the last hour, by integration and reason
	Traces     *TraceState        `json:"traces,omitempty"`
}

// Refused counts refusals.
type Refused struct {
	Integration string  `json:"integration"` // "" for one that is not configured
	Reason      string  `json:"reason"`
	Detail      string  `json:"detail"` // of the newest
	Count       int     `json:"count"`
	LastAt      ci.Time `json:"last_at"`
}

// lookedAt bounds how many receipts are read to find each integration's newest.
const lookedAt = 1000

// StateOf reads the part of a State that the store knows.
func StateOf(st *store.Store, cfg *ci.Config) (s State, err error) {
	stats, err := st.Stats()
	if err != nil {
		return s, err
	}
	s = State{
		Queued: stats.Queued, Running: stats.Running, Held: stats.Held, Pending: stats.OutboxPending, Dead: stats.OutboxDead,
		Deliveries: map[string]ci.Time{}, Recoveries: []ci.Recovery{}, Reasons: []string{}, Refusals: []Refused{},
	}
	if !stats.OldestQueued.IsZero() {
		s.OldestQueued = ci.At(stats.OldestQueued)
	}
	if !stats.OldestPending.IsZero() {
		s.OldestPending = ci.At(stats.OldestPending)
	}
	if s.Paused, err = st.Pauses(); err != nil {
		return s, err
	}
	for i := range cfg.Integrations {
		r, err := st.Recovery(cfg.Integrations[i].Name)
		if err != nil {
			return s, err
		}
		s.Recoveries = append(s.Recoveries, r)
	}
	p := store.Page{Limit: 200}
	for seen := 0; seen < lookedAt && len(s.Deliveries) < len(cfg.Integrations); {
		list, next, err := st.Receipts("", p)
		if err != nil {
			return s, err
		}
		for _, r := range list {
			if _, ok := s.Deliveries[r.Integration]; !ok {
				s.Deliveries[r.Integration] = r.ReceivedAt
			}
		}
		if seen += len(list); next == "" {
			break
		}
		p.Cursor = next
	}
	return s, nil
}

// GET /state
func (s *Server) getState(c echo.Context) error {
	state, err := StateOf(s.store, s.config())
	if err != nil {
		return err
	}
	state.Reasons = append(state.Reasons, s.notReady()...)
	state.Refusals = append(state.Refusals, s.refusals.lately(s.now().Add(-refusalsOf))...)
	if s.traces != nil {
		traces := s.traces.State()
		state.Traces = &traces
	}
	return c.JSON(http.StatusOK, state)
}
