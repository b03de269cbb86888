package server

import (
	"time"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// schedule is one of a project's time tables as the API shows it.
type schedule struct {
	Cron     string  `json:"cron"`
	Timezone string  `json:"timezone"`
	Branch   string  `json:"branch"`
	NextAt   ci.Time `json:"next_at"`  // null: never
	LastRun  string  `json:"last_run"` // id of the newest run that it started, "" for none
}

// schedules returns a project's time tables in the order of the configuration.
func (s *Server) schedules(p *ci.Project, now time.Time) ([]schedule, error) {
	list := []schedule{}
	if len(p.On.Schedule) == 0 {
		return list, nil
	}
	records, err := s.store.Slots(p.Name)
	if err != nil {
		return nil, err
	}
	for _, sch := range p.On.Schedule {
		tt, err := pipeline.NewTimetable(sch)
		if err != nil {
			return nil, err
		}
		out := schedule{Cron: sch.Cron, Timezone: sch.Zone(), Branch: pipeline.ScheduleBranch(p, sch)}
		var rec *ci.SlotRecord
		if r, ok := records[store.SlotKey{Project: p.Name, Key: sch.Key()}]; ok {
			rec, out.LastRun = &r, r.Run
		}
		if _, err := s.store.Run(out.LastRun); err != nil {
			out.LastRun = "" // retention took it
		}
		out.NextAt = ci.At(tt.Look(rec, now).Next)
		list = append(list, out)
	}
	return list, nil
}

// scheduleRows is schedules for a page.
func (s *Server) scheduleRows(p *ci.Project, now time.Time) ([]web.Schedule, error) {
	list, err := s.schedules(p, now)
	rows := make([]web.Schedule, len(list))
	for i, sch := range list {
		rows[i] = web.Schedule{Cron: sch.Cron, Timezone: sch.Timezone, Branch: sch.Branch, NextAt: sch.NextAt, LastRun: sch.LastRun}
		if zone, err := pipeline.ParseZone(p.On.Schedule[i].Timezone); err == nil && !sch.NextAt.IsZero() {
			rows[i].Next = sch.NextAt.In(zone).Format(ci.SlotLayout)
		}
	}
	return rows, err
}
