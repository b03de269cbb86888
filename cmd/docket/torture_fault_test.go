//go:build torture

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"docket/scheduler"
	"docket/store"
)

// tortureFault is one kind of fault. Each takes one life of the server.
type tortureFault struct {
	name string
	need int // times that it must happen
	// live gives the server one life with the fault. happened says whether it
	// came to it; ok is false when the test is over.
	live func(ctx context.Context, rng *rand.Rand) (happened, ok bool)
	// early: it takes the longer the larger the store is.
	early bool

	tried, happened int
}

// torturePoint is a place in the server at which it kills itself.
type torturePoint struct {
	name string
	most int // it is struck at one of the first so many passings
	env  []string
}

// torturePoints are all named points that a running server passes.
func (w *tortureWorld) torturePoints() []torturePoint {
	return []torturePoint{
		{name: store.FailBeforeCommit, most: 60},
		{name: store.FailAfterCommit, most: 60},
		{name: scheduler.PointClaimed, most: 6},
		{name: scheduler.PointStepBegins, most: 12},
		{name: scheduler.PointStepEnded, most: 12},
		{name: scheduler.PointRunEnded, most: 5},
		{name: scheduler.PointRunFinished, most: 5},
		{name: scheduler.PointReaped, most: 2},
		{name: scheduler.PointSettled, most: 2},
		{name: scheduler.PointPruned, most: 1, env: []string{"DOCKET_KEEP_BODIES=" + w.size.keepBodies.String()}},
		{name: pointBeforeSend, most: 20},
		{name: pointAfterSend, most: 20},
	}
}

// faultKinds returns every kind of fault that this machine can make.
func (w *tortureWorld) faultKinds() (list []*tortureFault) {
	least := w.size.least
	for _, p := range w.torturePoints() {
		list = append(list, &tortureFault{name: "at point " + p.name, need: least, live: w.atPoint(p)})
	}
	list = append(list,
		&tortureFault{name: "at point " + pointBecoming, need: least, live: w.atBecoming},
		&tortureFault{name: "upgraded, then killed", need: least, live: w.upgraded},
		&tortureFault{name: "recovering what GitHub could not deliver", need: w.size.kills / 10, live: w.recovering},
		&tortureFault{name: "backup made", need: w.size.backups, live: w.backupMade},
		&tortureFault{name: "backup cut off by the server's end", need: least, live: w.backupCut},
		&tortureFault{name: "at point " + pointBackupProved, need: least, live: w.backupStruck},
	)
	for _, point := range []string{store.FailCopied, store.FailVerified, store.FailSynced, store.FailRenamed} {
		list = append(list, &tortureFault{name: "compact at point " + point, need: least, live: w.compactStruck(point), early: true})
	}
	return append(list, w.straceFaults()...)
}

// tortureDeck deals the lives of the server: every fault as often as it is
// needed, those that did not happen again, and all others by chance.
type tortureDeck struct {
	rng    *rand.Rand
	chance *tortureFault
	cards  []*tortureFault
}

