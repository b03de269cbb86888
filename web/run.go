package web

import "docket/store/ci"

// Live parts of a run's page.
const (
	PartHead    = "head"    // state, facts, what it waits for
	PartActions = "actions" // cancel, rerun, approve
	PartChain   = "chain"   // chain of custody
	PartSteps   = "steps"
	PartTrail   = "trail" // notifications and decisions
)

// RunPage is the page at /runs/{id}.
type RunPage struct {
	Chrome
	Run ci.Run
	// Subject is the commit's first line or the pull request's title, "" if
	// unknown. Run.Internal.Title may be given as it is.
	Subject string

	// Addresses at the provider; "" shows the text without a link.
	RepositoryURL string
	CommitURL     string
	RefURL        string // of the branch, the tag or the pull request

	// Receipt is the delivery that made it, nil for a request, or if it has
	// been pruned.
	Receipt *ci.Receipt
	// Redacted leaves out inputs, reasons and people: a public project seen by
	// someone who is not signed in.
	Redacted bool

	Notifications []ci.OutboxEntry // in order
	Decisions     []ci.Decision    // in order
	Waits         []Wait           // why it has not begun, or what it is at
	Superseded    []string         // older runs that gave way to it

	Log    []LogStep // as LogCollector.Steps has them
	Window LogWindow // that Log was made for
	// RawURL downloads the whole log as it came, "" where there is none. With
	// "?step=NAME" it is one step's.
	RawURL string
	// LogNote says why there is no log, or no whole one. "" for none.
	LogNote string

	Cancel  *RunAction // nil: not possible, or not for this person
	Rerun   *RunAction
	Approve *RunAction
}

func (*RunPage) template() string { return "run" }

// Parts names the live parts. The log is none of them: it comes as events
// EventLog. EventEnd tells the browser to open the stream no more: nothing of
// the run will change, notifications included.
func (*RunPage) Parts() []string {
	return []string{PartBanners, PartHead, PartActions, PartChain, PartSteps, PartTrail}
}

// Events of a run's stream beside the parts.
const (
	EventLog = "log"
	EventEnd = "end"
	// EventReload says that the lines of the page are those of an attempt that
	// is not the run's newest any more: the page has to load itself again.
	EventReload = "reload"
)

// RunAction is a form that does something to a run, after saying what. It
// posts FieldKey and FieldReason to /runs/{id}/cancel, /rerun or /approve.
type RunAction struct {
	Key string
}

// Wait is one thing that a run waits for.
type Wait struct {
	Text string // "3 runs are ahead of it"
	Href string // "" for none
}
