package web

import "docket/store/ci"

// DecisionsPage is the page at /decisions: the audit trail.
type DecisionsPage struct {
	Chrome
	Run       string // filter ?run=, "" for all
	Kind      string // filter ?kind=, "" for all
	Decisions []ci.Decision
	Next      string // path and query of the older page
	Newest    string // path and query of the first page, "" if this is it
}

func (*DecisionsPage) template() string { return "decisions" }

// Parts names the live parts.
func (*DecisionsPage) Parts() []string { return []string{PartBanners, PartList} }

// Kinds are the choices of the filter.
func (*DecisionsPage) Kinds() []string {
	return []string{
		ci.DecisionApproved, ci.DecisionCancelled, ci.DecisionDiscarded, ci.DecisionHeld, ci.DecisionInterrupted,
		ci.DecisionPaused, ci.DecisionPinned, ci.DecisionRecovered, ci.DecisionReplayed, ci.DecisionRequeued, ci.DecisionRerun,
		ci.DecisionResumed, ci.DecisionRetried, ci.DecisionSkipped, ci.DecisionSuperseded, ci.DecisionTimedOut,
		ci.DecisionUnrecovered,
	}
}

// List gives the decisions the time that ages are counted from.
func (p *DecisionsPage) List() decisionList { return decisionList{p.Decisions, p.Now} }
