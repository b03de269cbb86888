//go:build torture

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docket/store"
)

// TestTortureFullDisk is the same torture, smaller, with the data directory on
// a disk of its own that is full again and again, while the server works and
// while it starts.
//
// Ensure that on a full disk nothing is acknowledged that is not kept, and that
// work goes on by itself when there is room.
func TestTortureFullDisk(t *testing.T) {
	t.Parallel()
	size := newTortureSize(t)
	size.full = true
	size.deliveries, size.kills = max(size.deliveries/50, 100), max(size.kills/50, 8)
	w := newTortureWorld(t, size)
	if err := os.Mkdir(w.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.dataDir(), "tmpfs", 0, fmt.Sprintf("size=%dm", 128+size.deliveries/10)); err != nil {
		if errors.Is(err, unix.EPERM) && !size.long {
			t.Skip("SKIPPED: mounting a tmpfs is not permitted; run this as root to torture docket on a full disk")
		}
		t.Fatalf("a small disk cannot be mounted: %v; run this as root", err)
	}
	t.Cleanup(func() {
		if !w.server.dead() {
			w.server.kill()
		}
		if t.Failed() { // the directory is kept, and the disk is not
			kept, _ := os.ReadFile(w.storeFile())
			_ = os.WriteFile(filepath.Join(w.dir, "kept.db"), kept, 0o600)
		}
		if err := unix.Unmount(w.dataDir(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.faults = []*tortureFault{
		{name: "the disk is full for a while", need: size.least, live: w.fullForAWhile},
		{name: "killed on a full disk, started on it", need: size.least, live: w.killedWhileFull},
	}
	w.torture(t.Context())
}

func (w *tortureWorld) filler() string { return filepath.Join(w.dataDir(), "filler") }

// fill fills the disk while the server works, and waits until it refuses.
func (w *tortureWorld) fill(ctx context.Context, rng *rand.Rand) (refused, ok bool) {
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 200*time.Millisecond)) {
		return false, false
	}
	refusals := w.unavailable.Load()
	fillDisk(w.t, w.filler())
	return w.server.until(ctx, 2*tortureLife, func() bool {
		if w.unavailable.Load() > refusals {
			return true
		}
		fillDisk(w.t, w.filler()+"-more") // what was freed meanwhile
		if !w.book.waiting() {
			w.book.let() // the store has free pages of its own
		}
		return false
	})
}

func (w *tortureWorld) empty() {
	for _, name := range []string{w.filler(), w.filler() + "-more"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fail("%v", err)
		}
	}
}

// fullForAWhile fills the disk and makes room again: the same server takes
// deliveries then.
func (w *tortureWorld) fullForAWhile(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.start()
	w.book.let()
	happened, ok = w.fill(ctx, rng)
	if happened && ok {
		ok = w.server.wait(ctx, tortureWait(rng, 500*time.Millisecond))
	}
	w.empty()
	if !ok {
		return false, false
	}
	fresh := w.fresh.Load()
	again, ok := w.server.until(ctx, 20*time.Second, func() bool { return w.fresh.Load() > fresh || !w.book.waiting() })
	if ok && !again {
		w.fail("there is room again, and nothing is acknowledged: %s", w.server.readiness())
	}
	return happened, ok && w.server.kill()
}

// killedWhileFull kills the server on a full disk and lets another one live on
// it before there is room again.
func (w *tortureWorld) killedWhileFull(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	defer w.empty()
	w.server.start()
	w.book.let()
	if happened, ok = w.fill(ctx, rng); !happened || !ok {
		return false, ok && w.server.kill()
	}
	if !w.server.wait(ctx, tortureWait(rng, 200*time.Millisecond)) || !w.server.kill() {
		return false, false
	}
	w.settleOutside()
	w.server.start()
	if !w.server.await(ctx) || !w.server.wait(ctx, tortureWait(rng, 500*time.Millisecond)) {
		return false, false
	}
	return true, w.server.kill()
}

// Ensure that the ordinary binary heeds none of what the other one is told by
// its environment, and has no trace of it.
func TestTortureOrdinaryBinary(t *testing.T) {
	t.Parallel()
	w := newTortureWorld(t, newTortureSize(t))
	for binary, want := range map[string]bool{w.server.binary: false, w.server.failpoints: true} {
		b, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("DOCKET_KILL_AT")) != want {
			t.Errorf("%s knows DOCKET_KILL_AT: %t; want %t", binary, !want, want)
		}
	}
	kill := []string{"DOCKET_KILL_AT=" + store.FailBeforeCommit + ":1"}
	w.server.startWith(tortureStart{failpoints: true, env: kill})
	if happened, _ := w.server.awaitOwnKill(t.Context(), tortureLife); !happened {
		t.Error("the binary with failpoints was not killed at its first commit")
	}
	w.server.startWith(tortureStart{env: kill})
	if !w.server.await(t.Context()) {
		return
	}
	s := &tortureSender{w: w, book: w.book, rng: w.rng(1), client: w.client()}
	s.deliver(t.Context(), w.book.push(s.rng))
	w.server.terminate()
	if n := w.fresh.Load(); n != 1 {
		t.Errorf("%d deliveries were acknowledged; want 1", n)
	}
}
