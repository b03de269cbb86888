package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"docket/scheduler/recovery"
	"docket/store"
	"docket/store/ci"
)

const (
	// redeliveries is how many deliveries one round asks for at most.
	redeliveries = 60
	// maxListed bounds how many attempts of one webhook a round reads.
	maxListed = 20_000
	// lookBack is how far back deliveries are compared at first: GitHub.com
	// keeps them for three days, see
	// https://docs.github.com/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks
	lookBack = 72 * time.Hour
	// overlap is how much of what was compared before is read again: clocks
	// differ, and an attempt is listed only when it has ended.
	overlap = 15 * time.Minute
	// hookKept is for how many rounds a webhook that was found is not looked for again.
	hookKept = 3
)

// comparison is one round of one integration.
type comparison struct {
	*Scheduler
	cfg   *ci.Config
	in    *ci.Integration
	how   round
	every time.Duration
	log   *slog.Logger

	rec        ci.Recovery
	deliveries bool // all deliveries could be compared
	more       bool // there was more to ask for than a round may
	holdHeads  bool // deliveries are still being recovered
	pins       map[string]ci.Repository
}

// hookKey is what a webhook is found by.
type hookKey struct{ integration, repository, publicURL string }

// foundHook is a webhook that was found, until it is looked for again.
type foundHook struct {
	hook ci.Hook
	at   time.Time
}

// compareDeliveries lists what the webhooks delivered, finds what has no
// receipt and asks for it again. Its error ends the whole round.
func (c *comparison) compareDeliveries(ctx context.Context) (err error) {
	if c.pins, err = c.Store.Pins(); err != nil {
		return err
	}
	missed, err := c.Store.Missed(c.in.Name, 0)
	if err != nil {
		return err
	}
	hooks, err := c.findHooks(ctx)
	if err != nil {
		return err
	}
	c.deliveries = len(hooks) > 0
	var due []ci.MissedDelivery
	left := missed
	for i := range hooks {
		h := &hooks[i]
		var own []ci.MissedDelivery
		own, left = ofHook(left, h.Hook)
		if h.ID == 0 && !h.App {
			c.deliveries = false // it was not found
			left = append(left, own...)
			continue
		}
		some, err := c.compareHook(ctx, h, own)
		if err != nil && !lasting(err) {
			c.keepHooks(hooks)
			return err
		}
		if err != nil {
			c.deliveries = false
			h.Problem = ci.MessageOf(err)
			c.forgetHook(h.Hook)
		}
		due = append(due, some...)
	}
	// What was missed of a webhook that is not there any more can still arrive.
	if len(left) > 0 {
		if _, err := c.settle(ctx, recovery.Listing{Missed: left}); err != nil {
			return err
		}
	}
	c.keepHooks(hooks)
	if err := c.ask(ctx, due); err != nil {
		c.deliveries = false
		if !lasting(err) {
			return err
		}
		// Nothing can be asked for; the heads show what is missing.
		c.rec.Problem, c.holdHeads = ci.MessageOf(err), false
	}
	if c.deliveries {
		c.rec.DeliveriesAt = ci.At(c.Now())
	}
	return nil
}

// keepHooks puts the webhooks' states on the record, with their problems as
// the integration's.
func (c *comparison) keepHooks(hooks []ci.HookState) {
	c.rec.Hooks = hooks
	var problems []string
	for _, h := range hooks {
		if h.Problem != "" && !slices.Contains(problems, h.Problem) {
			problems = append(problems, h.Problem)
		}
	}
	c.rec.Problem = strings.Join(problems, "; ")
}

func ofHook(list []ci.MissedDelivery, h ci.Hook) (own, others []ci.MissedDelivery) {
	for _, m := range list {
		if m.Hook == h {
			own = append(own, m)
		} else {
			others = append(others, m)
		}
	}
	return own, others
}

