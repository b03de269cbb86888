package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that the scan ends a held run when its time is up and not before, and
// looks again by itself when the next one is due.
func TestLapse(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	at := func() time.Time { return time.Unix(0, now.Load()) }
	s := storetest.MustOpenAt(t, t.TempDir()+"/docket.db", store.Options{Now: at})
	hold := func(key string, d time.Duration) string {
		return request(t, s, key, ci.Job{}, func(dr *ci.Draft) {
			dr.State, dr.Job, dr.Fork, dr.HoldFor, dr.Source.Commit = ci.Held, nil, true, d, commit(1)
		})
	}
	first, second := hold("a", time.Hour), hold("b", time.Hour+50*time.Millisecond)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) { o.Now, c.ScanInterval = at, time.Hour })
	poll(t, "a scan", func() bool { return !h.sched.LastScan().IsZero() })
	if r := h.waitState(first, ci.Held); r.Internal.LapsesAt.IsZero() {
		t.Fatal("it does not lapse")
	}
	now.Add(int64(time.Hour))
	another := push(t, s, "web", -1, 1) // wakes it
	if r := h.waitState(first, ci.Cancelled); r.Reason != "approval was waited for 1h0m0s" {
		t.Errorf("reason %q", r.Reason)
	}
	h.waitState(another, ci.Running)
	if r, _ := s.Run(second); r.State != ci.Held {
		t.Errorf("the second is %s", r.State)
	}
	now.Add(int64(time.Minute))
	h.waitState(second, ci.Cancelled) // by the timer that was set for it
}
