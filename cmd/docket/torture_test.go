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
	"sync/atomic"
	"testing"
	"time"
)

// tortureSenders is how many senders deliver at once.
const tortureSenders = 16

// tortureSize is how much of it there is.
type tortureSize struct {
	seed       uint64
	rounds     int           // at least, each with a store of its own
	lasts      time.Duration // at least: until then another round begins
	deliveries int           // over rounds, as are the next three
	kills      int           // at least: faults that did not come off get another life
	least      int           // times that each kind of fault happens
	backups    int           // that are made, restored and verified
	carried    int           // of a hundred pushes, to each of the two repositories whose runs are all carried
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
	if text := os.Getenv("TORTURE_FOR"); text != "" {
		var err error
		if size.lasts, err = time.ParseDuration(text); err != nil {
			t.Fatalf("TORTURE_FOR: %v", err)
		}
	}
	if size.long {
		size.carried, size.keepBodies = 3, 20*time.Second
	}
	return size
}

// round is the part of one round.
func (size tortureSize) round(n int) tortureSize {
	for _, part := range []*int{&size.deliveries, &size.kills, &size.least, &size.backups} {
		*part = (*part + size.rounds - 1) / size.rounds
	}
	size.seed += uint64(n)
	return size
}

// idle is how many of the lives are kept for after the last delivery.
func (size tortureSize) idle() int { return min(size.kills/5, 10) }

// TestTorture delivers from many senders to the real binary while that is
// killed, at random moments and at every named point, while its syncs and
// writes fail, while it is upgraded, compacted and copied, and while receivers
// outside fail now and then. It holds the store at the end of each round
// against what was promised on the way.
//
// TORTURE_DELIVERIES and TORTURE_KILLS say how much of it, over TORTURE_ROUNDS
// rounds with a store each, TORTURE_LEAST how often each kind of fault happens,
// and TORTURE_COPIES how many backups are restored. Until TORTURE_FOR is over
// more rounds of the same size begin. With TORTURE_LONG nothing may
// be left out for want of a tool. TORTURE_SEED makes the same choices again,
// though never the same timing. DOCKET_BINARY is the binary to torture, default
// .build/docket; beside it lies DOCKET_BINARY-failpoints. TORTURE_VERBOSE tells
// of each life.
//
// Ensure that whatever was acknowledged is there, exactly once, and that the
// world was told.
func TestTorture(t *testing.T) {
	t.Parallel()
	size := newTortureSize(t)
	total := tortureTotal{began: time.Now(), happened: map[string]int{}}
	var begun atomic.Int64
	t.Run("rounds", func(t *testing.T) {
		for lane := range min(2, size.rounds) { // one works while another comes to rest
			t.Run(fmt.Sprintf("lane-%d", lane+1), func(t *testing.T) {
				t.Parallel()
				for {
					round := int(begun.Add(1))
					if round > size.rounds && time.Since(total.began) >= size.lasts {
						return
					}
					t.Run(fmt.Sprint(round), func(t *testing.T) {
						w := newTortureWorld(t, size.round(round))
						w.faults = w.faultKinds()
						w.torture(t.Context())
						total.add(w)
					})
				}
			})
		}
	})
	t.Log(&total)
}

// torture is one torture from its first delivery to its figures.
func (w *tortureWorld) torture(ctx context.Context) {
	w.t.Helper()
	began := time.Now()
	w.t.Logf("seed %d: %d deliveries, %d kills, in %s", w.seed, w.size.deliveries, w.size.kills, w.dir)
	w.deck = newTortureDeck(w.rng(2000), w.faults, &tortureFault{name: "killed at a random moment", live: w.byChance}, w.size.kills-w.size.idle())
	w.book.share = w.size.deliveries/(len(w.deck.cards)*5/4) + 1 // some lives take two
	defer w.copies.checking.Wait()
	seen := w.deliverAndKill(ctx)
	if w.t.Failed() {
		return
	}
	w.check(w.book, seen)
	w.copies.checking.Wait()
	w.checkFaults()
	w.t.Log(w.summary(w.book, time.Since(began)))
}

// deliverAndKill makes the deliveries over all lives of the server, lets all of
// it come to rest, asks for everything once more, and returns what the API shows
// then.
func (w *tortureWorld) deliverAndKill(ctx context.Context) (seen tortureSeen) {
	w.t.Helper()
	ctx, stop := context.WithCancel(ctx)
	var senders, hub sync.WaitGroup
	for i := range tortureSenders {
		s := &tortureSender{w: w, book: w.book, rng: w.rng(uint64(1 + i)), client: w.client()}
		senders.Go(func() { s.work(ctx) })
	}
	sent := make(chan struct{})
	go func() { senders.Wait(); close(sent) }()
	hub.Go(func() { w.deliverAsGitHub(ctx, w.rng(999), sent) })
	defer func() { stop(); <-sent; hub.Wait() }()

	w.tortureToDeath(ctx, w.rng(0), sent)
	if w.t.Failed() {
		return seen
	}
	w.server.startWith(tortureStart{recover: true})
	if !w.server.await(ctx) {
		return seen
	}
	w.awaitSenders(ctx, w.book, sent)
	hub.Wait()
	w.awaitRecovered(ctx)
	w.awaitSettled(ctx)
	w.askAgain(ctx, w.book)
	w.awaitSettled(ctx)
	seen = w.seenByAPI(ctx)
	w.server.terminate()
	return seen
}

// tortureToDeath gives the server one life after another, until every fault
// that was to happen has. Deliveries are spread over them; some lives are kept
// for after the last delivery.
func (w *tortureWorld) tortureToDeath(ctx context.Context, rng *rand.Rand, sent <-chan struct{}) {
	w.t.Helper()
	w.server.start() // the first life makes the store, which may be compacted next
	w.book.let()
	if !w.server.await(ctx) || !w.server.kill() {
		return
	}
	for len(w.deck.cards) > 0 {
		if !w.live(ctx, rng, w.deck.next()) {
			return
		}
		w.settleOutside()
	}
	w.book.letAll()
	w.awaitSenders(ctx, w.book, sent)
	for range w.size.idle() {
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
