//go:build torture

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// tortureSenders is how many senders deliver at once.
const tortureSenders = 16

// tortureSize is how much of it there is.
type tortureSize struct {
	seed       uint64
	deliveries int
	kills      int // at least: faults that did not come off get another life
	rounds     int // after each all is held against what was promised
	least      int // times that each kind of fault happens
	backups    int // that are made, restored and verified
	carried    int // of a hundred pushes, to each of the two repositories whose runs are all carried
	long       bool
	full       bool // the data directory may be full

	keepBodies  time.Duration // where bodies are pruned
	missedEvery time.Duration // between two deliveries by GitHub itself
}

func newTortureSize(t *testing.T) tortureSize {
	t.Helper()
	size := tortureSize{
		seed: tortureSeed(t), deliveries: tortureNumber(t, "TORTURE_DELIVERIES", 2000), kills: tortureNumber(t, "TORTURE_KILLS", 100),
		rounds: tortureNumber(t, "TORTURE_ROUNDS", 1), least: tortureNumber(t, "TORTURE_LEAST", 1), backups: tortureNumber(t, "TORTURE_COPIES", 2),
		carried: 25, long: os.Getenv("TORTURE_LONG") != "", keepBodies: 5 * time.Second, missedEvery: time.Second,
	}
	if size.long {
		size.carried, size.keepBodies = 3, time.Minute
	}
	return size
}

// TestTorture delivers from many senders to the real binary while that is
// killed, at random moments and at every named point, while its syncs and
// writes fail, while it is upgraded, compacted and copied, and while receivers
// outside fail now and then. It holds the store at the end, and in between,
// against what was promised on the way.
//
// TORTURE_DELIVERIES and TORTURE_KILLS say how much of it, TORTURE_ROUNDS how
// often all is held against the promises, TORTURE_LEAST how often each kind of
// fault happens, and TORTURE_COPIES how many backups are restored; with
// TORTURE_LONG nothing may be left out for want of a tool. TORTURE_SEED makes the
// same choices again, though never the same timing. DOCKET_BINARY is the binary
// to torture, default .build/docket; beside it lies DOCKET_BINARY-failpoints.
//
// Ensure that whatever was acknowledged is there, exactly once, and that the
// world was told.
func TestTorture(t *testing.T) {
	w := newTortureWorld(t, newTortureSize(t))
	w.faults = w.faultKinds(w.book)
	w.torture(t.Context())
}

// torture is one torture from its first delivery to its figures.
func (w *tortureWorld) torture(ctx context.Context) {
	began, size := time.Now(), w.size
	w.t.Logf("seed %d: %d deliveries, %d kills, in %s", w.seed, size.deliveries, size.kills, w.dir)
	w.deck = newTortureDeck(w.rng(2000), w.faults, &tortureFault{name: "killed at a random moment", live: w.byChance}, size.kills-size.rounds*tortureIdle(size.kills/size.rounds))
	defer w.copies.checking.Wait()
	for round := range size.rounds {
		lives := size.kills / size.rounds
		if round == size.rounds-1 {
			lives = tortureIdle(lives) + len(w.deck.cards)
		}
		seen := w.round(ctx, round, size.deliveries/size.rounds, lives)
		if w.t.Failed() {
			return
		}
		w.check(w.book, seen)
		w.t.Logf("round %d of %d, after %.0f s:%s", round+1, size.rounds, time.Since(began).Seconds(), w.summary(w.book, time.Since(began)))
		if w.t.Failed() {
			return
		}
	}
	w.copies.checking.Wait()
	w.checkFaults()
}

// round makes so many deliveries over so many lives of the server, and lets
// all of it come to rest.
func (w *tortureWorld) round(ctx context.Context, round, deliveries, lives int) tortureSeen {
	w.t.Helper()
	ctx, stop := context.WithCancel(ctx)
	w.book.more(deliveries, (lives-tortureIdle(lives))*5/4) // some lives take two shares
	var senders, hub sync.WaitGroup
	for i := range tortureSenders {
		s := &tortureSender{w: w, book: w.book, rng: w.rng(uint64(1 + i + 10_000*round)), client: w.client()}
		senders.Go(func() { s.work(ctx) })
	}
	sent := make(chan struct{})
	go func() { senders.Wait(); close(sent) }()
	hub.Go(func() { w.deliverAsGitHub(ctx, w.rng(uint64(999+10_000*round)), sent) })
	defer func() { stop(); <-sent; hub.Wait() }()

	w.tortureToDeath(ctx, w.rng(uint64(10_000*round)), lives, round == w.size.rounds-1, sent)
	if w.t.Failed() {
		return tortureSeen{}
	}
	w.server.startWith(tortureStart{recover: true})
	if !w.server.await(ctx) {
		return tortureSeen{}
	}
	w.book.letAll()
	w.awaitSenders(ctx, w.book, sent)
	hub.Wait()
	w.awaitRecovered(ctx)
	w.awaitSettled(ctx)
	w.askAgain(ctx, w.book)
	w.awaitSettled(ctx)
	seen := w.seenByAPI(ctx)
	w.server.terminate()
	return seen
}

