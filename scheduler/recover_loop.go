package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"docket/store/ci"
)

const (
	// recoverLook is how often it is looked whether a comparison is due.
	recoverLook = time.Minute
	// defaultRecoverEvery is what waits are counted by where nothing is compared
	// by itself.
	defaultRecoverEvery = 5 * time.Minute
	// soon is when a round that had more to ask for than one round may goes on.
	soon = time.Minute
)

// recoverer is what the scheduler knows for comparing with providers.
type recoverer struct {
	up        time.Time     // when this life began
	since     time.Time     // since when the store has been kept
	comparing chan struct{} // holds whoever compares with a provider: one at a time
	hooks     map[hookKey]foundHook
	headsNext map[string]time.Time // integration -> when its heads may be asked for again
	stats     recoveryStats
}

func newRecoverer() recoverer {
	return recoverer{comparing: make(chan struct{}, 1), hooks: map[hookKey]foundHook{}, headsNext: map[string]time.Time{}}
}

// began notes when this life began, and the gap that it ends.
func (s *Scheduler) began(ctx context.Context) {
	gap, ok, since, err := s.Store.Began(ctx)
	if err != nil {
		s.Log.Error("start not recorded", keyError, err)
	}
	s.up, s.since = ci.At(s.Now()).Time, since // as exact as what is on record
	if ok {
		s.Log.Info("docket was away", keyFrom, gap.From.Time, keyTo, gap.To.Time, keyExact, gap.Exact)
	}
}

