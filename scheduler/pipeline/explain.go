package pipeline

import (
	"docket/store/ci"
)

// Explain says what Judge decided and why. err is Judge's: where it refused
// the event the explanation does, with its text.
func Explain(e *ci.Event, receipt string, j *Judgement, err error) ci.Explanation {
	x := ci.Explanation{
		Receipt: receipt, Event: e.Kind, Action: e.Action, Repository: e.Repository, Ref: e.Ref, Commit: e.Commit,
		Outcome: ci.Ignored, Reason: j.Reason, Projects: append([]ci.Ruling{}, j.Rulings...),
	}
	switch {
	case err != nil:
		x.Outcome, x.Reason = ci.Refused, ci.MessageOf(err)
	case len(j.Drafts) > 0 || len(j.Reruns) > 0:
		x.Outcome = ci.Accepted
	}
	for i := range j.Drafts {
		d := &j.Drafts[i]
		for k := range x.Projects {
			if x.Projects[k].Project == d.Project {
				x.Projects[k].Run = planned(d)
			}
		}
	}
	return x
}

func planned(d *ci.Draft) *ci.Planned {
	p := &ci.Planned{
		State: d.State, Held: d.Fork && !d.Skip, Skipped: d.Skip, Context: d.Context, Ref: d.Source.Ref, Commit: d.Source.Commit,
		Scope: d.Scope, Supersede: d.Supersede, Group: d.Group,
	}
	for _, s := range d.Spec.Steps {
		p.Steps = append(p.Steps, s.Name)
	}
	if job := d.Job; job != nil {
		p.Pipeline = job.Pipeline
		if job.Resolve {
			p.Commit = ""
		}
	}
	return p
}
