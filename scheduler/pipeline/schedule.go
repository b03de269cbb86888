package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"docket/store/ci"
)

// Timetable says when the slots of a schedule are. A slot is a local minute of
// the schedule's zone, and comes once:
//
//   - a local time that a clock change leaves out comes at the next minute
//     there is; where several fall together the newest counts for all of them;
//   - one that a clock change brings twice comes the first time;
//   - of slots that were missed only the newest still comes;
//   - a slot that had its run has no other, however the machine's clock goes.
type Timetable struct {
	schedule ci.Schedule
	spec     *cron.SpecSchedule
	zone     *time.Location
}

// NewTimetable reads a schedule. Its error is CodeInvalid; the configuration
// has seen to it that there is none.
func NewTimetable(s ci.Schedule) (*Timetable, error) {
	spec, err := ParseCron(s.Cron)
	if err != nil {
		return nil, invalid("cron %q %s", s.Cron, ci.MessageOf(err))
	}
	zone, err := ParseZone(s.Timezone)
	if err != nil {
		return nil, invalid("timezone %q %s", s.Timezone, ci.MessageOf(err))
	}
	return &Timetable{schedule: s, spec: spec, zone: zone}, nil
}

// Look is what a schedule needs at one time.
type Look struct {
	// Record is how far the schedule has come afterwards. Changed says that it
	// is not what it was.
	Record  ci.SlotRecord
	Changed bool
	// Slot is the one to run now, "" for none.
	Slot string
	// Missed says which slots before it are left out, "" for none.
	Missed string
	// Next is when the next slot comes; zero if none ever does.
	Next time.Time
}

// Look decides what a schedule needs at now. rec is how far it has come, nil
// when it is seen for the first time: then its next slot is its first.
func (tt *Timetable) Look(rec *ci.SlotRecord, now time.Time) Look {
	here := tt.reached(now)
	l := Look{Record: ci.SlotRecord{Schedule: tt.schedule}}
	if rec != nil {
		l.Record.Spans, l.Record.Run = slices.Clone(rec.Spans), rec.Run
	}
	at := current(l.Record.Spans, text(here))
	gone := rec != nil && !rec.GoneAt.IsZero() // it is back; what would have run meanwhile does not
	if at < 0 || gone && l.Record.Spans[at].To < text(here) {
		at++
		l.Record.Spans = slices.Insert(l.Record.Spans, at, ci.SlotSpan{From: text(here), To: text(here)})
		l.Changed = true
	}
	l.Changed = l.Changed || gone
	at = tt.settle(&l, at, here)
	if over := len(l.Record.Spans) - ci.MaxSpans; over > 0 { // at one look it is one
		l.Record.Spans[1].From = l.Record.Spans[0].From
		l.Record.Spans = l.Record.Spans[1:]
		at = max(at-1, 0)
	}
	l.Next = tt.next(l.Record.Spans[at:])
	return l
}

// current returns which span a local time is in or after, -1 for none: those
// behind it are of a time when the machine's clock was ahead.
func current(spans []ci.SlotSpan, here string) int {
	at := len(spans) - 1
	for at >= 0 && spans[at].From > here {
		at--
	}
	return at
}

// settle finds the slot that is due and those that are left out before it. It
// returns which span is the current one then.
func (tt *Timetable) settle(l *Look, at int, here time.Time) int {
	after := wall(l.Record.Spans[at].To)
	due, ok := tt.newest(after, here)
	if !ok {
		return at
	}
	l.Slot, l.Changed = text(due), true
	if l.Missed = tt.missed(after, due); l.Missed == "" {
		l.Record.Spans[at].To = l.Slot
		return at
	}
	l.Record.Spans = slices.Insert(l.Record.Spans, at+1, ci.SlotSpan{From: l.Slot, To: l.Slot})
	return at + 1
}

// maxMissed bounds how many left out slots are counted.
const maxMissed = 1000

// missed says which slots after one time and before another are left out.
func (tt *Timetable) missed(after, due time.Time) string {
	at, first, n := tt.at(due), time.Time{}, 0
	for t, ok := tt.after(after); ok && t.Before(due) && n <= maxMissed && tt.at(t).Before(at); t, ok = tt.after(t) {
		if n++; n == 1 {
			first = t
		}
	}
	switch {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("the slot %s was left out", text(first))
	case n > maxMissed:
		return fmt.Sprintf("over %d slots from %s on were left out", maxMissed, text(first))
	}
	return fmt.Sprintf("%d slots from %s on were left out", n, text(first))
}

// next returns when the first slot comes that is after the first of these
// spans and in none of the others.
func (tt *Timetable) next(spans []ci.SlotSpan) time.Time {
	t, ok := tt.after(wall(spans[0].To))
	for _, ahead := range spans[1:] {
		if !ok || text(t) < ahead.From {
			break
		}
		t, ok = tt.after(wall(ahead.To))
	}
	if !ok {
		return time.Time{}
	}
	return tt.at(t)
}

// A local time is kept as if it were UTC: it counts on through every clock
// change, and says nothing about an instant until at turns it into one.

func text(wall time.Time) string { return wall.Format(ci.SlotLayout) }

func wall(text string) time.Time {
	t, _ := time.Parse(ci.SlotLayout, text)
	return t
}

// reached returns the newest local time that has come at an instant: what the
// clock shows, or where an hour comes twice the end of what came the first time.
func (tt *Timetable) reached(now time.Time) time.Time {
	l := now.In(tt.zone)
	here := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	for range 24 * 60 {
		later := here.Add(time.Minute)
		if tt.at(later).After(now) {
			break
		}
		here = later
	}
	return here
}

// at returns the first instant at which the zone's clock shows a local time or
// a later one.
func (tt *Timetable) at(wall time.Time) time.Time {
	t := wall.Add(-48 * time.Hour).In(tt.zone) // no zone is further from UTC
	for {
		start, end := t.ZoneBounds()
		_, offset := t.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		switch {
		case !start.IsZero() && at.Before(start):
			return start.UTC()
		case end.IsZero() || at.Before(end):
			return at
		}
		t = end
	}
}

// after returns the first slot after a local time.
func (tt *Timetable) after(wall time.Time) (time.Time, bool) {
	for range 3 { // it looks five years ahead; 29 February can be eight away
		if t := tt.spec.Next(wall); !t.IsZero() {
			return t, true
		}
		wall = wall.AddDate(4, 0, 0)
	}
	return time.Time{}, false
}

// newest returns the last slot after one local time and up to another. It
// looks back from there in growing steps, so that a long absence is cheap.
func (tt *Timetable) newest(after, upTo time.Time) (slot time.Time, ok bool) {
	if !upTo.After(after) {
		return slot, false
	}
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 400 * 24 * time.Hour, 1 << 62} {
		from := upTo.Add(-back)
		if back == 1<<62 || from.Before(after) {
			from = after
		}
		for t, more := tt.after(from); more && !t.After(upTo); t, more = tt.after(t) {
			slot, ok = t, true
		}
		if ok || from.Equal(after) {
			return slot, ok
		}
	}
	return slot, ok
}
