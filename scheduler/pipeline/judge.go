package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"docket/store/ci"
)

// Judgement is what an event leads to under one configuration.
type Judgement struct {
	Reason  string // why it starts nothing, "" where a run is started for certain
	Rulings []ci.Ruling
	Drafts  []ci.Draft // the runs it starts, and those that only say that they are skipped
	Reruns  []ci.Rerun
	Cancels []ci.Cancel
	Pin     []string // projects of its repository, to be pinned to its id
	// RefuseReplay: known bytes under a new delivery id are to be refused.
	RefuseReplay bool
	// Installation: the error is about the installation.
	Installation bool
}

// Judge decides what a verified event leads to, for each project of its
// repository. pins is the repository that each project is pinned to. It writes
// nothing.
//
// CodeForbidden: the installation or the repository is not one of ours.
func Judge(cfg *ci.Config, in *ci.Integration, e *ci.Event, receipt string, pins map[string]ci.Repository) (Judgement, error) {
	if err := allowInstallation(in, e); err != nil {
		return Judgement{Installation: true}, err
	}
	if e.Repository.FullName == "" && e.Repository.ID == 0 {
		return nowhere(cfg, in, e, pins), nil
	}
	projects, err := projectsOf(cfg, in, e.Repository, pins)
	if err != nil && e.Repository.FullName == "" {
		return Judgement{Reason: fmt.Sprintf("the payload names its repository by the id %d alone, and no project is bound to that", e.Repository.ID)}, nil
	}
	if err != nil {
		return Judgement{}, err
	}
	var j Judgement
	for _, p := range projects {
		j.rule(cfg, p, e, receipt)
	}
	if e.Check != nil && e.Problem == "" && e.Action == "rerequested" {
		j.rerun(in, e, receipt)
	}
	j.reason()
	return j, nil
}

// rule adds what one project makes of the event.
func (j *Judgement) rule(cfg *ci.Config, p *ci.Project, e *ci.Event, receipt string) {
	if e.Repository.ID != 0 && e.Repository.FullName != "" {
		j.Pin = append(j.Pin, p.Name)
	}
	m := match(p, e)
	r := ci.Ruling{Project: p.Name, Matches: m.starts, Reason: m.reason, Undecided: m.ask}
	if c, ok := Cancels(p, e); ok {
		j.Cancels = append(j.Cancels, c)
		r.Cancels = cancelled(&c)
	}
	switch {
	case m.starts:
		j.Drafts = append(j.Drafts, compile(cfg, p, e, receipt, m))
		j.RefuseReplay = j.RefuseReplay || p.Replays == ci.ReplaysRefuse
	case m.filtered && p.OnSkip == ci.OnSkipReport:
		j.Drafts = append(j.Drafts, compileSkip(cfg, p, e, receipt, m))
	}
	j.Rulings = append(j.Rulings, r)
}

// rerun adds what the owner of a check asks for by it.
func (j *Judgement) rerun(in *ci.Integration, e *ci.Event, receipt string) {
	why, run := foreignCheck(in, e), ""
	if why == "" && e.Kind == ci.EventCheckRun {
		run = e.Check.ExternalID
		project, _, err := ci.ParseRunID(run)
		switch ours := slices.ContainsFunc(j.Rulings, func(r ci.Ruling) bool { return r.Project == project }); {
		case err != nil:
			why = fmt.Sprintf("the check's external_id %q is no run's id, so the check is none of docket's", clip(run))
		case !ours:
			why = fmt.Sprintf("the check is run %s's, and %q is no project of this repository", clip(run), clip(project))
		}
	}
	var projects []string
	for i := range j.Rulings {
		r := &j.Rulings[i]
		project, _, _ := ci.ParseRunID(run)
		switch {
		case why != "":
			r.Reason = why
		case run != "" && r.Project != project:
			r.Reason = "the check is run " + run + "'s, which is not one of this project"
		case run != "":
			r.Matches, r.Reason, r.Reruns = true, "the check is run "+run+"'s", "run "+run+", if it has ended and is of commit "+e.Check.Commit
		default:
			r.Matches, r.Reason, r.Reruns = true, "the check suite is this integration's", "the newest run of each status context of commit "+e.Check.Commit
		}
		if r.Matches {
			projects = append(projects, r.Project)
		}
	}
	if why != "" || len(projects) == 0 {
		return
	}
	j.Reruns = append(j.Reruns, ci.Rerun{
		Integration: in.Name, Projects: projects, Commit: e.Check.Commit, Run: run,
		Cause: ci.Cause{Kind: ci.CauseRerun, Receipt: receipt, Event: e.Kind, Action: e.Action, Actor: e.Actor},
	})
}

