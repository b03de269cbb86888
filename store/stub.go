// Package store keeps everything that docket has promised, in one bbolt file.
package store

import (
	"context"
	"io"
	"time"

	"docket/store/ci"
)

type Store struct{}

// Options configure a store; the zero value is what production uses.
type Options struct {
	LockTimeout time.Duration            // how long to wait for another process, default 2 s
	Now         func() time.Time         // default time.Now
	RunURL      func(id string) string   // a run's page, for notifications
	Failpoint   func(point string) error // tests only: FailBeforeCommit, FailAfterCommit
}

func Open(path string, o Options) (*Store, error) { panic("stub") }
func (s *Store) Close() error                     { panic("stub") }

// Health returns nil, or why the last commit failed or nothing may be written.
func (s *Store) Health() error { panic("stub") }

// Probe commits an empty change; it tells whether the store is writable now.
func (s *Store) Probe(ctx context.Context) error { panic("stub") }

// Topic names what a wakeup is about.
type Topic int

const (
	TopicRuns   Topic = iota // a run, an inbox job or a cancel request changed
	TopicOutbox              // an outbox entry became due
	TopicLogs
)

// Watch returns a channel that gets a token after commits about a topic. It
// is a hint: tokens are merged and may be lost. Stop ends it.
func (s *Store) Watch(t Topic) (c <-chan struct{}, stop func()) { panic("stub") }

// Acceptance is a verified and judged delivery.
type Acceptance struct {
	Delivery ci.Delivery
	Event    ci.Event
	Reason   string     // why it starts nothing, where Drafts is empty
	Drafts   []ci.Draft // the runs it starts
	Projects []string   // the configured projects of its repository: pinned to its id if they are not yet
	Cancels  []Cancel   // pending runs that it ends
	// RefuseReplay refuses known bytes under a new delivery id.
	RefuseReplay bool
}

// Cancel ends what is pending in a scope (see ci.Internal).
type Cancel struct {
	Project string
	Scope   string
	Reason  string
}

// Accepted is the answer to an Acceptance, true from before it was given.
type Accepted struct {
	Receipt   ci.Receipt
	Runs      []ci.Run
	Duplicate bool // the delivery was on record; nothing new came of it
}

// Accept writes receipt, body, runs and outbox entries in one commit.
//
// A delivery on record is answered with what exists. If it had been ignored,
// it takes the new judgement.
//
// Errors: CodeConflict (the identity is on record with other bytes),
// CodeForbidden (a project is pinned to another repository id, or a refused
// replay), CodeUnavailable (not committed; nothing was promised).
func (s *Store) Accept(ctx context.Context, a Acceptance) (Accepted, error) { panic("stub") }

// Receipt returns a receipt, or CodeNotFound.
func (s *Store) Receipt(id ci.ReceiptID) (ci.Receipt, error) { panic("stub") }

// ReceiptBody returns a delivery's kept headers and exact bytes, or CodeNotFound.
func (s *Store) ReceiptBody(id ci.ReceiptID) (header map[string]string, body []byte, err error) {
	panic("stub")
}

// Page bounds a listing. Limit 0 means 50. Cursor is the next_cursor of the
// page before; a bad one is CodeInvalid.
type Page struct {
	Limit  int
	Cursor string
}

// Receipts lists receipts, newest first; outcome "" means all.
func (s *Store) Receipts(outcome ci.Outcome, p Page) (list []ci.Receipt, next string, err error) {
	panic("stub")
}

// Replay judges a stored delivery again on a person's word.
type Replay struct {
	ID     ci.ReceiptID
	Key    string // idempotency key, may be ""
	By     ci.By
	Reason string     // why it starts nothing, where Drafts is empty
	Drafts []ci.Draft // with Cause.Kind CauseReplay
}

// Replay writes the new judgement and its runs; the same key answers the same.
func (s *Store) Replay(ctx context.Context, r Replay) (rec ci.Receipt, replayed bool, err error) {
	panic("stub")
}

