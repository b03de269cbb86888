package pipeline

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// maxTitle bounds what a run keeps of a commit message or a title, in bytes.
const maxTitle = 200

// SpecOf freezes how the project's runs are carried out now. It shares no
// memory with the configuration.
func SpecOf(cfg *ci.Config, p *ci.Project) ci.Spec {
	s := ci.Spec{
		Version:  1,
		CloneURL: p.CloneURL,
		Git:      p.Git,
		Timeout:  ci.Duration(p.Timeout),
		Grace:    ci.Duration(p.Grace),
		Env:      maps.Clone(p.Env),
		Secrets:  slices.Sorted(maps.Keys(p.Secrets)),
		Steps:    slices.Clone(p.Steps),
	}
	if s.Steps == nil {
		s.Steps = []ci.Step{} // to be read from the repository
	}
	if in := cfg.Integration(p.Integration); in != nil {
		s.Report = in.Reports()
		if s.Report {
			s.Reporter = reporter(in)
		}
	}
	for _, n := range p.Notify {
		s.Notify = append(s.Notify, ci.NotifyTarget{Kind: n.Kind, Target: n.Target, Events: slices.Clone(n.Events)})
	}
	return s
}

// reporter returns the kind of outbox entry that tells the provider of a run;
// "" stands for GitHub's commit statuses.
func reporter(in *ci.Integration) string {
	switch {
	case in.Provider == ci.ProviderGitea:
		return ci.OutboxGiteaStatus
	case in.Report == ci.ReportChecks:
		return ci.OutboxGitHubCheck
	}
	return ""
}

// Compile freezes the run that an event starts once Match says yes. It is
// Queued; a fork's is Held; where a ref is to be resolved, a tag to be peeled,
// git to be asked for the changed files or the pipeline file to be read it is
// Preparing, and afterwards Held if Fork is set. Declared inputs have their
// defaults.
func Compile(cfg *ci.Config, p *ci.Project, e *ci.Event, receipt string) ci.Draft {
	return compile(cfg, p, e, receipt, match(p, e))
}

func compile(cfg *ci.Config, p *ci.Project, e *ci.Event, receipt string, m matched) ci.Draft {
	d := eventDraft(cfg, p, e, receipt)
	job := ci.Job{Resolve: e.Peel || e.Resolve, Pipeline: p.Pipeline}
	if m.ask {
		job.Paths, job.PathsKey, job.OnSkip, job.Base = &m.paths, m.key, p.OnSkip, p.DefaultBranch
		if e.PullRequest != nil {
			job.Base = e.PullRequest.Base
		}
	}
	switch {
	case job != ci.Job{}:
		d.State, d.Job = ci.Preparing, &job
	case d.Fork:
		d.State = ci.Held
	}
	return d
}

// compileSkip freezes what says that a filter keeps an event's run from
// running; see ci.Draft.
func compileSkip(cfg *ci.Config, p *ci.Project, e *ci.Event, receipt string, m matched) ci.Draft {
	d := eventDraft(cfg, p, e, receipt)
	d.State, d.Skip, d.Reason, d.Scope = ci.Cancelled, true, Skipped(m.reason), ""
	return d
}

// Skipped is the reason of a run that a filter keeps from running.
func Skipped(reason string) string { return "skipped: " + reason }

// CompileHead freezes the run of a head that no delivery told of: e is the
// push or the pull request that would have told of it. The run has the scope,
// the context and the rules for forks of that event's.
func CompileHead(cfg *ci.Config, p *ci.Project, e *ci.Event) ci.Draft {
	d := Compile(cfg, p, e, "")
	d.Cause.Kind = ci.CauseRecovery
	return d
}

func eventDraft(cfg *ci.Config, p *ci.Project, e *ci.Event, receipt string) ci.Draft {
	d := draft(cfg, p)
	if in := cfg.Integration(p.Integration); in != nil && in.App != nil && e.Installation != 0 {
		d.Installation = e.Installation
	}
	d.Cause = ci.Cause{Kind: ci.CauseDelivery, Receipt: receipt, Event: e.Kind, Action: e.Action, Actor: e.Actor}
	d.Source = ci.Source{
		Repository:   e.Repository.FullName,
		RepositoryID: e.Repository.ID,
		Ref:          e.Ref,
		Branch:       e.Branch,
		Tag:          e.Tag,
		Commit:       e.Commit,
		Before:       e.Before,
	}
	if d.Source.Repository == "" {
		d.Source.Repository = p.Repository
	}
	if e.PullRequest != nil {
		pr := *e.PullRequest
		pr.Title = title(pr.Title)
		d.Source.PullRequest = &pr
		d.Fork = pr.Fork
	}
	d.Inputs = inputs(p, nil)
	d.Context = ci.StatusContext(p.Name, e.Kind)
	d.Scope = Scope(p.Name, e)
	d.Title = title(e.Message)
	d.Group = group(p, d.Source.Ref)
	return d
}

// group returns the concurrency group of a project's runs of a ref. No part
// holds a space but the last, so no two groups are one text.
func group(p *ci.Project, ref string) string {
	if p.Concurrency.Group == "" || !p.Concurrency.PerRef {
		return p.Concurrency.Group
	}
	return p.Concurrency.Group + " " + p.Name + " " + ref
}

// CompileRequest freezes the run that a normalized request asks for. It is
// Queued if the request names the commit and nothing is to be read from the
// repository, else Preparing. No other run supersedes it.
func CompileRequest(cfg *ci.Config, p *ci.Project, n Normalized, by ci.By) ci.Draft {
	d := draft(cfg, p)
	d.Cause = ci.Cause{Kind: ci.CauseRequest, Event: ci.EventManual, Actor: by.Name, Reason: n.Reason}
	d.Source = ci.Source{
		Repository:   p.Repository,
		RepositoryID: p.RepositoryID,
		Ref:          n.Ref(),
		Branch:       n.Branch,
		Tag:          n.Tag,
		Commit:       n.Commit,
	}
	d.Inputs = inputs(p, n.Inputs)
	d.Context = ci.StatusContext(p.Name, ci.EventManual)
	d.Title = title(n.Reason)
	d.Group = group(p, d.Source.Ref)
	if n.Commit == "" || p.Pipeline != "" {
		d.State, d.Job = ci.Preparing, &ci.Job{Resolve: n.Commit == "", Pipeline: p.Pipeline}
	}
	return d
}

func draft(cfg *ci.Config, p *ci.Project) ci.Draft {
	d := ci.Draft{
		Project:     p.Name,
		Integration: p.Integration,
		State:       ci.Queued,
		Spec:        SpecOf(cfg, p),
		Supersede:   p.Supersede,
		HoldFor:     p.HoldTimeout,
	}
	if in := cfg.Integration(p.Integration); in != nil && in.App != nil && len(in.Installations) == 1 {
		d.Installation = in.Installations[0]
	}
	if d.Supersede == "" {
		d.Supersede = ci.SupersedePending
	}
	return d
}

// inputs returns a value for every declared input.
func inputs(p *ci.Project, given map[string]string) map[string]string {
	values := make(map[string]string, len(p.Inputs))
	for _, in := range p.Inputs {
		values[in.Name] = in.Default
		if v, ok := given[in.Name]; ok {
			values[in.Name] = v
		}
	}
	return values
}

// title returns the first line of s, cut to what a run keeps.
func title(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = strings.TrimSpace(s)
	if len(s) <= maxTitle {
		return s
	}
	n := maxTitle - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
