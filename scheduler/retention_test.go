package scheduler_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"docket/scheduler"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that ages follow the clock, but no wild leap of it: forwards at most a
// day in an hour, backwards at once.
func TestRetentionTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for what, tc := range map[string]struct {
		last   time.Time
		passed time.Duration
		now    time.Time
		want   time.Time
	}{
		"an empty store":          {time.Time{}, 0, now, now},
		"as time passes":          {now.Add(-5 * time.Second), 5 * time.Second, now, now},
		"set a little forwards":   {now.Add(-time.Minute), 5 * time.Second, now, now},
		"at the start, years on":  {now, 0, now.AddDate(70, 0, 0), now},
		"an hour later, years on": {now, time.Hour, now.AddDate(70, 0, 0), now.Add(24 * time.Hour)},
		"set backwards":           {now, time.Second, now.AddDate(-1, 0, 0), now.AddDate(-1, 0, 0)},
		"after a week's stop":     {now.AddDate(0, 0, -7), 7 * time.Hour, now, now},
	} {
		if got := scheduler.RetentionTime(tc.last, tc.now, tc.passed); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", what, got, tc.want)
		}
	}
}

// Ensure that a clock that leaps ahead by years removes nothing, also not
// after a restart, and that retention goes on when the time has really passed.
func TestRetention_AClockThatLeapsRemovesNothing(t *testing.T) {
	s := storetest.MustOpen(t)
	var leap, passed atomic.Int64
	change := func(o *scheduler.Options, c *ci.Config) {
		c.Retention, c.ScanInterval = ci.Retention{Runs: time.Hour, Bodies: time.Hour, Logs: time.Hour}, 10*time.Millisecond
		o.Now = func() time.Time { return time.Now().Add(time.Duration(leap.Load())) }
		start := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(start) + time.Duration(passed.Load()) }
	}
	h := open(t, s, change)
	run := push(t, s, "api", -1, 1)
	h.nextStarted()
	h.stage.end(run) <- succeeded()
	h.waitState(run, ci.Succeeded)
	newest := push(t, s, "api", 1, 2)
	h.nextStarted()
	h.stage.end(newest) <- succeeded()
	h.waitState(newest, ci.Succeeded)
	for range 2 {
		leap.Store(int64(50 * 365 * 24 * time.Hour))
		at := h.sched.LastScan()
		for range 3 {
			poll(t, "a scan", func() bool { return h.sched.LastScan().After(at) })
			at = h.sched.LastScan()
		}
		if _, err := s.Run(run); err != nil {
			t.Fatalf("a leap of the clock removed it: %v", err)
		}
		h.stop()
		h = open(t, s, change)
	}
	poll(t, "a scan", func() bool { return !h.sched.LastScan().IsZero() })
	passed.Store(int64(3 * time.Hour))
	poll(t, "the old run is removed", func() bool { _, err := s.Run(run); return ci.CodeOf(err) == ci.CodeNotFound })
}

// Ensure that logs go before their runs where that is configured, and those
// that are new or being written stay.
func TestRetention_OfLogs(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) {
		c.Retention, c.ScanInterval = ci.Retention{Logs: time.Hour}, 10*time.Millisecond
	})
	old := push(t, s, "api", -1, 1)
	h.nextStarted()
	h.stage.end(old) <- succeeded()
	h.waitState(old, ci.Succeeded)
	h.stop()
	log := filepath.Join(filepath.Dir(s.Path()), "logs", "api", "1", "1.log")
	day := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(log, day, day); err != nil {
		t.Fatal(err)
	}
	live, err := s.Logs().Create("api-7", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := os.Chtimes(filepath.Join(filepath.Dir(s.Path()), "logs", "api", "7", "1.log"), day, day); err != nil {
		t.Fatal(err)
	}
	open(t, s, func(_ *scheduler.Options, c *ci.Config) {
		c.Retention, c.ScanInterval = ci.Retention{Logs: time.Hour}, 10*time.Millisecond
	})
	poll(t, "the log is removed", func() bool { _, err := s.Logs().Open(old, 1); return ci.CodeOf(err) == ci.CodeNotFound })
	if _, err := s.Run(old); err != nil {
		t.Errorf("its run: %v", err)
	}
	if _, err := s.Logs().Open("api-7", 1); err != nil {
		t.Errorf("a log that is being written: %v", err)
	}
}
