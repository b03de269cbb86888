package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func mustTimetable(t rapid.TB, s ci.Schedule) *pipeline.Timetable {
	t.Helper()
	tt, err := pipeline.NewTimetable(s)
	if err != nil {
		t.Fatal(err)
	}
	return tt
}

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// wheel is one schedule under a clock that a test moves.
type wheel struct {
	t    rapid.TB
	tt   *pipeline.Timetable
	rec  *ci.SlotRecord
	look pipeline.Look
	ran  []string // each slot with the instant of its run
}

func (w *wheel) at(now time.Time) {
	w.t.Helper()
	w.look = w.tt.Look(w.rec, now)
	if !w.look.Record.Valid() {
		w.t.Fatalf("at %s: record %+v", now, w.look.Record)
	}
	if !w.look.Next.IsZero() && !w.look.Next.After(now) {
		w.t.Fatalf("at %s the next slot is at %s", now, w.look.Next)
	}
	rec := w.look.Record
	w.rec = &rec
	if w.look.Slot != "" {
		w.ran = append(w.ran, w.look.Slot+" at "+now.UTC().Format("02T15:04Z"))
	}
}

// walk moves the clock from one instant to another in steps.
func (w *wheel) walk(from, to time.Time, step time.Duration) {
	for now := from; !now.After(to); now = now.Add(step) {
		w.at(now)
	}
}

// Ensure that over both clock changes of a year each slot runs once: one that
// is left out at the next minute there is, one that comes twice the first time.
func TestTimetable_ClockChanges(t *testing.T) {
	for _, c := range []struct {
		cron, from, to string
		want           []string
	}{
		{"30 1 * * *", "2027-03-13T12:00:00Z", "2027-03-15T12:00:00Z", []string{"2027-03-14 01:30 at 14T06:30Z", "2027-03-15 01:30 at 15T05:30Z"}},
		{"30 2 * * *", "2027-03-13T12:00:00Z", "2027-03-15T12:00:00Z", []string{"2027-03-14 02:30 at 14T07:00Z", "2027-03-15 02:30 at 15T06:30Z"}},
		{"30 1 * * *", "2027-11-06T12:00:00Z", "2027-11-08T12:00:00Z", []string{"2027-11-07 01:30 at 07T05:30Z", "2027-11-08 01:30 at 08T06:30Z"}},
		{"30 2 * * *", "2027-11-06T12:00:00Z", "2027-11-08T12:00:00Z", []string{"2027-11-07 02:30 at 07T07:30Z", "2027-11-08 02:30 at 08T07:30Z"}},
		{"0 * * * *", "2027-03-14T05:30:00Z", "2027-03-14T08:30:00Z", []string{
			"2027-03-14 01:00 at 14T06:00Z", "2027-03-14 03:00 at 14T07:00Z", "2027-03-14 04:00 at 14T08:00Z",
		}},
		{"*/30 * * * *", "2027-11-07T04:45:00Z", "2027-11-07T07:30:00Z", []string{
			"2027-11-07 01:00 at 07T05:00Z", "2027-11-07 01:30 at 07T05:30Z", "2027-11-07 02:00 at 07T07:00Z", "2027-11-07 02:30 at 07T07:30Z",
		}},
	} {
		t.Run(c.cron+" from "+c.from, func(t *testing.T) {
			w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: c.cron, Timezone: "America/New_York"})}
			w.walk(instant(t, c.from), instant(t, c.to), time.Minute)
			if d := cmp.Diff(c.want, w.ran); d != "" {
				t.Error(d)
			}
			if w.look.Missed != "" || len(w.rec.Spans) != 1 {
				t.Errorf("%q was left out, %v", w.look.Missed, w.rec.Spans)
			}
		})
	}
}

