//go:build torture

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// straceFaults are what strace can do to the server's calls of the kernel.
// Where it may not, the long form fails, and the short one says so.
func (w *tortureWorld) straceFaults() []*tortureFault {
	w.t.Helper()
	if why := straceMissing(); why != "" {
		if w.size.long {
			w.fatal("failing syncs, kills between the writes of pages and a disk without space cannot be injected: %s", why)
		}
		w.t.Logf("SKIPPED: failing syncs, kills between the writes of pages and a disk without space: %s", why)
		return nil
	}
	least := w.size.least
	return []*tortureFault{
		{name: "a sync fails", need: 2 * least, live: w.syncFails},
		{name: "no space for a while", need: 2 * least, live: w.noSpace},
		{name: "killed at a sync", need: 2 * least, live: w.killedAtCall("fdatasync", 30)},
		{name: "killed between the writes of pages", need: 2 * least, live: w.killedAtCall("pwrite64", 100)},
	}
}

// straced is what goes before a command line whose calls of the kernel are to
// fail. With -D the process that is started is the command itself, and strace
// is its child's child. With a filter only the call that is meant stops, and
// then no signal can be injected.
func straced(inject string) []string {
	call, _, _ := strings.Cut(inject, ":")
	args := []string{"strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + inject}
	if !strings.Contains(inject, "signal=") {
		args = append(args, "--seccomp-bpf")
	}
	return args
}

// straceMissing says why strace cannot inject faults, or "".
func straceMissing() string {
	args := append(straced("getpid:error=EIO:when=1"), "true")
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Sprintf("strace is missing or may not trace: %v %s; install it, and allow ptrace", err, strings.TrimSpace(string(out)))
	}
	return ""
}

// killedAtCall has the kernel kill the server as it enters a call. Calls are
// counted by thread.
func (w *tortureWorld) killedAtCall(call string, most int) func(context.Context, *rand.Rand) (happened, ok bool) {
	return func(ctx context.Context, rng *rand.Rand) (bool, bool) {
		w.server.startWith(tortureStart{inject: fmt.Sprintf("%s:signal=KILL:when=%d", call, 1+rng.IntN(most))})
		w.book.let()
		return w.server.awaitOwnKill(ctx, tortureLife)
	}
}

// syncFails lets a sync fail: from then on the server says no, and nothing
// that is asked then is acknowledged.
func (w *tortureWorld) syncFails(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	w.server.startWith(tortureStart{inject: fmt.Sprintf("fdatasync:error=EIO:when=%d", 1+rng.IntN(15))})
	w.book.let()
	if !w.server.await(ctx) {
		return false, false
	}
	refusals := w.unavailable.Load()
	happened, ok = w.server.until(ctx, tortureLife, func() bool { return strings.Contains(w.server.readiness(), "writes nothing more") })
	if !ok {
		return false, false
	}
	if happened {
		w.broken.Store(int64(w.server.lives))
		w.book.let()
		_, ok = w.server.until(ctx, time.Second, func() bool { return w.unavailable.Load() > refusals+5 })
		w.broken.Store(0)
		if refused := w.unavailable.Load() - refusals; refused == 0 && ok && w.book.waiting() {
			w.fail("the disk failed, and nobody was refused")
		}
	}
	return happened, w.server.kill() && ok
}

// noSpace lets the writes of pages fail as on a full disk, for a while: the
// server refuses, and goes on by itself.
func (w *tortureWorld) noSpace(ctx context.Context, rng *rand.Rand) (happened, ok bool) {
	from := 10 + rng.IntN(40)
	w.server.startWith(tortureStart{inject: fmt.Sprintf("pwrite64:error=ENOSPC:when=%d..%d", from, from+1+rng.IntN(20))})
	w.book.let()
	if !w.server.await(ctx) {
		return false, false
	}
	refusals := w.unavailable.Load()
	if happened, ok = w.server.until(ctx, tortureLife, func() bool { return w.unavailable.Load() > refusals }); !happened || !ok {
		return false, ok && w.server.kill()
	}
	w.book.let()
	fresh := w.fresh.Load()
	again, ok := w.server.until(ctx, 20*time.Second, func() bool { return w.fresh.Load() > fresh || !w.book.waiting() })
	if ok && !again {
		w.fail("there is space again, and nothing is acknowledged: %s", w.server.readiness())
	}
	return true, ok && w.server.kill()
}

// readiness returns what /readyz says, "" where nobody answers.
func (s *tortureServer) readiness() string {
	resp, err := s.client.Get(s.w.url + "/readyz")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode == http.StatusOK {
		return "ready"
	}
	return string(b)
}

// until waits for a condition while the server lives. ok is false, and the
// test has failed, if the server ends by itself.
func (s *tortureServer) until(ctx context.Context, most time.Duration, done func() bool) (happened, ok bool) {
	s.w.t.Helper()
	end := time.NewTimer(most)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end.C:
			return false, true
		case <-s.exited:
			s.w.fail("the server ended by itself: %v", s.cmd.ProcessState)
			return false, false
		case <-ctx.Done():
			return false, false
		}
	}
	return true, true
}

// wait lets the server live for a while.
func (s *tortureServer) wait(ctx context.Context, d time.Duration) bool {
	s.w.t.Helper()
	_, ok := s.until(ctx, d, func() bool { return false })
	return ok
}