// tortureIdle is how many of a round's lives are kept for after the last
// delivery.
func tortureIdle(kills int) int { return min(kills/5, 10) }

// tortureToDeath gives the server one life after another. Deliveries are
// spread over them; some are kept for after the last delivery. The last round
// goes on until every fault that was to happen has.
func (w *tortureWorld) tortureToDeath(ctx context.Context, rng *rand.Rand, lives int, last bool, sent <-chan struct{}) {
	w.t.Helper()
	idle := tortureIdle(lives)
	for life := 0; life < lives-idle || last && len(w.deck.cards) > 0; life++ {
		if !w.live(ctx, rng, w.deck.next()) {
			return
		}
		w.settleOutside()
	}
	w.book.letAll()
	w.awaitSenders(ctx, w.book, sent)
	for range idle {
		if !w.live(ctx, rng, w.deck.chance) {
			return
		}
		w.settleOutside()
	}
}

// live lets the server live until a random moment, and kills it: while it
// opens its store or settles what the one before left behind, just when a
// delivery was acknowledged, just when it told the world something, or whenever
// it is. It returns false when the test is over: the server ended by itself.
func (s *tortureServer) live(ctx context.Context, rng *rand.Rand) bool {
	most := 1500 * time.Millisecond
	switch rng.IntN(8) {
	case 0:
		most = 60 * time.Millisecond
	case 1:
		most = 400 * time.Millisecond
	case 2, 3, 4:
		s.w.acknowledged.arm(1+rng.IntN(30), s.strike)
	case 5:
		s.w.told.arm(1+rng.IntN(30), s.strike)
	default:
		if !s.await(ctx) {
			return false
		}
	}
	life := time.NewTimer(tortureWait(rng, most))
	defer life.Stop()
	select {
	case <-life.C:
	case <-s.exited:
	case <-ctx.Done():
		return false
	}
	s.w.acknowledged.disarm()
	s.w.told.disarm()
	return s.kill()
}

// tortureTrap strikes at one of the next events of a kind, at once.
type tortureTrap struct {
	mu     sync.Mutex
	left   int
	strike func()
}

func (tr *tortureTrap) arm(nth int, strike func()) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.left, tr.strike = nth, strike
}

func (tr *tortureTrap) disarm() { tr.arm(0, nil) }

// event is called by whoever sees one.
func (tr *tortureTrap) event() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.left--; tr.left == 0 && tr.strike != nil {
		tr.strike()
	}
}

// awaitSenders waits until every sender has all its answers.
func (w *tortureWorld) awaitSenders(ctx context.Context, book *tortureBook, sent <-chan struct{}) {
	select {
	case <-sent:
		return
	default:
	}
	if w.server.dead() { // between two lives: the senders need one of their own
		w.server.start()
		defer func() {
			w.server.kill()
			w.settleOutside()
		}()
	}
	w.progress(ctx, "the senders have their answers", func() (bool, string) {
		select {
		case <-sent:
			return true, ""
		default:
			return false, fmt.Sprint(book.answers.Load())
		}
	})
}

// torturePatience is how long nothing may happen before the test gives up.
const torturePatience = 3 * time.Minute

// progress waits for a condition and fails when the measure that it gives
// with "not yet" does not change for too long.
func (w *tortureWorld) progress(ctx context.Context, what string, done func() (ok bool, measure string)) {
	w.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, since := "", time.Now()
	for {
		ok, measure := done()
		switch {
		case ok:
			return
		case w.server.dead():
			w.fatal("waiting until %s: the server ended by itself: %v", what, w.server.cmd.ProcessState)
		case measure != last:
			last, since = measure, time.Now()
		case time.Since(since) > torturePatience:
			w.fatal("waiting until %s: nothing happened for %s; it stands at %s", what, torturePatience, measure)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.fatal("waiting until %s: %v", what, ctx.Err())
		}
	}
}

// tortureWait returns a random time below one.
func tortureWait(rng *rand.Rand, below time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(below)))
}

func tortureNumber(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q; want a number from 1 on", name, v)
	}
	return n
}

func tortureSeed(t *testing.T) uint64 {
	t.Helper()
	v := os.Getenv("TORTURE_SEED")
	if v == "" {
		return rand.Uint64N(1_000_000)
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("TORTURE_SEED is %q; want a number", v)
	}
	return n
}

func tortureBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DOCKET_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", ".build", "docket")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no binary to torture: %v; run `make build`, or name one in DOCKET_BINARY", err)
	}
	return path
}
