package web

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"docket/store/ci"
)

// Ref is what it builds.
func (p *RunPage) Ref() RefLabel { return NewRefLabel(p.Run.Source) }

// SubjectText is the headline of what it builds.
func (p *RunPage) SubjectText() string {
	pr := p.Run.Source.PullRequest
	switch {
	case p.Subject != "":
		return p.Subject
	case p.Run.Internal.Title != "":
		return p.Run.Internal.Title
	case pr != nil:
		return pr.Title
	}
	return ""
}

// CauseText says what made it.
func (p *RunPage) CauseText() string {
	c := p.Run.Cause
	s := causeWords(c.Kind, c.Event)
	if c.Run != "" {
		s += " of " + c.Run
	}
	if c.Actor != "" && !p.Redacted {
		s += " by " + c.Actor
	}
	return s
}

// ReasonText says why it is as it is, where that is on record.
func (p *RunPage) ReasonText() string {
	if c := p.Run.CancelRequested; c != nil && !p.Run.State.Final() {
		return "It is being stopped."
	}
	return p.Run.Reason
}

// ReasonBlock is ReasonText where it has several lines that are to be shown as
// they stand: a file's mistakes with their source lines. Else it is "".
func (p *RunPage) ReasonBlock() string {
	if text := p.ReasonText(); strings.Contains(text, "\n") {
		return text
	}
	return ""
}

// ForkText names where a fork's code comes from.
func (p *RunPage) ForkText() string {
	if pr := p.Run.Source.PullRequest; pr != nil && pr.HeadRepo.FullName != "" {
		return pr.HeadRepo.FullName
	}
	return "a fork"
}

// CancelText says what a cancel will do.
func (p *RunPage) CancelText() string {
	switch {
	case p.Run.State.Pending():
		return "It has not begun, and will not: it ends as cancelled at once."
	case p.Run.Internal.Deploying:
		return "It is in a deploy step. The step gets SIGTERM, and after the project's grace SIGKILL; what it has already changed stays changed, maybe by half."
	}
	return "Its step gets SIGTERM, and after the project's grace SIGKILL. Nothing of it keeps running, and the steps after it are skipped."
}

// failedStep is where a failed run went wrong.
type failedStep struct{ Slug, Name, Text string }

// FailedStep returns the first step that failed, or nil.
func (p *RunPage) FailedStep() *failedStep {
	slugs := Slugs(p.stepNames())
	for i, s := range p.Run.Steps {
		if s.State == ci.StepFailed {
			return &failedStep{slugs[i+1], s.Name, ending(s)}
		}
	}
	return nil
}

func ending(s ci.StepResult) string {
	text := "failed"
	switch {
	case s.Reason != "":
		text = "failed: " + s.Reason
	case s.ExitCode != nil:
		text = "ended with exit code " + strconv.Itoa(*s.ExitCode)
	}
	if !s.StartedAt.IsZero() && !s.FinishedAt.IsZero() {
		text += " after " + durationText(s.FinishedAt.Sub(s.StartedAt.Time))
	}
	return text
}

func (p *RunPage) stepNames() []string {
	names := make([]string, 0, len(p.Run.Steps))
	for _, s := range p.Run.Steps {
		names = append(names, s.Name)
	}
	return names
}

type stepItem struct {
	ci.StepResult
	Slug string
}

// StepList is the steps with their addresses in the log.
func (p *RunPage) StepList() []stepItem {
	slugs := Slugs(p.stepNames())
	list := make([]stepItem, 0, len(p.Run.Steps))
	for i, s := range p.Run.Steps {
		if s.Reason == "" && s.ExitCode != nil && *s.ExitCode != 0 {
			s.Reason = "exit code " + strconv.Itoa(*s.ExitCode)
		}
		list = append(list, stepItem{s, slugs[i+1]})
	}
	return list
}

// Facts are the small print.
func (p *RunPage) Facts() []fact {
	r := p.Run
	var list []fact
	add := func(name, value string, mono bool) {
		if value != "" {
			list = append(list, fact{name, value, mono})
		}
	}
	add("Commit", r.Source.Commit, true)
	add("Before", r.Source.Before, true)
	add("Slot", r.Cause.Slot, true)
	if !p.Redacted {
		for _, k := range slices.Sorted(maps.Keys(r.Inputs)) {
			add("Input "+k, r.Inputs[k], true)
		}
		add("Asked because", r.Cause.Reason, false)
	}
	add("Spec", r.Spec, true)
	return list
}

// stepLogView is one step's log with its surroundings.
type stepLogView struct {
	LogStep
	State          ci.StepState
	Open           bool
	Took           template.HTML
	Earlier, Later int
}

// alwaysOpen is how many lines a step of a green run may have without being folded.
const alwaysOpen = 40