// foreignCheck says why a check is not this integration's own, "" if it is.
func foreignCheck(in *ci.Integration, e *ci.Event) string {
	switch {
	case in.App == nil:
		return fmt.Sprintf("the integration %q is no GitHub App's, so no check is its own", in.Name)
	case e.Check.App != in.App.ID:
		return fmt.Sprintf("the check belongs to the App %d, and the integration %q is the App %d's", e.Check.App, in.Name, in.App.ID)
	}
	return ""
}

// reason puts the projects' reasons together where none starts a run for
// certain.
func (j *Judgement) reason() {
	for i := range j.Drafts {
		if !j.Drafts[i].Skip {
			return
		}
	}
	if len(j.Reruns) > 0 {
		return
	}
	var reasons []string
	for _, r := range j.Rulings {
		reasons = append(reasons, r.Project+": "+r.Reason)
	}
	if j.Reason = strings.Join(reasons, "; "); len(reasons) == 1 {
		j.Reason = j.Rulings[0].Reason
	}
}

// cancelled says what a Cancel ends.
func cancelled(c *ci.Cancel) string {
	if c.All {
		return "every run of the project that has not begun"
	}
	if c.PullRequest > 0 {
		return fmt.Sprintf("what events started for pull request #%d and has not begun", c.PullRequest)
	}
	return "what was started for " + c.Ref + " and has not begun"
}

// allowInstallation holds the payload's installation against the configured
// ones. Where none are configured, only a webhook without one is ours. Where
// some are, the integration is a GitHub App's: what names a repository must
// name its installation too. What names neither (the ping of a new App) can
// start nothing anyway and passes.
func allowInstallation(in *ci.Integration, e *ci.Event) error {
	switch {
	case e.Installation == 0 && (len(in.Installations) == 0 || e.Repository.FullName == "" && e.Repository.ID == 0):
		return nil
	case e.Installation == 0:
		return ci.Errorf(ci.CodeForbidden, "the payload names no installation, but the integration %q takes those of its GitHub App only; give a repository's own webhook an integration without `installations`", in.Name)
	case slices.Contains(in.Installations, e.Installation):
		return nil
	}
	return ci.Errorf(ci.CodeForbidden, "the installation %d is not one of the integration %q; add it to `installations` if it should be", e.Installation, in.Name)
}

// RepositoryID is the repository that a project is bound to: the configured
// id, else the one it was pinned to; 0 for not yet.
func RepositoryID(p *ci.Project, pin ci.Repository) int64 {
	if p.RepositoryID != 0 {
		return p.RepositoryID
	}
	return pin.ID
}

// projectsOf returns an integration's projects of a repository: by id where
// they are bound to one, else by name. A name that belongs to another id is
// refused for every project that is not bound: somebody else may hold it now.
func projectsOf(cfg *ci.Config, in *ci.Integration, r ci.Repository, pins map[string]ci.Repository) ([]*ci.Project, error) {
	var bound, unbound []*ci.Project
	var stranger *ci.Project
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		if p.Integration != in.Name {
			continue
		}
		id := RepositoryID(p, pins[p.Name])
		switch {
		case id != 0 && id == r.ID:
			bound = append(bound, p)
		case r.FullName == "" || !ci.SameRepository(p.Repository, r.FullName):
		case id != 0:
			stranger = p
		default:
			unbound = append(unbound, p)
		}
	}
	if stranger != nil {
		unbound = nil
	}
	switch {
	case len(bound)+len(unbound) > 0:
		return append(bound, unbound...), nil
	case stranger != nil && stranger.RepositoryID != 0:
		return nil, ci.Errorf(ci.CodeForbidden, "%s is now the repository with id %d, but the project %q is configured for id %d; change repository_id if that is meant", clip(r.FullName), r.ID, stranger.Name, stranger.RepositoryID)
	case stranger != nil:
		return nil, ci.Errorf(ci.CodeForbidden, "%s is now the repository with id %d, but the project %q is pinned to id %d; `docket projects repin %s` accepts the new one", clip(r.FullName), r.ID, stranger.Name, pins[stranger.Name].ID, stranger.Name)
	}
	return nil, ci.Errorf(ci.CodeForbidden, "the repository %q (id %d) belongs to no project of the integration %q; add a project for it, or remove this webhook", clip(r.FullName), r.ID, in.Name)
}