func newTortureDeck(rng *rand.Rand, faults []*tortureFault, chance *tortureFault, lives int) *tortureDeck {
	d := &tortureDeck{rng: rng, chance: chance}
	var early []*tortureFault
	for _, f := range faults {
		for range f.need {
			if f.early {
				early = append(early, f)
			} else {
				d.cards = append(d.cards, f)
			}
		}
	}
	for len(early)+len(d.cards) < lives {
		d.cards = append(d.cards, chance)
	}
	shuffle := func(list []*tortureFault) {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	shuffle(d.cards)
	first := len(d.cards) / 4
	begin := append(early, d.cards[:first]...)
	shuffle(begin)
	d.cards = append(begin, d.cards[first:]...)
	return d
}

func (d *tortureDeck) next() *tortureFault {
	if len(d.cards) == 0 {
		return d.chance
	}
	f := d.cards[0]
	d.cards = d.cards[1:]
	return f
}

// again deals a fault once more, later.
func (d *tortureDeck) again(f *tortureFault) {
	d.cards = slices.Insert(d.cards, d.rng.IntN(len(d.cards)+1), f)
}

// live gives the server its next life.
func (w *tortureWorld) live(ctx context.Context, rng *rand.Rand, f *tortureFault) bool {
	w.t.Helper()
	f.tried++
	began := time.Now()
	happened, ok := f.live(ctx, rng)
	if os.Getenv("TORTURE_VERBOSE") != "" {
		w.t.Logf("%s: %t after %s", f.name, happened, time.Since(began).Round(time.Millisecond))
	}
	if !ok {
		return false
	}
	if happened {
		f.happened++
	} else if f.happened < f.need {
		if f.tried > 5*f.need+20 {
			w.fail("%s: it came to it %d times in %d tries; want %d", f.name, f.happened, f.tried, f.need)
			return false
		}
		w.deck.again(f)
	}
	return true
}

// checkFaults: each fault happened as often as it had to.
func (w *tortureWorld) checkFaults() {
	for _, f := range w.faults {
		if f.happened < f.need {
			w.fail("%s: it came to it %d times in %d tries; want %d", f.name, f.happened, f.tried, f.need)
		}
	}
}

// tellFaults lists how often each fault happened.
func (w *tortureWorld) tellFaults() string {
	var text strings.Builder
	for _, f := range append([]*tortureFault{w.deck.chance}, w.faults...) {
		fmt.Fprintf(&text, "\n    %-45s %d (of %d tries)", f.name, f.happened, f.tried)
	}
	return text.String()
}

// tortureLife is the longest that a life waits for its fault.
const tortureLife = 4 * time.Second

// atPoint lets the server kill itself at a named point.
func (w *tortureWorld) atPoint(p torturePoint) func(context.Context, *rand.Rand) (happened, ok bool) {
	return func(ctx context.Context, rng *rand.Rand) (bool, bool) {
		nth := 1 + rng.IntN(p.most)
		if p.name == scheduler.PointPruned {
			defer func() { w.prunedTo = time.Now().Add(-w.size.keepBodies) }()
		}
		w.server.startWith(tortureStart{failpoints: true, recover: rng.IntN(4) == 0, env: append([]string{fmt.Sprintf("DOCKET_KILL_AT=%s:%d", p.name, nth)}, p.env...)})
		w.book.let()
		return w.server.awaitOwnKill(ctx, tortureLife)
	}
}

// awaitOwnKill waits until the server is killed by something that the test
// gave it at its start, and kills it if that does not happen in time.
func (s *tortureServer) awaitOwnKill(ctx context.Context, most time.Duration) (happened, ok bool) {
	s.w.t.Helper()
	end := time.NewTimer(most)
	defer end.Stop()
	select {
	case <-s.exited:
		if !s.wasKilled() {
			s.w.fail("the server ended by itself: %v", s.cmd.ProcessState)
			return false, false
		}
		s.kills++
		return true, true
	case <-end.C:
		return false, s.kill()
	case <-ctx.Done():
		return false, false
	}
}

// atBecoming kills the server when it has made way for the next program.
func (w *tortureWorld) atBecoming(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.startWith(tortureStart{failpoints: true, env: []string{"DOCKET_KILL_AT=" + pointBecoming + ":1"}})
	w.book.let()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 500*time.Millisecond)) {
		return false, false
	}
	w.server.askUpgrade()
	return w.server.awaitOwnKill(ctx, 30*time.Second)
}

// upgraded makes the server become its next program, and kills it on the way
// or after it.
func (w *tortureWorld) upgraded(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.start()
	w.book.let()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 300*time.Millisecond)) {
		return false, false
	}
	w.server.askUpgrade()
	if !w.server.wait(ctx, tortureWait(rng, 2*time.Second)) {
		return false, false
	}
	return true, w.server.kill()
}

// recovering lets the server ask GitHub for what it could not deliver.
func (w *tortureWorld) recovering(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.startWith(tortureStart{failpoints: true, recover: true})
	w.book.let()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 1500*time.Millisecond)) {
		return false, false
	}
	return true, w.server.kill()
}

// byChance kills the server at a random moment.
func (w *tortureWorld) byChance(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.startWith(tortureStart{recover: rng.IntN(8) == 0})
	w.book.let()
	return true, w.server.live(ctx, rng)
}
