package scheduler_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// dial is a clock that a test sets.
type dial struct {
	mu sync.Mutex
	t  time.Time
}

func dialAt(t *testing.T, s string) *dial {
	d := &dial{}
	d.set(t, s)
	return d
}

func (d *dial) set(t *testing.T, s string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t = at
}

func (d *dial) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.t
}

// notNow resolves nothing, so that a run stays preparing.
func notNow(string) (string, error) { return "", errors.New("not now") }

// nightly opens a house whose project api has two schedules of New York and
// whose scans follow each other closely, under a clock that the test sets.
func nightly(t *testing.T, s *store.Store, d *dial, resolve func(string) (string, error), change func(*ci.Config)) *house {
	t.Helper()
	return open(t, s, func(o *scheduler.Options, c *ci.Config) {
		o.Now, o.NoWakeups = d.now, true
		o.Runner.(*stage).resolve = resolve
		c.ScanInterval, c.Limits.ConcurrentRuns = 5*time.Millisecond, 0
		p := &c.Projects[0]
		p.DefaultBranch, p.Steps = "main", []ci.Step{{Name: "test", Run: "true"}}
		p.On.Schedule = []ci.Schedule{
			{Cron: "30 1 * * *", Timezone: "America/New_York"}, {Cron: "30 2 * * *", Timezone: "America/New_York", Branch: "release"},
		}
		if change != nil {
			change(c)
		}
	})
}

// scanned waits until a scan that began after the clock was set has ended.
func scanned(h *house, d *dial) {
	h.t.Helper()
	for range 2 { // the first may have begun before
		d.mu.Lock()
		d.t = d.t.Add(time.Millisecond)
		now := d.t
		d.mu.Unlock()
		poll(h.t, "a scan ends", func() bool { return h.sched.LastScan().Equal(now) })
	}
}

// slots returns the slots of all runs, the oldest first, with their states.
func slots(t *testing.T, s *store.Store) (list []string) {
	t.Helper()
	runs, _, err := s.Runs(store.RunFilter{}, store.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(runs) - 1; i >= 0; i-- {
		list = append(list, strings.TrimSuffix(runs[i].Cause.Slot, " America/New_York"))
	}
	return list
}

// Ensure that over both clock changes of New York each slot of two schedules
// has exactly one run, of the right branch, also when the clock is set back an
// hour and when docket is started again in between.
func TestSchedules_ClockChanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		times []string
		want  []string
	}{
		{"spring", []string{
			"2027-03-13T20:00:00Z", "2027-03-14T06:29:59Z", "2027-03-14T06:30:00Z", "2027-03-14T06:59:59Z", "2027-03-14T07:00:00Z",
			"2027-03-14T06:00:00Z", "2027-03-14T07:30:00Z", "2027-03-15T05:30:00Z",
		}, []string{"2027-03-14 01:30", "2027-03-14 02:30", "2027-03-15 01:30"}},
		{"autumn", []string{
			"2027-11-06T20:00:00Z", "2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z", "2027-11-07T07:29:00Z", "2027-11-07T07:30:00Z",
			"2027-11-07T06:30:00Z", "2027-11-07T08:00:00Z", "2027-11-08T06:30:00Z",
		}, []string{"2027-11-07 01:30", "2027-11-07 02:30", "2027-11-08 01:30"}},
	} {
		for _, again := range []bool{false, true} {
			s := storetest.MustOpen(t)
			d := dialAt(t, c.times[0])
			h := nightly(t, s, d, notNow, nil)
			for _, at := range c.times {
				d.set(t, at)
				if again {
					h.stop()
					h = nightly(t, s, d, notNow, nil)
				}
				scanned(h, d)
			}
			h.stop()
			if d := cmp.Diff(c.want, slots(t, s)); d != "" {
				t.Errorf("%s, started again: %t\n%s", c.name, again, d)
			}
			r, err := s.Run("api-2")
			if err != nil || r.Source.Ref != "refs/heads/release" || r.Cause.Kind != ci.CauseSchedule || r.Cause.Actor != "" || r.Internal.Scope != "" {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}
}

// Ensure that a time in which docket was not there is made good by the newest
// slot alone, and that what was left out is on record.
func TestSchedules_Downtime(t *testing.T) {
	s := storetest.MustOpen(t)
	d := dialAt(t, "2027-06-01T12:00:00Z")
	h := nightly(t, s, d, notNow, func(c *ci.Config) { c.Projects[0].On.Schedule = c.Projects[0].On.Schedule[:1] })
	scanned(h, d)
	h.stop()
	d.set(t, "2027-06-05T12:00:00Z")
	h = nightly(t, s, d, func(string) (string, error) { return commit(3), nil }, func(c *ci.Config) { c.Projects[0].On.Schedule = c.Projects[0].On.Schedule[:1] })
	r := h.waitFor("api-1", func(r ci.Run) bool { return r.State == ci.Queued })
	if r.Cause.Slot != "2027-06-05 01:30 America/New_York" || r.Source.Commit != commit(3) || r.Source.Branch != "main" {
		t.Fatalf("%+v, %+v", r.Cause, r.Source)
	}
	scanned(h, d)
	if got := slots(t, s); len(got) != 1 {
		t.Fatalf("runs of %v", got)
	}
	list, _, err := s.Decisions("api-1", store.Page{})
	if err != nil || len(list) != 1 || list[0].Kind != ci.DecisionScheduled || !strings.Contains(list[0].Reason, "3 slots from 2027-06-02 01:30 on were left out") {
		t.Fatalf("%+v, %v", list, err)
	}
}

// Ensure that no slot is settled while runs are paused, and that the newest
// is made good afterwards.
func TestSchedules_PausedRuns(t *testing.T) {
	s := storetest.MustOpen(t)
	d := dialAt(t, "2027-06-01T12:00:00Z")
	h := nightly(t, s, d, notNow, func(c *ci.Config) { c.Projects[0].On.Schedule = c.Projects[0].On.Schedule[:1] })
	scanned(h, d)
	by := ci.By{Kind: ci.ByToken, Name: "ann"}
	if _, err := s.Pause(t.Context(), ci.WorkRuns, by, ""); err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"2027-06-02", "2027-06-03", "2027-06-04"} {
		d.set(t, day+"T05:30:00Z")
		scanned(h, d)
	}
	if got := slots(t, s); len(got) != 0 {
		t.Fatalf("paused, and runs of %v", got)
	}
	if _, err := s.Resume(t.Context(), ci.WorkRuns, by, ""); err != nil {
		t.Fatal(err)
	}
	scanned(h, d)
	if d := cmp.Diff([]string{"2027-06-04 01:30"}, slots(t, s)); d != "" {
		t.Fatal(d)
	}
}