// Run returns a run, or CodeNotFound.
func (s *Store) Run(id string) (ci.Run, error) { panic("stub") }

// RunFilter narrows a listing of runs; empty fields match all.
type RunFilter struct {
	Project string
	State   ci.State
	Branch  string
}

// Runs lists runs, newest first.
func (s *Store) Runs(f RunFilter, p Page) (list []ci.Run, next string, err error) { panic("stub") }

// Spec returns a frozen spec by its digest, or CodeNotFound.
func (s *Store) Spec(digest string) (ci.Spec, error) { panic("stub") }

// Head is the newest head of a branch that docket knows, and its newest run.
type Head struct {
	Branch string
	Run    string
	State  ci.State
	Commit string
}

// Heads lists the heads of a project's branches by name, at most 200.
func (s *Store) Heads(project string) ([]Head, error) { panic("stub") }

// HeadOf returns the head of one branch, or CodeNotFound.
func (s *Store) HeadOf(project, branch string) (Head, error) { panic("stub") }

// Request is a request for a run, normalized and frozen.
type Request struct {
	Project string
	Key     string
	Digest  string // of the normalized request
	Draft   ci.Draft
	By      ci.By
}

// Request makes the run, or returns the one that this key already made
// (replayed). CodeConflict, with ExistingRun, if the key was used for another
// request. A refused request does not use up the key.
func (s *Store) Request(ctx context.Context, r Request) (run ci.Run, replayed bool, err error) {
	panic("stub")
}

// Action is what a person asks of a run.
type Action struct {
	Run    string
	Key    string // idempotency key
	By     ci.By
	Reason string
}

// CancelRun ends a pending run at once and asks a running one to stop.
// CodeConflict if it has ended.
func (s *Store) CancelRun(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	panic("stub")
}

// Rerun makes a new run of the same commit and frozen spec; a fork's is held.
func (s *Store) Rerun(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	panic("stub")
}

// Approve lets a held run go on.
func (s *Store) Approve(ctx context.Context, a Action) (run ci.Run, replayed bool, err error) {
	panic("stub")
}

// Entry returns an outbox entry, or CodeNotFound.
func (s *Store) Entry(id string) (ci.OutboxEntry, error) { panic("stub") }

// Entries lists outbox entries, newest first; state "" means all.
func (s *Store) Entries(state ci.OutboxState, p Page) (list []ci.OutboxEntry, next string, err error) {
	panic("stub")
}

// EntryAction is what a person asks of an outbox entry.
type EntryAction struct {
	ID     string
	Key    string // may be ""
	By     ci.By
	Reason string
}

// RetryEntry makes a dead entry, or a pending one that waits, due now.
func (s *Store) RetryEntry(ctx context.Context, a EntryAction) (e ci.OutboxEntry, replayed bool, err error) {
	panic("stub")
}

// DiscardEntry gives a pending or dead entry up for good.
func (s *Store) DiscardEntry(ctx context.Context, a EntryAction) (e ci.OutboxEntry, replayed bool, err error) {
	panic("stub")
}

// DueEntries returns, for up to limit lanes, the first entry of each that may
// be sent at now, and when the next one will be due (zero: none waits).
func (s *Store) DueEntries(now time.Time, limit int) (due []ci.OutboxEntry, next time.Time, err error) {
	panic("stub")
}

// BeginAttempt records that an entry is about to be sent, attempt + 1. ok is
// false if it is not to be sent after all: not pending any more, not first
// in its lane, or just skipped because something newer speaks.
func (s *Store) BeginAttempt(ctx context.Context, id string) (e ci.OutboxEntry, ok bool, err error) {
	panic("stub")
}

// AttemptResult is what came of an attempt.
type AttemptResult struct {
	State  ci.OutboxState // sent, dead, skipped, or pending for another try
	Error  string         // for people; "" when sent
	NextAt time.Time      // of another try
}

