package dispatcher

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"docket/store"
	"docket/store/ci"
)

// Run sends what is due until ctx ends. Then it starts nothing more, waits for
// the attempts under way, each at most its own time-out, and records them. It
// returns nil after that, and an error only for a fault of its own.
func (d *Dispatcher) Run(ctx context.Context) (err error) {
	var wake <-chan struct{}
	if !d.noWakeups {
		c, stop := d.store.Watch(store.TopicOutbox)
		defer stop()
		wake = c
	}
	defer d.client.CloseIdleConnections()
	if d.ownForge != nil {
		defer d.ownForge.Close()
	}

	l := &loop{
		d:        d,
		done:     make(chan finished, d.workers),
		inFlight: make(map[string]string),
		perKey:   make(map[string]int),
		slow:     make(map[string]bool),
		aside:    make(map[string]time.Time),
	}
	defer l.drain()
	defer func() {
		if p := recover(); p != nil {
			err = ci.Wrap(ci.CodeInternal, fmt.Errorf("%v\n%s", p, debug.Stack()), "the dispatcher met a fault of its own and stopped")
		}
	}()
	for ctx.Err() == nil {
		timer := time.NewTimer(l.start(ctx))
		select {
		case <-ctx.Done():
		case _, ok := <-wake:
			if !ok {
				wake = nil
			}
		case <-timer.C:
		case f := <-l.done:
			l.finish(f)
		}
		timer.Stop()
	}
	return nil
}

// loop is what the one goroutine of Run knows: who is sending, and what is
// better left alone for a moment. None of it needs to survive a restart.
type loop struct {
	d        *Dispatcher
	done     chan finished
	inFlight map[string]string    // lane -> receiver
	perKey   map[string]int       // receiver -> its lanes in flight
	slow     map[string]bool      // receivers whose last answer took long, or never came
	aside    map[string]time.Time // entries not to be looked at before a time
	pause    time.Time            // nothing starts before: the store takes no writes
	mended   time.Time            // when times were last looked at that cannot be true
	deep     time.Time            // no look behind a long queue before
}

// finished tells the loop that a worker is done with a lane.
type finished struct {
	entry  ci.OutboxEntry
	result verdict
}

// start sets a worker on every lane that may send now, and returns how long
// to wait before looking again if nothing happens before.
func (l *loop) start(ctx context.Context) time.Duration {
	d, now := l.d, l.d.now()
	if free := d.workers - len(l.inFlight); free <= 0 {
		return d.scan
	}
	if now.Before(l.pause) {
		return min(l.pause.Sub(now), d.scan)
	}
	for id, until := range l.aside {
		if !now.Before(until) {
			delete(l.aside, id)
		}
	}
	if now.Sub(l.mended) >= d.scan || now.Before(l.mended) {
		l.mended = now
		if n, err := d.store.MendDue(ctx, now); err != nil {
			d.log.Error("due times cannot be mended", keyErr, err)
		} else if n > 0 {
			d.log.Warn("notifications waited for a time that the clock gave while it was ahead, and are due now", keyEntries, n)
		}
	}
	// Lanes that may not start must not hide those behind them, so it looks
	// further while workers are free and there may be more to see; but in a
	// long queue for one receiver not at every single answer.
	for limit := d.workers; ; limit *= 4 {
		due, next, err := d.store.DueEntries(now, limit)
		if err != nil {
			d.log.Error("the outbox cannot be read", keyErr, err)
			return d.scan
		}
		for _, e := range due {
			if len(l.inFlight) == d.workers {
				return d.scan
			}
			if l.mayStart(e) {
				l.begin(ctx, e)
			}
		}
		switch {
		case len(due) < limit:
			return l.untilNext(now, next)
		case limit >= deepest:
			return d.scan
		case limit == d.workers:
			if now.Before(l.deep) {
				return min(l.deep.Sub(now), d.scan)
			}
			l.deep = now.Add(deepEvery)
		}
	}
}

// How far, in lanes, and how often the loop looks behind a long queue.
const (
	deepest   = 2048
	deepEvery = time.Second
)

func (l *loop) untilNext(now, next time.Time) time.Duration {
	if next.IsZero() {
		return l.d.scan
	}
	return max(min(next.Sub(now), l.d.scan), time.Millisecond)
}

// mayStart keeps one entry a lane, and half of the workers free for others: a
// receiver that hangs takes no more than that, and one worker once it is known.
func (l *loop) mayStart(e ci.OutboxEntry) bool {
	if _, busy := l.inFlight[e.Lane]; busy {
		return false
	}
	if _, aside := l.aside[e.ID]; aside {
		return false
	}
	share := max(l.d.workers/2, 1)
	if l.slow[e.Receiver()] {
		share = 1
	}
	return l.perKey[e.Receiver()] < share
}

func (l *loop) begin(ctx context.Context, e ci.OutboxEntry) {
	key := e.Receiver()
	l.inFlight[e.Lane] = key
	l.perKey[key]++
	go func() {
		f := finished{entry: e, result: verdictAborted}
		defer func() { l.done <- f }()
		defer func() {
			if p := recover(); p != nil {
				l.d.log.Error("sending met a fault of docket's own", append(l.d.about(e), keyErr, p, keyStack, string(debug.Stack()))...)
			}
		}()
		f.result = l.d.attempt(ctx, e)
	}()
}

func (l *loop) finish(f finished) {
	key := l.inFlight[f.entry.Lane]
	delete(l.inFlight, f.entry.Lane)
	if l.perKey[key]--; l.perKey[key] == 0 {
		delete(l.perKey, key)
	}
	now := l.d.now()
	switch f.result {
	case verdictQuick:
		delete(l.slow, key)
	case verdictSlow:
		l.slow[key] = true
	case verdictNotSent, verdictAborted:
		l.aside[f.entry.ID] = now.Add(l.d.scan)
	case verdictUnwritable:
		l.pause = now.Add(l.d.scan)
	}
}

// drain waits for every worker.
func (l *loop) drain() {
	for len(l.inFlight) > 0 {
		l.finish(<-l.done)
	}
}
