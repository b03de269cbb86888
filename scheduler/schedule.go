package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// keepGone is how long a schedule that the configuration has no more is
// remembered, so that none of its slots runs again if it comes back.
const keepGone = 30 * 24 * time.Hour

// clockwork is what the scan remembers of the schedules from look to look. It
// saves looking, and decides nothing.
type clockwork struct {
	cfg      *ci.Config
	tables   map[store.SlotKey]timetable
	from, to time.Time // nothing is to be done between these; no to: ever after
}

func (c *clockwork) quiet(cfg *ci.Config, now time.Time) bool {
	return c.cfg == cfg && !c.from.IsZero() && !now.Before(c.from) && (c.to.IsZero() || now.Before(c.to))
}

// timetable is one schedule of a project.
type timetable struct {
	*pipeline.Timetable
	project  *ci.Project
	schedule ci.Schedule
}

// runSchedules starts the runs of the slots that are due. It returns when the
// next slot comes, zero for never. While runs are paused no slot is settled:
// afterwards the newest is made good, as after a time without docket.
func (s *Scheduler) runSchedules(ctx context.Context) (next time.Time, err error) {
	now, cfg := s.Now().Round(0), s.Config() // by the clock on the wall: it may be set back
	if s.clock.quiet(cfg, now) {
		return s.clock.to, nil
	}
	if s.clock.cfg != cfg {
		if s.clock, err = newClockwork(cfg); err != nil {
			return next, err
		}
	}
	s.clock.from = time.Time{}
	if len(s.clock.tables) > 0 {
		if p, err := s.Store.Pauses(); err != nil || p.Runs != nil {
			return next, err
		}
	}
	records, err := s.Store.Slots("")
	if err != nil {
		return next, err
	}
	var errs []error
	for key, tt := range s.clock.tables {
		var before *ci.SlotRecord
		if rec, ok := records[key]; ok {
			before = &rec
		}
		look := tt.Look(before, now)
		if look.Changed {
			errs = append(errs, s.settleSlot(ctx, cfg, key, tt, before, look))
		}
		if !look.Next.IsZero() && (next.IsZero() || look.Next.Before(next)) {
			next = look.Next
		}
	}
	for key, rec := range records {
		if _, configured := s.clock.tables[key]; !configured {
			errs = append(errs, s.forgetSchedule(ctx, key, rec, now))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return next, err
	}
	s.clock.from, s.clock.to = now, next
	return next, nil
}

// newClockwork reads every schedule of a configuration.
func newClockwork(cfg *ci.Config) (clockwork, error) {
	c := clockwork{tables: map[store.SlotKey]timetable{}}
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		for _, sch := range p.On.Schedule {
			tt, err := pipeline.NewTimetable(sch)
			if err != nil {
				return c, fmt.Errorf("schedule of project %s: %w", p.Name, err)
			}
			c.tables[store.SlotKey{Project: p.Name, Key: sch.Key()}] = timetable{tt, p, sch}
		}
	}
	c.cfg = cfg
	return c, nil
}

// settleSlot writes what a look decided.
func (s *Scheduler) settleSlot(ctx context.Context, cfg *ci.Config, key store.SlotKey, tt timetable, before *ci.SlotRecord, look pipeline.Look) error {
	st := store.Settlement{SlotKey: key, Before: before, After: &look.Record}
	if look.Slot != "" {
		d := pipeline.CompileSchedule(cfg, tt.project, tt.schedule, look.Slot)
		st.Draft = &d
	}
	if look.Missed != "" {
		st.Reason = fmt.Sprintf("schedule %q: %s, as docket was away or runs were paused; the newest, %s %s, runs",
			tt.schedule.Cron, look.Missed, look.Slot, tt.schedule.Zone())
	}
	run, done, err := s.Store.Settle(ctx, st)
	switch {
	case err != nil:
		return fmt.Errorf("schedule %q of project %s: %w", tt.schedule.Cron, key.Project, err)
	case !done:
		return fmt.Errorf("schedule %q of project %s was settled by another hand", tt.schedule.Cron, key.Project)
	case run.ID != "":
		s.Log.Info("a slot's run was made", keyRun, run.ID, keyProject, key.Project, keySlot, run.Cause.Slot, keyMissed, look.Missed)
	}
	return nil
}

// forgetSchedule marks a schedule that the configuration has no more, and
// drops it after a while.
func (s *Scheduler) forgetSchedule(ctx context.Context, key store.SlotKey, rec ci.SlotRecord, now time.Time) error {
	st := store.Settlement{SlotKey: key, Before: &rec}
	switch {
	case rec.GoneAt.IsZero():
		gone := rec
		gone.GoneAt = ci.At(now)
		st.After = &gone
	case now.Sub(rec.GoneAt.Time) < keepGone:
		return nil
	}
	_, _, err := s.Store.Settle(ctx, st)
	return err
}