// Ensure that the next slot is told as the instant at which it comes.
func TestTimetable_Next(t *testing.T) {
	for _, c := range []struct{ cron, zone, now, want string }{
		{"30 2 * * *", "America/New_York", "2027-03-14T06:00:00Z", "2027-03-14T07:00:00Z"},
		{"30 1 * * *", "America/New_York", "2027-11-07T05:30:00Z", "2027-11-08T06:30:00Z"},
		{"30 1 * * *", "America/New_York", "2027-11-07T06:10:00Z", "2027-11-08T06:30:00Z"},
		{"@daily", "", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"},
		{"0 12 * * *", "Pacific/Kiritimati", "2027-01-01T00:00:00Z", "2027-01-01T22:00:00Z"},
		{"0 12 * * *", "Asia/Kathmandu", "2027-01-01T00:00:00Z", "2027-01-01T06:15:00Z"},
		{"30 2 * * *", "Australia/Lord_Howe", "2027-10-02T15:00:00Z", "2027-10-02T15:30:00Z"}, // half an hour is left out
		{"0 0 29 2 *", "UTC", "2027-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 9 * * 1-5", "Europe/Berlin", "2027-01-01T09:00:00Z", "2027-01-04T08:00:00Z"},
	} {
		tt := mustTimetable(t, ci.Schedule{Cron: c.cron, Timezone: c.zone})
		l := tt.Look(nil, instant(t, c.now))
		if got := l.Next.UTC().Format(time.RFC3339); got != c.want || l.Slot != "" || !l.Changed {
			t.Errorf("%s in %s after %s: got %s, %+v, want %s", c.cron, c.zone, c.now, got, l, c.want)
		}
	}
}

// Ensure that a schedule which is seen for the first time begins with its next
// slot, also in the minute of one.
func TestTimetable_FirstSight(t *testing.T) {
	w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: "0 * * * *"})}
	w.walk(instant(t, "2027-01-01T10:00:30Z"), instant(t, "2027-01-01T11:59:00Z"), 10*time.Second)
	if d := cmp.Diff([]string{"2027-01-01 11:00 at 01T11:00Z"}, w.ran); d != "" {
		t.Error(d)
	}
}

// Ensure that after a time in which nobody looked only the newest slot runs,
// that what was left out is told, and that this is cheap however long it was.
func TestTimetable_Downtime(t *testing.T) {
	for _, c := range []struct{ cron, down, up, slot, missed string }{
		{"0 3 * * *", "2027-01-01T12:00:00Z", "2027-01-02T02:59:00Z", "", ""},
		{"0 3 * * *", "2027-01-01T12:00:00Z", "2027-01-02T09:00:00Z", "2027-01-02 03:00", ""},
		{"0 3 * * *", "2027-01-01T12:00:00Z", "2027-01-03T09:00:00Z", "2027-01-03 03:00", "the slot 2027-01-02 03:00 was left out"},
		{"0 3 * * *", "2027-01-01T12:00:00Z", "2027-01-11T09:00:00Z", "2027-01-11 03:00", "9 slots from 2027-01-02 03:00 on were left out"},
		{"* * * * *", "2027-01-01T12:00:00Z", "2047-01-01T12:00:00Z", "2047-01-01 12:00", "over 1000 slots from 2027-01-01 12:01 on were left out"},
		{"0 0 29 2 *", "2027-01-01T12:00:00Z", "2033-01-01T12:00:00Z", "2032-02-29 00:00", "the slot 2028-02-29 00:00 was left out"},
	} {
		w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: c.cron})}
		w.at(instant(t, c.down))
		w.at(instant(t, c.up))
		if w.look.Slot != c.slot || w.look.Missed != c.missed {
			t.Errorf("%s from %s to %s: got %q, %q", c.cron, c.down, c.up, w.look.Slot, w.look.Missed)
		}
		w.at(instant(t, c.up))
		if w.look.Slot != "" || w.look.Changed {
			t.Errorf("%s: a second look has %+v", c.cron, w.look)
		}
	}
}

// Ensure that a clock which is set back runs no slot twice and waits for the
// next one, and that one which was ahead leaves out only what it left out.
func TestTimetable_ClockSetBack(t *testing.T) {
	w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: "0 * * * *"})}
	minute := func(from, to string) {
		w.walk(instant(t, "2027-01-01T"+from+":00Z"), instant(t, "2027-01-01T"+to+":00Z"), time.Minute)
	}
	minute("07:30", "10:15")
	minute("09:15", "11:10") // an hour back
	minute("20:05", "21:05") // hours ahead, as after a start with a wrong clock
	minute("11:11", "22:05") // and right again
	want := []string{
		"2027-01-01 08:00 at 01T08:00Z", "2027-01-01 09:00 at 01T09:00Z", "2027-01-01 10:00 at 01T10:00Z",
		"2027-01-01 11:00 at 01T11:00Z", "2027-01-01 20:00 at 01T20:05Z", "2027-01-01 21:00 at 01T21:00Z",
	}
	for h := 12; h < 20; h++ {
		want = append(want, fmt.Sprintf("2027-01-01 %d:00 at 01T%d:00Z", h, h))
	}
	want = append(want, "2027-01-01 22:00 at 01T22:00Z")
	if d := cmp.Diff(want, w.ran); d != "" {
		t.Error(d)
	}
}

