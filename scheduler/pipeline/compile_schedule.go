package pipeline

import "docket/store/ci"

// CompileSchedule freezes the run of a schedule's slot, which is a local time
// as ci.SlotLayout has it. It is Preparing until its branch is resolved, and
// no other run supersedes it.
func CompileSchedule(cfg *ci.Config, p *ci.Project, s ci.Schedule, slot string) ci.Draft {
	d := draft(cfg, p)
	branch := ScheduleBranch(p, s)
	d.State, d.Job = ci.Preparing, &ci.Job{Resolve: true, Pipeline: p.Pipeline}
	d.Cause = ci.Cause{Kind: ci.CauseSchedule, Event: ci.EventSchedule, Slot: slot + " " + s.Zone()}
	d.Source = ci.Source{Repository: p.Repository, RepositoryID: p.RepositoryID, Ref: "refs/heads/" + branch, Branch: branch}
	d.Inputs = inputs(p, nil)
	d.Context = ci.StatusContext(p.Name, ci.EventSchedule)
	d.Title = title("schedule " + s.Cron)
	d.Group = group(p, d.Source.Ref)
	d.Schedule = s.Key()
	return d
}

// ScheduleBranch is the branch that a project's schedule builds.
func ScheduleBranch(p *ci.Project, s ci.Schedule) string {
	if s.Branch == "" {
		return p.DefaultBranch
	}
	return s.Branch
}
