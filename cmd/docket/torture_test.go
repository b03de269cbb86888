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

// TestTorture delivers from many senders to the real binary while that is
// killed at random moments, with receivers outside that fail now and then, and
// holds the store at the end against what was promised on the way.
//
// TORTURE_DELIVERIES and TORTURE_KILLS say how much of it; TORTURE_SEED makes
// the same choices again, though never the same timing. DOCKET_BINARY is the
// binary to torture, default .build/docket.
//
// Ensure that whatever was acknowledged is there, exactly once, and that the
// world was told.
func TestTorture(t *testing.T) {
	began := time.Now()
	w := newTortureWorld(t, tortureSeed(t))
	deliveries, kills := tortureNumber(t, "TORTURE_DELIVERIES", 2000), tortureNumber(t, "TORTURE_KILLS", 50)
	t.Logf("seed %d: %d deliveries, %d kills, in %s", w.seed, deliveries, kills, w.dir)

	ctx, stop := context.WithCancel(t.Context())
	book := newTortureBook(w, deliveries, kills-tortureIdle(kills))
	var senders sync.WaitGroup
	for i := range tortureSenders {
		s := &tortureSender{w: w, book: book, rng: w.rng(uint64(1 + i)), client: w.client()}
		senders.Go(func() { s.work(ctx) })
	}
	sent := make(chan struct{})
	go func() { senders.Wait(); close(sent) }()
	t.Cleanup(func() { stop(); <-sent })

	w.tortureToDeath(ctx, book, kills, sent)
	if t.Failed() {
		return
	}
	w.server.start()
	if !w.server.await(ctx) {
		return
	}
	book.letAll()
	w.awaitSenders(ctx, book, sent)
	w.awaitSettled(ctx)
	w.askAgain(ctx, book)
	w.awaitSettled(ctx)
	seen := w.seenByAPI(ctx)
	w.server.terminate()
	w.check(book, seen)
	t.Log(w.summary(book, time.Since(began)))
}

// tortureIdle is how many of the lives are kept for after the last delivery.
func tortureIdle(kills int) int { return kills / 5 }

// tortureToDeath kills the server at random moments and starts it again at
// once. Deliveries are spread over its lives; some lives are kept for after
// the last of them.
func (w *tortureWorld) tortureToDeath(ctx context.Context, book *tortureBook, kills int, sent <-chan struct{}) {
	rng := w.rng(0)
	for life := range kills {
		if life == kills-tortureIdle(kills) {
			book.letAll()
			w.awaitSenders(ctx, book, sent)
		}
		w.server.start()
		book.let()
		if !w.server.live(ctx, rng) {
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