// Ensure that a schedule which was taken out of the configuration and comes
// back does not catch up, and runs nothing twice.
func TestTimetable_GoneAndBack(t *testing.T) {
	w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: "0 * * * *"})}
	w.walk(instant(t, "2027-01-01T09:30:00Z"), instant(t, "2027-01-01T10:10:00Z"), time.Minute)
	gone := *w.rec
	gone.GoneAt = ci.At(instant(t, "2027-01-01T10:11:00Z"))
	for _, back := range []string{"2027-01-01T09:40:00Z", "2027-01-01T13:30:00Z"} {
		rec := gone
		w.rec, w.ran = &rec, nil
		w.at(instant(t, back))
		if !w.look.Changed || !w.look.Record.GoneAt.IsZero() {
			t.Errorf("back at %s: %+v", back, w.look)
		}
		w.walk(instant(t, back), instant(t, back).Add(29*time.Minute), time.Minute)
		if len(w.ran) > 0 {
			t.Errorf("back at %s: ran %v", back, w.ran)
		}
	}
}

// Ensure that no slot runs twice, whatever the machine's clock does.
func TestTimetable_NeverTwice(t *testing.T) {
	zones := []string{"", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"}
	crons := []string{"* * * * *", "*/7 * * * *", "30 1 * * *", "30 2 * * *", "0 */3 * * *", "15 2 * * 0", "@hourly", "@daily"}
	rapid.Check(t, func(t *rapid.T) {
		s := ci.Schedule{Cron: rapid.SampledFrom(crons).Draw(t, "cron"), Timezone: rapid.SampledFrom(zones).Draw(t, "zone")}
		w := &wheel{t: t, tt: mustTimetable(t, s)}
		start := rapid.SampledFrom([]string{"2027-03-14T05:00:00Z", "2027-11-07T04:00:00Z", "2027-03-28T00:00:00Z", "2011-12-29T08:00:00Z"}).Draw(t, "start")
		now, _ := time.Parse(time.RFC3339, start)
		seen := map[string]bool{}
		for range rapid.IntRange(10, 200).Draw(t, "looks") {
			w.at(now)
			if slot := w.look.Slot; slot != "" {
				if seen[slot] {
					t.Fatalf("slot %s runs a second time, at %s", slot, now)
				}
				seen[slot] = true
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{
				time.Second, time.Minute, 29 * time.Minute, time.Hour, 5 * time.Hour, 50 * time.Hour,
				-time.Minute, -time.Hour, -7 * time.Hour, -60 * time.Hour,
			}).Draw(t, "step"))
		}
	})
}

// Ensure that a clock that only goes on runs every slot that is not at one
// instant with a newer one, under random waits that are short enough.
func TestTimetable_LosesNone(t *testing.T) {
	w := &wheel{t: t, tt: mustTimetable(t, ci.Schedule{Cron: "*/15 * * * *", Timezone: "Europe/Berlin"})}
	begin := instant(t, "2027-03-27T23:07:00Z")
	for now := begin; now.Before(begin.Add(48 * time.Hour)); now = now.Add(time.Duration(1+rand.IntN(840)) * time.Second) {
		w.at(now)
	}
	w.at(begin.Add(48 * time.Hour))
	if want := 4 * 48; len(w.ran) != want {
		t.Errorf("%d slots ran, want %d:\n%s", len(w.ran), want, strings.Join(w.ran, "\n"))
	}
}

// Ensure that the run of a slot builds its branch's head, is never superseded
// and names its slot.
func TestCompileSchedule(t *testing.T) {
	cfg, p := config()
	s := ci.Schedule{Cron: "30 2 * * *", Timezone: "America/New_York"}
	d := pipeline.CompileSchedule(cfg, p, s, "2027-03-14 02:30")
	if d.Cause != (ci.Cause{Kind: ci.CauseSchedule, Event: ci.EventSchedule, Slot: "2027-03-14 02:30 America/New_York"}) {
		t.Errorf("cause %+v", d.Cause)
	}
	if d.State != ci.Preparing || d.Job == nil || !d.Job.Resolve || d.Source.Commit != "" || d.Source.Ref != "refs/heads/"+p.DefaultBranch {
		t.Errorf("%s, %+v, %+v", d.State, d.Job, d.Source)
	}
	if d.Scope != "" || d.Context != "docket/"+p.Name || d.Schedule != s.Key() || d.Title != "schedule 30 2 * * *" {
		t.Errorf("%q, %q, %q, %q", d.Scope, d.Context, d.Schedule, d.Title)
	}
	s.Branch = "release/1"
	if d := pipeline.CompileSchedule(cfg, p, s, "2027-03-14 02:30"); d.Source.Branch != "release/1" || d.Source.Ref != "refs/heads/release/1" {
		t.Errorf("%+v", d.Source)
	}
}

// Ensure that the key tells schedules apart by each of their parts.
func TestScheduleKey(t *testing.T) {
	seen := map[string]ci.Schedule{}
	for _, s := range []ci.Schedule{{Cron: "a"}, {Cron: "a", Timezone: "b"}, {Cron: "a", Branch: "b"}, {Cron: "ab"}} {
		if other, twice := seen[s.Key()]; twice {
			t.Errorf("%+v and %+v have one key", s, other)
		}
		seen[s.Key()] = s
	}
}
