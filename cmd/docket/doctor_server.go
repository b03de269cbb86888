package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

// lookAtServer looks at what the store knows: through the running server, or
// at the store of a stopped one.
func (d *doctor) lookAtServer(ctx context.Context) []finding {
	b, err := d.local.get(ctx, "/state")
	var none *errNoServer
	switch {
	case errors.As(err, &none):
		return d.lookAtStopped()
	case err != nil:
		return []finding{wrong("look at its log, and run this as the user that docket runs as", "%s", sentence(err))}
	}
	var s server.State
	if err := decodeAnswer(b, &s); err != nil {
		return []finding{wrong("run the docket that serves", "%s", sentence(err))}
	}
	list := []finding{fine("it runs: %d runs are running, %d queued, %d held; %d notifications wait", s.Running, s.Queued, s.Held, s.Pending)}
	for _, r := range s.Reasons {
		list = append(list, wrong("", "it is not ready: %s", r))
	}
	for _, r := range s.Refusals {
		list = append(list, refusedLately(r))
	}
	return append(list, d.lookAtState(&s)...)
}

func refusedLately(r server.Refused) finding {
	name := r.Integration
	if name == "" {
		name = "an integration that is not configured"
	}
	says := fmt.Sprintf("%d deliveries of %s were refused in the last hour, the newest at %s: %s", r.Count, name, showTime(r.LastAt), r.Detail)
	if r.Count == 1 {
		says = fmt.Sprintf("1 delivery of %s was refused in the last hour, at %s: %s", name, showTime(r.LastAt), r.Detail)
	}
	if r.Reason == "signature" && r.Integration != "" {
		return wrong("give the provider's webhook a secret that is among webhook_secrets", "%s", says)
	}
	return warning("see `/api/v1/refusals` for each", "%s", says)
}

func (d *doctor) lookAtStopped() []finding {
	path := filepath.Join(d.cfg.DataDir, storeFile)
	list := []finding{warning("start it with `docket serve`", "no server runs on %s", d.cfg.DataDir)}
	st, err := store.Open(path, store.Options{ReadOnly: true})
	if ci.CodeOf(err) == ci.CodeNotFound {
		return append(list, warning("", "there is no store yet; the first start makes it"))
	}
	if err != nil {
		return append(list, wrong("", "%s", ci.MessageOf(err)))
	}
	defer st.Close()
	s, err := server.StateOf(st, d.cfg)
	if err != nil {
		return append(list, wrong("run `docket verify`", "the store cannot be read: %s", ci.MessageOf(err)))
	}
	list = append(list, fine("the store opens: %d runs are queued, %d held; %d notifications wait; `docket verify` checks every page and record", s.Queued, s.Held, s.Pending))
	return append(list, d.lookAtState(&s)...)
}

// How long something may wait before it is worth a word.
const (
	longQueued  = 30 * time.Minute
	longPending = 15 * time.Minute
)

// lookAtState judges what waits, what was given up and what is missing.
func (d *doctor) lookAtState(s *server.State) (list []finding) {
	now := d.a.now()
	for _, p := range []pausable{pausableRuns, pausableOutbox} {
		if pause := s.Paused.Of(p.work); pause != nil {
			list = append(list, warning("", "%s", p.held))
		}
	}
	old := func(at ci.Time, most time.Duration) bool { return !at.IsZero() && now.Sub(at.Time) > most }
	if old(s.OldestQueued, longQueued) {
		list = append(list, warning("see `docket runs list --state running` for what holds the slots, or raise limits.concurrent_runs", "a run has been queued since %s", showTime(s.OldestQueued)))
	}
	if old(s.OldestPending, longPending) {
		list = append(list, warning("`docket outbox list --state pending` says why", "a notification has not been sent since %s", showTime(s.OldestPending)))
	}
	if s.Dead > 0 {
		list = append(list, warning("see `docket outbox list --state dead`; mend the cause, then `docket outbox retry ID`, or discard them", "%d notifications were given up", s.Dead))
	}
	list = append(list, droppedSpans(s.Traces)...)
	for i := range d.cfg.Integrations {
		name := d.cfg.Integrations[i].Name
		if at := s.Deliveries[name]; at.IsZero() {
			list = append(list, warning("check the webhook at the provider, its address and its secret", "no delivery of %s is among the last ones", name))
		} else {
			list = append(list, fine("the last delivery of %s came at %s", name, showTime(at)))
		}
	}
	for _, r := range s.Recoveries {
		if r.Problem != "" {
			list = append(list, warning("", "what did not arrive of %s could not be looked for in full: %s", r.Integration, r.Problem))
		}
		for _, h := range r.Hooks {
			if h.Off {
				list = append(list, wrong("switch it on at the provider", "the webhook %d of %s is switched off, so nothing arrives", h.ID, h.Repository))
			}
		}
	}
	return list
}