// StepLog prepares a step's log: what went wrong or goes on is open, what
// went well and was long is folded.
func (p *RunPage) StepLog(s LogStep) stepLogView {
	v := stepLogView{LogStep: s}
	if s.Index >= 0 && s.Index < len(p.Run.Steps) {
		r := p.Run.Steps[s.Index]
		v.State, v.Took = r.State, took(r.StartedAt, r.FinishedAt, p.Now)
	} else {
		v.State = p.Preparation()
	}
	if n := len(s.Lines); n > 0 {
		v.Earlier, v.Later = s.Lines[0].N-1, s.Total-s.Lines[n-1].N
	} else {
		v.Earlier = s.Total
	}
	switch v.State {
	case ci.StepSucceeded:
		v.Open = s.Index >= 0 && p.Run.State == ci.Succeeded && s.Total > 0 && s.Total <= alwaysOpen
	case ci.StepPending, ci.StepSkipped:
	default:
		v.Open = true
	}
	v.Open = v.Open || s.Name == p.Window.Step && s.Name != ""
	return v
}

// Preparation is the state of what docket does before the first step.
func (p *RunPage) Preparation() ci.StepState {
	for _, s := range p.Run.Steps {
		if !s.StartedAt.IsZero() {
			return ci.StepSucceeded
		}
	}
	switch p.Run.State {
	case ci.Running:
		return ci.StepRunning
	case ci.Succeeded:
		return ci.StepSucceeded
	case ci.Failed:
		return ci.StepFailed
	case ci.Cancelled, ci.Superseded, ci.Interrupted:
		return ci.StepCancelled
	}
	return ci.StepPending
}

func (v stepLogView) window(q url.Values) string {
	q.Set("step", v.Name)
	return "?" + q.Encode() + "#log:" + v.Slug
}

// EarlierURL, LaterURL and AllURL ask for other lines of this step.
func (v stepLogView) EarlierURL() string {
	first := v.Total + 1
	if len(v.Lines) > 0 {
		first = v.Lines[0].N
	}
	return v.window(url.Values{"from": {strconv.Itoa(max(1, first-WindowLines))}})
}

func (v stepLogView) LaterURL() string {
	return v.window(url.Values{"from": {strconv.Itoa(v.Lines[len(v.Lines)-1].N + 1)}})
}

func (v stepLogView) AllURL() string { return v.window(url.Values{"all": {"1"}}) }

// DecisionList gives the decisions the time that ages are counted from.
func (p *RunPage) DecisionList(list []ci.Decision) decisionList { return decisionList{list, p.Now} }

// chainLink is one fact in a run's chain of custody.
type chainLink struct {
	Label, Detail string
	At            ci.Time
	Href          string
	State         string // icon
}

// Chain is the way from what asked for the run to whoever was told of its end.
func (p *RunPage) Chain() []chainLink {
	r := p.Run
	list := p.origin()
	list = append(list, chainLink{Label: "Run", Detail: r.ID, At: r.CreatedAt, State: iconFact})
	if !r.StartedAt.IsZero() {
		c := chainLink{Label: "Started", At: r.StartedAt, State: iconFact}
		if r.Attempt > 1 {
			c.Detail = fmt.Sprintf("attempt %d", r.Attempt)
		}
		list = append(list, c)
	}
	for _, s := range p.StepList() {
		c := chainLink{Label: s.Name, Href: "#log:" + s.Slug, State: string(s.State), At: either(s.FinishedAt, s.StartedAt)}
		if !s.FinishedAt.IsZero() && !s.StartedAt.IsZero() {
			c.Detail = durationText(s.FinishedAt.Sub(s.StartedAt.Time))
		}
		list = append(list, c)
	}
	if r.State != ci.Running { // its step says it
		list = append(list, chainLink{Label: words(r.State), At: r.FinishedAt, State: string(r.State)})
	}
	for _, e := range p.Notifications {
		list = append(list, chainLink{Label: entryWords(e.Kind, e.Event), Detail: words(e.State),
			At: e.FinishedAt, State: string(e.State), Href: p.entryPath()})
	}
	return list
}

func (p *RunPage) entryPath() string {
	if p.User == nil {
		return ""
	}
	return "#live-trail"
}

// iconFact marks what simply happened, and is no result.
const iconFact = "fact"

// origin is what asked for the run, and the receipt that promises it.
func (p *RunPage) origin() []chainLink {
	c := p.Run.Cause
	by := ""
	if c.Actor != "" && !p.Redacted {
		by = "by " + c.Actor
	}
	switch c.Kind {
	case ci.CauseDelivery, ci.CauseReplay:
		label := causeWords(ci.CauseDelivery, c.Event)
		if label == "" {
			label = "delivery"
		}
		list := []chainLink{{Label: label, Detail: by, State: iconFact}}
		if r := p.Receipt; r != nil {
			list[0].At = r.ReceivedAt
			list = append(list, chainLink{Label: "Receipt", Detail: string(r.Outcome), At: r.ReceivedAt, Href: deliveryPath(*r), State: iconFact})
			if p.User == nil {
				list[1].Href = ""
			}
		} else if c.Receipt != "" {
			list = append(list, chainLink{Label: "Receipt", State: iconFact})
		}
		if c.Kind == ci.CauseReplay {
			list = append(list, chainLink{Label: "Replay", State: iconFact})
		}
		return list
	case ci.CauseRerun:
		return []chainLink{{Label: "Rerun of " + c.Run, Detail: by, At: p.Run.CreatedAt, Href: runPath(c.Run), State: iconFact}}
	}
	label := "Request"
	if c.Kind != ci.CauseRequest && c.Kind != "" {
		label = c.Kind
	}
	return []chainLink{{Label: label, Detail: by, At: p.Run.CreatedAt, State: iconFact}}
}