// Ensure that the scan wakes for the next slot, however long it would wait
// otherwise.
func TestSchedules_WakeInTime(t *testing.T) {
	s := storetest.MustOpen(t)
	begin := time.Now()
	base := time.Date(2027, 1, 1, 11, 59, 59, 900_000_000, time.UTC)
	h := open(t, s, func(o *scheduler.Options, c *ci.Config) {
		o.Now = func() time.Time { return base.Add(time.Since(begin)) }
		o.NoWakeups, c.ScanInterval = true, time.Hour
		o.Runner.(*stage).resolve = notNow
		c.Projects[1].DefaultBranch, c.Projects[1].On.Schedule = "main", []ci.Schedule{{Cron: "0 12 * * *"}}
	})
	if r := h.waitFor("web-1", func(ci.Run) bool { return true }); r.Cause.Slot != "2027-01-01 12:00 UTC" {
		t.Fatalf("%+v", r.Cause)
	}
}

// Ensure that a slot whose run cannot be written is not lost, and that a
// schedule which leaves the configuration and returns does not catch up.
func TestSchedules_FailingStoreAndChangedConfiguration(t *testing.T) {
	var mu sync.Mutex
	full := false
	s := storetest.MustOpenAt(t, filepath.Join(t.TempDir(), "docket.db"), store.Options{Failpoint: func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		if full && point == store.FailBeforeCommit {
			return errors.New("no space")
		}
		return nil
	}})
	setFull := func(v bool) { mu.Lock(); full = v; mu.Unlock() }
	d := dialAt(t, "2027-06-01T12:00:00Z")
	h := nightly(t, s, d, notNow, nil)
	scanned(h, d)
	setFull(true)
	d.set(t, "2027-06-02T05:30:00Z")
	scanned(h, d)
	setFull(false)
	scanned(h, d)
	if d := cmp.Diff([]string{"2027-06-02 01:30"}, slots(t, s)); d != "" {
		t.Fatal(d)
	}
	h.stop()
	h = nightly(t, s, d, notNow, func(c *ci.Config) { c.Projects[0].On.Schedule = nil })
	scanned(h, d)
	h.stop()
	m, err := s.Slots("api")
	if err != nil || len(m) != 2 {
		t.Fatalf("%v, %v", m, err)
	}
	for _, rec := range m {
		if rec.GoneAt.IsZero() {
			t.Errorf("not marked as gone: %+v", rec)
		}
	}
	d.set(t, "2027-06-03T12:00:00Z")
	h = nightly(t, s, d, notNow, nil)
	scanned(h, d)
	h.stop()
	if got := slots(t, s); len(got) != 1 {
		t.Fatalf("it caught up: %v", got)
	}
	h = nightly(t, s, d, notNow, func(c *ci.Config) { c.Projects[0].On.Schedule = nil })
	scanned(h, d)
	d.set(t, "2027-07-13T12:00:00Z")
	h.stop()
	h = nightly(t, s, d, notNow, func(c *ci.Config) { c.Projects[0].On.Schedule = nil })
	scanned(h, d)
	if m, err := s.Slots(""); err != nil || len(m) != 0 {
		t.Fatalf("still there: %v, %v", m, err)
	}
}
