package ci

import (
	"strconv"
	"strings"
	"time"
)

// Cause kinds: what made a run.
const (
	CauseDelivery = "delivery"
	CauseRequest  = "request"
	CauseRerun    = "rerun"
	CauseReplay   = "replay"
	CauseSchedule = "schedule"
	CauseRecovery = "recovery" // a head that no delivery told of
)

// Run is one piece of work at one exact commit. In JSON it is what the API
// shows; Internal is kept in the store and left out by Public.
type Run struct {
	ID         string            `json:"id"` // PROJECT-NUMBER
	Project    string            `json:"project"`
	Number     uint64            `json:"number"` // counts from 1 in each project
	State      State             `json:"state"`
	Attempt    int               `json:"attempt"` // how often it was claimed
	Reason     string            `json:"reason,omitempty"`
	Cause      Cause             `json:"cause"`
	Source     Source            `json:"source"`
	Fork       bool              `json:"fork,omitempty"` // its code comes from outside: no secrets, ever
	Spec       string            `json:"spec"`           // digest of the frozen Spec
	Inputs     map[string]string `json:"inputs"`
	Steps      []StepResult      `json:"steps"`
	CreatedAt  Time              `json:"created_at"`
	StartedAt  Time              `json:"started_at"`
	FinishedAt Time              `json:"finished_at"`
	URL        string            `json:"url"`

	// SupersededBy is the run that took this one's place.
	SupersededBy string `json:"superseded_by,omitempty"`
	// CancelRequested is set while a running run is being stopped.
	CancelRequested *CancelRequest `json:"cancel_requested,omitempty"`
	// WaitingFor is what a queued run waits for besides a free place. It is
	// filled in when a run is read, and not kept.
	WaitingFor *Waiting `json:"waiting_for,omitempty"`
	// TraceID is the trace that tells of the run. It is filled in when a run is
	// shown, and not kept.
	TraceID string `json:"trace_id,omitempty"`

	Internal Internal `json:"internal,omitzero"`
}

// Public returns the run as the world may see it.
func (r Run) Public() Run {
	r.Internal = Internal{}
	if r.Inputs == nil {
		r.Inputs = map[string]string{}
	}
	if r.Steps == nil {
		r.Steps = []StepResult{}
	}
	return r
}

// ReasonLine is the first line of the reason: the whole of it, but where it
// tells the mistakes of a file, each with its source line.
func (r *Run) ReasonLine() string {
	first, _, _ := strings.Cut(r.Reason, "\n")
	return first
}

// Internal is the part of a run that only docket itself reads.
type Internal struct {
	Seq          uint64   `json:"-"` // order of creation over all projects; from the record's own header
	Integration  string   `json:"integration,omitempty"`
	Installation int64    `json:"installation,omitempty"` // of the GitHub App that docket acts as; 0: none
	Context      string   `json:"context,omitempty"`      // of the commit status
	Scope        string   `json:"scope,omitempty"`        // what it can supersede and be superseded in; "" for never
	Head         bool     `json:"head,omitempty"`         // it told where its branch's head is
	Deploying    bool     `json:"deploying,omitempty"`
	Approved     bool     `json:"approved,omitempty"`
	Boot         string   `json:"boot,omitempty"` // which process of the server claimed it
	Process      *Process `json:"process,omitempty"`
	Job          *Job     `json:"job,omitempty"` // what is still to be resolved while Preparing
	Title        string   `json:"title,omitempty"`
	Group        string   `json:"group,omitempty"`    // of concurrency; "" for none
	Skip         bool     `json:"skip,omitempty"`     // a filter kept it from running; its status is a success that says so
	Silent       bool     `json:"silent,omitempty"`   // a skip that has no status: none is wanted, or another run speaks
	HoldFor      Duration `json:"hold_for,omitempty"` // how long it may wait for approval; 0: for ever
	LapsesAt     Time     `json:"lapses_at,omitzero"` // of a held run: when approval is waited for no longer
	Note         string   `json:"note,omitempty"`     // what preparing found out, for the log
	Origin       *Origin  `json:"origin,omitempty"`   // of a run that a delivery asked to have repeated
	Schedule     string   `json:"schedule,omitempty"` // Schedule.Key of the one whose slot it is
}

// Origin is what the first of a run's repetitions was caused by. Steps see
// that, so that a repetition does what the first one did.
type Origin struct {
	Event   string `json:"event"`
	Receipt string `json:"receipt,omitempty"`
}

// Told returns the event and the receipt that a run's steps are told of.
func (r *Run) Told() (event, receipt string) {
	if o := r.Internal.Origin; o != nil {
		return o.Event, o.Receipt
	}
	return r.Cause.Event, r.Cause.Receipt
}

// Waiting says why a queued run may not begin yet: its concurrency group lets
// one run at a time.
type Waiting struct {
	Group string `json:"group"`
	Run   string `json:"run"` // the one that runs, or is next
}

// Undecided reports whether a filter may still keep the run from running: it
// says nothing and takes nobody's place before that is known.
func (r *Run) Undecided() bool {
	return r.State == Preparing && r.Internal.Job != nil && r.Internal.Job.Paths != nil
}

