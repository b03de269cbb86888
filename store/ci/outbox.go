package ci

import (
	"encoding/json"
	"strconv"
)

// Kinds of outbox entries, one adapter of the dispatcher each.
const (
	OutboxGitHubStatus = "github.status"
	OutboxGitHubCheck  = "github.check"
	OutboxGiteaStatus  = "gitea.status"
	OutboxWebhook      = "webhook"
	OutboxSlack        = "slack"
)

// IsStatus reports whether entries of a kind tell the provider the state of a
// run's commit. Of those that share a commit and a context only the newest
// run's are sent.
func IsStatus(kind string) bool {
	return kind == OutboxGitHubStatus || kind == OutboxGitHubCheck || kind == OutboxGiteaStatus
}

// OutboxState is where a notification is in its life.
type OutboxState string

const (
	// OutboxPending: not yet known to have arrived. The dispatcher moves it on.
	OutboxPending OutboxState = "pending"
	// OutboxSent: the receiver said yes.
	OutboxSent OutboxState = "sent"
	// OutboxSkipped: something newer made it wrong to send, or a person
	// discarded it. The entry says which.
	OutboxSkipped OutboxState = "skipped"
	// OutboxDead: given up, for the stated reason. It waits for a person, who
	// may retry or discard it.
	OutboxDead OutboxState = "dead"
)

// OutboxStates lists every state of an entry.
var OutboxStates = []OutboxState{OutboxPending, OutboxSent, OutboxSkipped, OutboxDead}

// OutboxEntry is one thing to tell the world, written in the same commit as
// the fact it tells. Its ID is the same on every attempt.
type OutboxEntry struct {
	ID            string      `json:"id"`
	Kind          string      `json:"kind"`
	Run           string      `json:"run"`
	Lane          string      `json:"lane"`
	Target        string      `json:"target"`
	State         OutboxState `json:"state"`
	Attempts      int         `json:"attempts"`           // how often it was about to be sent
	Failures      int         `json:"failures,omitempty"` // how many of them are known to have failed; waits grow with these
	NextAttemptAt Time        `json:"next_attempt_at"`
	LastError     string      `json:"last_error"`
	CreatedAt     Time        `json:"created_at"`
	FinishedAt    Time        `json:"finished_at"`

	Event   string          `json:"event,omitempty"` // run.queued and so on, or the status' state
	Final   bool            `json:"final,omitempty"` // tells a run's end
	Payload json.RawMessage `json:"payload,omitempty"`

	// AttemptedAt is when the last attempt was recorded, before it was sent.
	AttemptedAt Time `json:"attempted_at"`
	// FirstAttemptAt starts the clock that ends retrying.
	FirstAttemptAt Time `json:"first_attempt_at"`
	// Tries are the newest attempts that were finished, at most MaxTries.
	Tries []Try `json:"tries,omitempty"`
	// Retried is set when a person brought a dead entry back.
	Retried bool `json:"retried,omitempty"`
	// Integration is set where a rate limit holds a whole integration.
	Integration string `json:"integration,omitempty"`
	// Installation is the App's that the provider is told as; 0 for none.
	Installation int64 `json:"installation,omitempty"`
}

// Receiver is what rate limits are kept under: the integration, with its
// installation where there is one, or the configured target.
func (e *OutboxEntry) Receiver() string {
	switch {
	case e.Integration == "":
		return e.Target
	case e.Installation != 0:
		return e.Integration + "/" + strconv.FormatInt(e.Installation, 10)
	}
	return e.Integration
}

// MaxTries is how many finished attempts an entry remembers.
const MaxTries = 10

// Try is one finished attempt to send an entry.
type Try struct {
	At     Time   `json:"at"`     // when it began
	Answer string `json:"answer"` // "sent", or what went wrong
}

// StatusPayload is the payload of an entry that tells the provider a run's
// state: a commit status or a check run.
type StatusPayload struct {
	Project     string `json:"project"`
	Repository  string `json:"repository"` // owner/name when it was written
	Commit      string `json:"commit"`
	Context     string `json:"context"`
	State       string `json:"state"` // pending, success, failure, error
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
	// RunState is the run's state that this tells; "" in entries from before
	// there were check runs.
	RunState State `json:"run_state,omitempty"`
}

// NotificationPayload is the body of a webhook notification, as Standard
// Webhooks has it.
type NotificationPayload struct {
	Type      string `json:"type"`
	Timestamp Time   `json:"timestamp"`
	Data      Run    `json:"data"`
}

// Notification event types.
const (
	RunQueued    = "run.queued"
	RunStarted   = "run.started"
	RunFinished  = "run.finished"
	RunFailed    = "run.failed"
	RunRecovered = "run.recovered"
)

// NotificationTypes lists every type a target can ask for.
var NotificationTypes = []string{RunQueued, RunStarted, RunFinished, RunFailed, RunRecovered}
