package web

import (
	"strings"
	"time"

	"docket/store/ci"
)

// Live parts of the overview.
const (
	PartActive   = "active"   // running and waiting runs
	PartProjects = "projects" // cards with heads and history
)

// Overview is the page at /: is it green, and what is it doing now.
type Overview struct {
	Chrome
	Projects []ProjectCard
	Running  []RunRow
	Waiting  []RunRow // preparing, held and queued, the oldest first
	// MoreWaiting counts the waiting runs that are not shown.
	MoreWaiting int
	// Setup is shown in place of an empty page until the first green run; nil
	// after that, and to those who cannot set anything up.
	Setup *FirstSteps
}

func (*Overview) template() string { return "overview" }

// Parts names the live parts.
func (*Overview) Parts() []string { return []string{PartBanners, PartActive, PartProjects} }

// ProjectCard is a project at a glance.
type ProjectCard struct {
	Name       string
	Repository string
	Public     bool
	Heads      []Head // the default branch first, then the newest
	MoreHeads  int    // heads that are not shown
	History    []Bar  // the oldest first; the last 40 are drawn
}

// Head is the state of a branch: its newest run that speaks for it.
type Head struct {
	Branch  string
	Default bool
	Run     string
	State   ci.State
	Commit  string
	Title   string // of the commit, "" if unknown
	At      ci.Time
}

// Bar is one run in a strip of history.
type Bar struct {
	Run      string
	State    ci.State
	Duration time.Duration // 0 for one that never ran; so far for a running one
	At       ci.Time
}

// NewBar draws a run; now counts for one that is still running.
func NewBar(r ci.Run, now time.Time) Bar {
	b := Bar{Run: r.ID, State: r.State, At: r.CreatedAt}
	b.Duration = duration(r.StartedAt, r.FinishedAt, now)
	return b
}

// RunRow is a run as a line of a list.
type RunRow struct {
	ID      string
	Project string
	Number  uint64
	State   ci.State
	Reason  string
	Title   string // first line of the commit or title of the pull request
	Ref     RefLabel
	Commit  string
	Cause   string // delivery, request, rerun, replay, schedule
	Event   string // of a delivery
	Actor   string
	Fork    bool
	Step    string // the step that it is at
	// SupersededBy is the run that took its place.
	SupersededBy string
	CreatedAt    ci.Time
	StartedAt    ci.Time
	FinishedAt   ci.Time
}

// RefLabel is a branch, a tag or a pull request, for showing.
type RefLabel struct {
	Kind   string // "branch", "tag", "pull" or "ref"
	Name   string // short name; for a pull request the head branch
	Number int    // of a pull request
}

// NewRefLabel names what a run builds.
func NewRefLabel(s ci.Source) RefLabel {
	switch {
	case s.PullRequest != nil:
		return RefLabel{Kind: "pull", Name: s.PullRequest.Head, Number: s.PullRequest.Number}
	case s.Tag != "":
		return RefLabel{Kind: "tag", Name: s.Tag}
	case s.Branch != "":
		return RefLabel{Kind: "branch", Name: s.Branch}
	}
	return RefLabel{Kind: "ref", Name: s.Ref}
}

// NewRunRow makes the line of a run.
func NewRunRow(r ci.Run) RunRow {
	row := RunRow{
		ID: r.ID, Project: r.Project, Number: r.Number, State: r.State, Reason: r.ReasonLine(), Title: r.Internal.Title,
		Ref: NewRefLabel(r.Source), Commit: r.Source.Commit, Cause: r.Cause.Kind, Event: r.Cause.Event,
		Actor: r.Cause.Actor, Fork: r.Fork, SupersededBy: r.SupersededBy,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if row.Title == "" && r.Source.PullRequest != nil {
		row.Title = r.Source.PullRequest.Title
	}
	for _, s := range r.Steps {
		if s.State == ci.StepRunning {
			row.Step = s.Name
		}
	}
	return row
}

// NewRunRows makes the lines of runs.
func NewRunRows(runs []ci.Run) []RunRow {
	rows := make([]RunRow, 0, len(runs))
	for _, r := range runs {
		rows = append(rows, NewRunRow(r))
	}
	return rows
}

// ActiveText counts what is going on.
func (p *Overview) ActiveText() string {
	var parts []string
	if n := len(p.Running); n > 0 {
		parts = append(parts, countText(n)+" running")
	}
	if n := len(p.Waiting) + p.MoreWaiting; n > 0 {
		parts = append(parts, countText(n)+" waiting")
	}
	return strings.Join(parts, ", ")
}

// List and Heads give rows the time that their ages are counted from.
func (p *Overview) List(rows []RunRow) runList  { return runList{rows, p.Now} }
func (p *Overview) Heads(heads []Head) headList { return headList{heads, p.Now} }