// findHooks finds the webhooks of the integration's projects, each once. One
// that cannot be found has no id and says why.
func (c *comparison) findHooks(ctx context.Context) (hooks []ci.HookState, err error) {
	hooks = []ci.HookState{}
	for i := range c.cfg.Projects {
		p := c.present(&c.cfg.Projects[i])
		if p.Integration != c.in.Name || slices.ContainsFunc(hooks, func(h ci.HookState) bool {
			return h.App || ci.SameRepository(h.Repository, p.Repository)
		}) {
			continue
		}
		h, err := c.findHook(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, old := range c.rec.Hooks {
			if old.App == h.App && ci.SameRepository(old.Repository, h.Repository) {
				h.ComparedTo = old.ComparedTo
			}
		}
		hooks = append(hooks, h)
	}
	return hooks, nil
}

func (c *comparison) findHook(ctx context.Context, p ci.Project) (ci.HookState, error) {
	none := ci.HookState{Hook: ci.Hook{Repository: p.Repository}}
	if c.cfg.PublicURL == "" {
		none.Problem = "public_url is not configured, so docket cannot tell which webhook is its own"
		return none, nil
	}
	key := hookKey{c.in.Name, p.Repository, c.cfg.PublicURL}
	if f, ok := c.hooks[key]; ok && !c.how.byHand && c.Now().Sub(f.at) < hookKept*c.every {
		return ci.HookState{Hook: f.hook}, nil
	}
	delete(c.hooks, key)
	h, active, err := c.Provider.Hook(ctx, p, c.cfg.PublicURL)
	switch {
	case lasting(err):
		none.Problem = ci.MessageOf(err)
		return none, nil
	case err != nil:
		return none, err
	case !active:
		return ci.HookState{Hook: h, Off: true, Problem: fmt.Sprintf("the webhook of %s is switched off at the provider, so nothing is delivered; switch it on there", p.Repository)}, nil
	}
	c.hooks[key] = foundHook{h, c.Now()}
	return ci.HookState{Hook: h}, nil
}

func (c *comparison) forgetHook(h ci.Hook) {
	for key, f := range c.hooks {
		if f.hook == h {
			delete(c.hooks, key)
		}
	}
}

// present returns a project with its repository's present name.
func (c *comparison) present(p *ci.Project) ci.Project {
	now := *p
	if pin := c.pins[p.Name]; pin.FullName != "" && (p.RepositoryID == 0 || p.RepositoryID == pin.ID) {
		now.Repository = pin.FullName
	}
	return now
}

// compareHook compares one webhook's deliveries and returns what is to be
// asked for.
func (c *comparison) compareHook(ctx context.Context, h *ci.HookState, missed []ci.MissedDelivery) (due []ci.MissedDelivery, err error) {
	now := c.Now()
	since := now.Add(-lookBack)
	if at := h.ComparedTo.Add(-overlap); !h.ComparedTo.IsZero() && at.After(since) {
		since = at
	}
	if c.how.since > 0 {
		since = now.Add(-c.how.since)
	}
	attempts, err := c.Provider.Deliveries(ctx, c.in.Name, h.Hook, since, maxListed)
	if err != nil {
		return nil, err
	}
	c.rec.Last.Deliveries += len(attempts)
	if len(attempts) >= maxListed {
		h.Problem = fmt.Sprintf("more than %d deliveries were made, and the older ones were not compared", maxListed)
	}
	due, err = c.settle(ctx, recovery.Listing{Hook: h.Hook, Attempts: attempts, Missed: missed})
	if err == nil {
		h.ComparedTo = ci.At(now)
	}
	return due, err
}

// settle compares attempts with the receipts and puts on record what that
// shows.
func (c *comparison) settle(ctx context.Context, l recovery.Listing) (due []ci.MissedDelivery, err error) {
	l.Integration, l.Now, l.Every, l.Up, l.Ours = c.in.Name, c.Now(), c.every, c.up, c.ours()
	l.Again = c.how.byHand
	l.Floor = c.since
	if keep := c.cfg.Retention.Runs; keep > 0 {
		if gone := l.Now.Add(time.Hour - keep); gone.After(l.Floor) {
			l.Floor = gone
		}
	}
	// Only now, so that what arrived while the attempts were listed is known.
	if l.Known, err = c.Store.KnownReceipts(recovery.Identities(l.Integration, l.Attempts, l.Missed)); err != nil {
		return nil, err
	}
	out := recovery.Deliveries(l)
	err = c.Store.RecordComparison(ctx, store.Comparison{Changed: out.Changed, Arrived: out.Arrived, Expired: out.Expired, GaveUp: out.GaveUp})
	if err != nil {
		return nil, err
	}
	for i := range out.GaveUp {
		c.log.Warn("delivery is not asked for any more", keyReceipt, out.GaveUp[i].Receipt, keyEvent, out.GaveUp[i].Event, keyReason, out.GaveUp[i].GaveUp)
	}
	r := &c.rec.Last
	r.Arrived += len(out.Arrived)
	r.GaveUp += len(out.GaveUp)
	r.Foreign += out.Foreign
	r.Missed += out.Missed
	c.holdHeads = c.holdHeads || out.Recent
	return out.Due, nil
}

// ours returns what tells whether a delivery is one that docket would take.
// Where a project is not bound to a repository yet, every repository may be its.
func (c *comparison) ours() func(repository, installation int64) bool {
	ids := map[int64]bool{}
	open := false
	for i := range c.cfg.Projects {
		p := &c.cfg.Projects[i]
		if p.Integration != c.in.Name {
			continue
		}
		id := p.RepositoryID
		if id == 0 {
			id = c.pins[p.Name].ID
		}
		ids[id] = true
		open = open || id == 0
	}
	allowed := c.in.Installations
	return func(repository, installation int64) bool {
		if installation != 0 && !slices.Contains(allowed, installation) {
			return false
		}
		return repository == 0 || open || ids[repository]
	}
}

// ask asks the provider for what is due, the oldest first, as much as one
// round may. Each one is counted on record before it is asked for.
func (c *comparison) ask(ctx context.Context, due []ci.MissedDelivery) error {
	slices.SortStableFunc(due, func(a, b ci.MissedDelivery) int { return a.FirstAt.Compare(b.FirstAt.Time) })
	c.holdHeads = c.holdHeads || len(due) > 0
	if len(due) > redeliveries {
		due, c.more = due[:redeliveries], true
	}
	for _, m := range due {
		if err := c.askFor(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) askFor(ctx context.Context, m ci.MissedDelivery) error {
	log := c.log.With(keyReceipt, m.Receipt, keyEvent, m.Event)
	asked := m
	asked.Asked++
	asked.AskedAt = ci.At(c.Now())
	asked.NextAt = ci.At(c.Now().Add(recovery.Wait(asked.Asked, c.every)))
	if err := c.Store.PutMissed(ctx, asked); err != nil {
		return err
	}
	err := c.Provider.Redeliver(ctx, m.Integration, m.Hook, m.ProviderID)
	var limit *RateLimited
	switch {
	case err == nil:
	case errors.As(err, &limit), !lasting(err), ci.CodeOf(err) == ci.CodeForbidden:
		// It was not asked for, and the next one would not be either.
		if err := c.Store.PutMissed(context.WithoutCancel(ctx), m); err != nil {
			log.Error("missed delivery not recorded", keyError, err)
		}
		return err
	default:
		log.Warn("delivery cannot be asked for", keyError, err)
		asked.Status, asked.StatusCode = ci.MessageOf(err), 0
		return c.Store.PutMissed(ctx, asked)
	}
	c.rec.Last.Asked++
	log.Info("delivery asked for again", keyAnswer, recovery.Answer(&m), keyDeliveredAt, m.FirstAt.Time, keyAsked, asked.Asked)
	return c.Store.AskedFor(ctx, m, c.how.by, fmt.Sprintf("the answer to it at %s was %s; its redelivery was asked for (%d of %d)",
		m.LastAt.UTC().Format(ci.TimeLayout), recovery.Answer(&m), asked.Asked, recovery.MaxAsks))
}