// recoverLoop compares every integration with its provider when docket
// starts and whenever it is due. It is a goroutine of its own: no scan ever
// waits for a provider.
func (s *Scheduler) recoverLoop(ctx context.Context) {
	due := map[string]time.Time{}
	for ctx.Err() == nil {
		if err := s.Store.Beat(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("sign of life not recorded", keyError, err)
		}
		wait := recoverLook
		cfg := s.Config()
		for i := range cfg.Integrations {
			in := &cfg.Integrations[i]
			if ok, _ := in.Recovers(); !ok || s.Provider == nil || s.RecoverEvery < 0 {
				continue
			}
			if at := due[in.Name]; !at.After(s.Now()) {
				due[in.Name] = s.compare(ctx, cfg, in, round{}).next
			}
			wait = min(wait, max(due[in.Name].Sub(s.Now()), time.Millisecond))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round is how a comparison is made.
type round struct {
	byHand bool
	since  time.Duration // by hand: how far back; 0: as far as by itself
	by     ci.By
}

// compared is what came of a round.
type compared struct {
	ci.Recovery
	next time.Time
}

// compare makes one round of an integration and puts it on record.
func (s *Scheduler) compare(ctx context.Context, cfg *ci.Config, in *ci.Integration, how round) (out compared) {
	every := in.RecoverEvery
	if s.RecoverEvery > 0 {
		every = s.RecoverEvery
	}
	if every <= 0 {
		every = defaultRecoverEvery
	}
	out.next = s.Now().Add(every)
	select {
	case s.comparing <- struct{}{}:
	case <-ctx.Done():
		out.Recovery = ci.Recovery{Integration: in.Name, Problem: "another comparison is being made, and took too long; try again"}
		return out
	}
	defer func() { <-s.comparing }()
	log := s.Log.With(keyIntegration, in.Name)
	before, err := s.Store.Recovery(in.Name)
	if err != nil {
		log.Error("recovery cannot be read", keyError, err)
		out.Recovery = ci.Recovery{Integration: in.Name, Problem: ci.MessageOf(err)}
		return out
	}
	if before.PausedUntil.After(s.Now()) {
		before.Last, before.Problem = ci.Round{}, (&RateLimited{Until: before.PausedUntil.Time}).Error()
		return compared{before, before.PausedUntil.Time}
	}
	c := &comparison{Scheduler: s, cfg: cfg, in: in, how: how, every: every, log: log, rec: before}
	c.rec.Problem, c.rec.PausedUntil, c.rec.Last = "", ci.Time{}, ci.Round{}
	c.run(ctx)
	if ctx.Err() != nil && c.rec.Problem != "" {
		return out // docket is being shut down: that is no fault of the provider's
	}
	c.rec.ComparedAt = ci.At(s.Now())
	if err := s.Store.RecordRecovery(ctx, c.rec, c.deliveries); err != nil {
		log.Error("recovery not recorded", keyError, err)
	}
	s.stats.count(in.Name, &c.rec)
	c.report(before.Problem)
	out.Recovery = c.rec
	switch {
	case !c.rec.PausedUntil.IsZero():
		out.next = c.rec.PausedUntil.Time
	case c.more:
		out.next = s.Now().Add(min(soon, every))
	}
	return out
}

// run compares deliveries, then heads: a head whose delivery is still being
// recovered is not yet missing.
func (c *comparison) run(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a comparison", keyPanic, p, keyStack, string(debug.Stack()))
			c.rec.Problem = "docket met a fault of its own; the server's log has the cause"
		}
	}()
	if err := c.compareDeliveries(ctx); err != nil {
		c.stop(err)
		return
	}
	if err := c.compareHeads(ctx); err != nil {
		c.stop(err)
	}
}

// stop notes why a comparison ended early.
func (c *comparison) stop(err error) {
	var limit *RateLimited
	if errors.As(err, &limit) {
		c.rec.PausedUntil = ci.At(limit.Until)
		c.rec.Problem = limit.Error()
		return
	}
	c.rec.Problem = ci.MessageOf(err)
	c.log.Debug("comparison ended early", keyError, err)
}

// report logs what a comparison did, and a problem when it begins or changes.
func (c *comparison) report(before string) {
	r := &c.rec.Last
	switch {
	case c.rec.Problem != "" && c.rec.Problem != before:
		c.log.Warn("comparison with the provider not made in full", keyReason, c.rec.Problem, keyPausedUntil, c.rec.PausedUntil.Time)
	case c.rec.Problem == "" && before != "":
		c.log.Info("comparison with the provider works again")
	}
	if r.Asked+r.Arrived+r.GaveUp+r.Started > 0 {
		c.log.Info("compared with the provider", keyMissed, r.Missed, keyAsked, r.Asked, keyArrived, r.Arrived, keyGaveUp, r.GaveUp, keyNoRun, r.NoRun, keyStarted, r.Started)
	}
}

// lasting reports whether an error concerns one webhook or repository alone
// and will be the same for a while: the others can still be compared.
func lasting(err error) bool {
	switch ci.CodeOf(err) {
	case ci.CodeForbidden, ci.CodeNotFound, ci.CodeInvalid, ci.CodeConflict:
		var limit *RateLimited
		return !errors.As(err, &limit)
	}
	return false
}

// Recover makes a round now, on a person's word: what was given up is asked
// for once more. integration "" means all of them; since 0 looks as far back
// as by itself. Errors: CodeNotFound.
func (s *Scheduler) Recover(ctx context.Context, integration string, since time.Duration, by ci.By) ([]ci.Recovery, error) {
	cfg := s.Config()
	list := []ci.Recovery{}
	for i := range cfg.Integrations {
		in := &cfg.Integrations[i]
		if integration != "" && integration != in.Name {
			continue
		}
		if ok, why := in.Recovers(); s.Provider == nil || !ok && (in.Provider == ci.ProviderGitea || !in.Reports()) {
			list = append(list, ci.Recovery{Integration: in.Name, Problem: fmt.Sprintf("%s is not compared: %s", in.Name, why)})
			continue
		}
		list = append(list, s.compare(ctx, cfg, in, round{byHand: true, since: since, by: by}).Recovery)
	}
	if len(list) == 0 && integration != "" {
		return nil, ci.Errorf(ci.CodeNotFound, "no integration %q is configured; name one of the configuration's, or leave it out for all", integration)
	}
	return list, nil
}