// Process tells the leftover of a killed server apart from a stranger that
// got the same process id.
type Process struct {
	Machine string `json:"machine"` // the kernel's boot id
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // field 22 of /proc/PID/stat, in clock ticks
}

// Cause is what made a run.
type Cause struct {
	Kind    string `json:"kind"`
	Receipt string `json:"receipt,omitempty"`
	Event   string `json:"event,omitempty"`
	Action  string `json:"action,omitempty"`
	Actor   string `json:"actor,omitempty"`  // who pushed, or whose token asked
	Run     string `json:"run,omitempty"`    // the run that this one repeats
	Reason  string `json:"reason,omitempty"` // what the requester said
	Slot    string `json:"slot,omitempty"`   // of a schedule: its local time and zone
}

// Source is what a run builds. Commit is empty only while Preparing, or for
// good where preparing failed.
type Source struct {
	Repository   string       `json:"repository"`
	RepositoryID int64        `json:"repository_id,omitempty"`
	Ref          string       `json:"ref"` // full
	Branch       string       `json:"branch,omitempty"`
	Tag          string       `json:"tag,omitempty"`
	Commit       string       `json:"commit"`
	Before       string       `json:"before,omitempty"`
	PullRequest  *PullRequest `json:"pull_request,omitempty"`
}

// StepResult is one step's life in one attempt.
type StepResult struct {
	Name       string    `json:"name"`
	State      StepState `json:"state"`
	ExitCode   *int      `json:"exit_code,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	StartedAt  Time      `json:"started_at"`
	FinishedAt Time      `json:"finished_at"`
}

// CancelRequest asks for a running run to be stopped.
type CancelRequest struct {
	At     Time   `json:"at"`
	By     By     `json:"by"`
	Reason string `json:"reason,omitempty"`
	// Into is the state the run shall end in: Cancelled or Superseded.
	Into State `json:"into"`
	// ByRun is the newer run, for Superseded.
	ByRun string `json:"by_run,omitempty"`
}

// ReasonTimedOut is the reason of a run that failed because its time was up.
const ReasonTimedOut = "timed out"

// RunID returns PROJECT-NUMBER.
func RunID(project string, number uint64) string {
	return project + "-" + strconv.FormatUint(number, 10)
}

// ParseRunID splits PROJECT-NUMBER at its last dash.
func ParseRunID(id string) (project string, number uint64, err error) {
	i := strings.LastIndexByte(id, '-')
	if i > 0 {
		digits := id[i+1:]
		number, err = strconv.ParseUint(digits, 10, 64)
		if err == nil && number > 0 && strconv.FormatUint(number, 10) == digits {
			return id[:i], number, nil
		}
	}
	return "", 0, Errorf(CodeNotFound, "no run %q: a run's id is PROJECT-NUMBER, as `docket runs list` prints it", id)
}

// Draft is a run that has been decided on and frozen, but not yet numbered.
type Draft struct {
	Project      string
	Integration  string
	Installation int64 // see Internal.Installation
	State        State // Preparing, Held or Queued; Cancelled with Skip
	Cause        Cause
	Source       Source
	Fork         bool
	Spec         Spec
	Inputs       map[string]string
	Context      string
	Scope        string // see Internal.Scope
	Supersede    SupersedePolicy
	Job          *Job
	Title        string
	Origin       *Origin
	Group        string        // see Internal.Group
	HoldFor      time.Duration // how long it may wait for approval; 0: for ever
	Schedule     string        // see Internal.Schedule
	// Skip: a filter keeps it from running, and its status is to say so. It is
	// born at its end, with Reason. It is not made at all where a run of the
	// same commit and context is on record: that one's result stands.
	Skip   bool
	Reason string
}

// Job is what an inbox worker still has to find out before a run can be
// queued. It needs the network, so it is never done while a request waits.
type Job struct {
	// Resolve asks for the commit that Source.Ref points to, an annotated tag
	// peeled to its commit.
	Resolve bool `json:"resolve,omitempty"`
	// Object is the annotated tag's id, where the event named that in place of
	// a commit: it is this one that is peeled, wherever the ref points by now.
	Object string `json:"object,omitempty"`
	// Pipeline is the path of the pipeline file to read at the commit.
	Pipeline string `json:"pipeline,omitempty"`
	// Paths decides whether the run goes on: by the files that changed between
	// its base and its commit. PathsKey is what the configuration calls it.
	Paths    *Paths `json:"paths,omitempty"`
	PathsKey string `json:"paths_key,omitempty"`
	// Base is the short name of the branch that the commit is compared with,
	// from the newest commit that both have, where the event told no other.
	Base string `json:"base,omitempty"`
	// OnSkip is the project's, for a run that Paths ends.
	OnSkip string `json:"on_skip,omitempty"`

	Attempts int    `json:"attempts,omitempty"`
	NextAt   Time   `json:"next_at,omitzero"`
	LastErr  string `json:"last_error,omitempty"`
}
