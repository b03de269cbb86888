package ci

// Kinds of decisions.
const (
	DecisionSuperseded  = "superseded"
	DecisionCancelled   = "cancelled"
	DecisionApproved    = "approved"
	DecisionInterrupted = "interrupted"
	DecisionRequeued    = "requeued"
	DecisionSkipped     = "skipped"
	DecisionReplayed    = "replayed"
	DecisionRecovered   = "recovered"   // a redelivery was asked for, or a run started for a head
	DecisionUnrecovered = "unrecovered" // a delivery is not asked for any more
	DecisionPinned      = "pinned"
	DecisionDiscarded   = "discarded"
	DecisionRetried     = "retried"
	DecisionRerun       = "rerun"
	DecisionTimedOut    = "timed_out"
	DecisionHeld        = "held"
	DecisionLapsed      = "lapsed"    // approval was waited for too long
	DecisionScheduled   = "scheduled" // or a slot that was left out
	DecisionPaused      = "paused"    // runs or notifications are held back
	DecisionResumed     = "resumed"

	DecisionUserAdded       = "user_added"
	DecisionUserRemoved     = "user_removed"
	DecisionPasswordChanged = "password_changed"
	DecisionRoleChanged     = "role_changed"
	DecisionLoginLink       = "login_link" // one was made
	DecisionSignedOut       = "signed_out" // everywhere
)

// Decision is one line of the audit trail: who or what decided, why, when.
type Decision struct {
	ID       string `json:"id"`
	At       Time   `json:"at"`
	Kind     string `json:"kind"`
	Run      string `json:"run,omitempty"`
	OtherRun string `json:"other_run,omitempty"`
	Receipt  string `json:"receipt,omitempty"`
	Entry    string `json:"entry,omitempty"` // outbox entry
	Project  string `json:"project,omitempty"`
	// Integration is set where the decision is about a provider's deliveries.
	Integration string `json:"integration,omitempty"`
	User        string `json:"user,omitempty"` // whom it is about
	By          By     `json:"by"`
	Reason      string `json:"reason"`
}

// Kinds of deciders.
const (
	ByToken      = "token"
	ByUser       = "user"
	ByServer     = "server"
	ByScheduler  = "scheduler"
	ByDispatcher = "dispatcher"
)

// By is who or what decided.
type By struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}