// FinishAttempt records what came of the attempt that BeginAttempt counted. A
// result of any other attempt changes nothing.
func (s *Store) FinishAttempt(ctx context.Context, id string, attempt int, r AttemptResult) error {
	panic("stub")
}

// Hold keeps every lane of a key (an integration's name or a target) waiting
// until a time, across restarts. Holds returns those that are in force.
func (s *Store) Hold(ctx context.Context, key string, until time.Time, reason string) error {
	panic("stub")
}

// HoldInfo is one hold in force.
type HoldInfo struct {
	Until  ci.Time `json:"until"`
	Reason string  `json:"reason"`
}

// Holds returns the holds in force at now, by key.
func (s *Store) Holds(now time.Time) (map[string]HoldInfo, error) { panic("stub") }

// Decisions lists decisions, newest first; run "" means all.
func (s *Store) Decisions(run string, p Page) (list []ci.Decision, next string, err error) {
	panic("stub")
}

// CreateToken makes a token and returns its value, which is kept nowhere.
// CodeConflict if the name is taken, CodeInvalid for a bad name or role.
func (s *Store) CreateToken(ctx context.Context, name string, role ci.Role) (value string, err error) {
	panic("stub")
}

// Tokens lists tokens by name.
func (s *Store) Tokens() ([]ci.Token, error) { panic("stub") }

// RevokeToken makes a token worthless, or returns CodeNotFound.
func (s *Store) RevokeToken(ctx context.Context, name string) error { panic("stub") }

// Authenticate returns the token of a value, or CodeUnauthenticated.
func (s *Store) Authenticate(value string) (ci.Token, error) { panic("stub") }

// Pins returns the repository that each project is pinned to: the id, and the
// name it last had.
func (s *Store) Pins() (map[string]ci.Repository, error) { panic("stub") }

// Repin pins a project to another repository id; 0 leaves that to the next
// signed delivery.
func (s *Store) Repin(ctx context.Context, project string, id int64, by ci.By) error { panic("stub") }

// Backup writes a consistent copy of the store to w from a file of its own,
// so that a slow reader holds nothing up.
func (s *Store) Backup(ctx context.Context, w io.Writer) (int64, error) { panic("stub") }

// Verify checks every record, index and invariant and returns a line for each
// thing that is broken.
func (s *Store) Verify(ctx context.Context) ([]string, error) { panic("stub") }

// Stats are counts that cost nothing to read.
type Stats struct {
	Queued, Running, Held, Preparing int
	OutboxPending, OutboxDead        int
	FileBytes                        int64
}

// Stats returns counts for metrics and the overview.
func (s *Store) Stats() (Stats, error) { panic("stub") }

// Logs gives access to the log files of runs.
func (s *Store) Logs() *Logs { panic("stub") }

// Logs keeps one log per run and attempt, as files beside the store.
type Logs struct{}

// Chunk is one piece of a step's output, as it came.
type Chunk struct {
	Step   int   // index of the step; -1 is docket's own preparation
	Offset int64 // of Data in the bytes of its attempt's log, all steps counted
	At     time.Time
	Data   []byte
}

// OpenLog starts reading a run's newest log, or an attempt's where attempt > 0.
// CodeNotFound if nothing was ever written.
func (l *Logs) Open(run string, attempt int) (*LogReader, error) { panic("stub") }

// LogReader reads chunks in order.
type LogReader struct{}

// Next returns the next chunk, io.EOF when there is none now.
func (r *LogReader) Next() (Chunk, error) { panic("stub") }

// SeekTo goes to an offset, as in Chunk.Offset.
func (r *LogReader) SeekTo(offset int64) error { panic("stub") }

// Wait blocks until there may be more to read, the log is complete (done), or
// ctx ends.
func (r *LogReader) Wait(ctx context.Context) (done bool, err error) { panic("stub") }

// Close ends reading.
func (r *LogReader) Close() error { panic("stub") }
