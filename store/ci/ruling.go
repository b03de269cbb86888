package ci

import "strings"

// Cancel is what an event ends of what has not begun: the runs of Scope, all
// that events started for PullRequest, or all of the project.
type Cancel struct {
	Project     string
	Scope       string // see Internal.Scope
	Ref         string // full; of the branch that the runs of Scope are of
	PullRequest int    // its number
	All         bool   // every run of the project: its repository is out of reach
	Deleted     bool   // Ref is gone: a new branch of that name has a life of its own
	Reason      string
}

// Rerun is what a person asked the provider to have run again: a run, or the
// newest run of each context of a commit.
type Rerun struct {
	Integration string
	Projects    []string // of the delivery's repository: it must be a run of one of them
	Commit      string   // that the runs must be of
	Run         string   // its id; "" for the newest of each context
	Cause       Cause    // of the new run, without Run
}

// Ruling is what one project makes of an event: the exact rule that lets it
// start something or stops it.
type Ruling struct {
	Project string `json:"project"`
	Matches bool   `json:"matches"`
	Reason  string `json:"reason"`
	// Undecided: git is still to be asked which files changed.
	Undecided bool     `json:"undecided,omitempty"`
	Run       *Planned `json:"run,omitempty"`     // what it would start
	Reruns    string   `json:"reruns,omitempty"`  // what it would run again, in words
	Cancels   string   `json:"cancels,omitempty"` // what it would end of what waits, in words
}

// Lines says what comes of the event in the project, one thing a line.
func (r Ruling) Lines() []string {
	var list []string
	if p := r.Run; p != nil {
		list = p.lines()
	}
	if r.Undecided {
		list = append(list, "undecided until git is asked which files changed")
	}
	if r.Reruns != "" {
		list = append(list, "runs again "+r.Reruns)
	}
	if r.Cancels != "" {
		list = append(list, "ends "+r.Cancels)
	}
	return list
}

// Planned is a run that an event would start.
type Planned struct {
	State     State           `json:"state"` // that it begins in
	Held      bool            `json:"held"`  // a person has to approve it, at once or once it is prepared
	Skipped   bool            `json:"skipped,omitempty"`
	Context   string          `json:"context"`         // of its status
	Ref       string          `json:"ref"`             // full
	Commit    string          `json:"commit"`          // "" where it is resolved later
	Steps     []string        `json:"steps,omitempty"` // their names
	Pipeline  string          `json:"pipeline,omitempty"`
	Scope     string          `json:"scope,omitempty"` // that it takes older runs' places in; "" for none
	Supersede SupersedePolicy `json:"supersede"`
	Group     string          `json:"group,omitempty"` // of concurrency
}

// Explanation is what an event leads to under one configuration.
type Explanation struct {
	Receipt    string     `json:"receipt"` // its id; "" where none is meant
	Event      string     `json:"event"`
	Action     string     `json:"action"`
	Repository Repository `json:"repository"`
	Ref        string     `json:"ref"`
	Commit     string     `json:"commit"`
	Outcome    Outcome    `json:"outcome"` // Accepted, Ignored or Refused
	Reason     string     `json:"reason"`  // why it starts nothing
	Projects   []Ruling   `json:"projects"`
}

// Refused is the outcome of what is not taken at all: an explanation has it, a
// receipt never.
const Refused Outcome = "refused"

func (p *Planned) lines() []string {
	at := "at " + p.Commit
	if p.Commit == "" {
		at = "at the commit that it points to then"
	}
	if p.Skipped {
		return []string{"tells the status " + p.Context + " of " + p.Commit + " that it is skipped, which is a success, unless a run has told it another"}
	}
	how := string(p.State)
	if p.Held && p.State != Held {
		how += ", then held"
	}
	if p.Held {
		how += " until a person approves it: its code is a fork's"
	}
	list := []string{"starts a run of " + p.Ref + " " + at + ", " + how, "its status is " + p.Context}
	if p.Pipeline != "" {
		list = append(list, "its steps are read from "+p.Pipeline)
	} else {
		list = append(list, "its steps are "+strings.Join(p.Steps, ", "))
	}
	switch {
	case p.Scope == "":
		list = append(list, "no other run takes its place, and it takes nobody's")
	case p.Supersede == SupersedeNone:
		list = append(list, "older runs of the same go on: supersede is none")
	case p.Supersede == SupersedeRunning:
		list = append(list, "it supersedes older runs, also those that run and do not deploy, of "+p.Scope)
	default:
		list = append(list, "it supersedes older runs that have not begun, of "+p.Scope)
	}
	if p.Group != "" {
		list = append(list, "it waits while another run of the group "+p.Group+" runs")
	}
	return list
}
