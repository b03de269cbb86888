package store

import (
	"slices"
	"time"

	"docket/store/ci"
)

// Change is one step in the life of a run or a notification, for who follows
// those; see Options.Changed. One of Run and Entry is set.
type Change struct {
	At    time.Time // of its write
	Run   *RunChange
	Entry *EntryChange
}

// RunChange is a run that came to a state, or one whose process was lost.
type RunChange struct {
	Run  ci.Run   // as it is from then on
	From ci.State // before; "" for a new run
	// Lost: the process that carried the run is gone. Run is as that attempt
	// left it, and what becomes of the run is a change of its own.
	Lost bool
}

// EntryChange is an attempt to send a notification that is over, or an end.
type EntryChange struct {
	Entry ci.OutboxEntry // after the end, but before what follows from an attempt
	Try   TryEnd
	// Result is what came of an attempt that is over.
	Result AttemptResult
}

// TryEnd is what is known of an attempt's end.
type TryEnd int

const (
	NoTry   TryEnd = iota // no attempt ended: the entry did
	TryOver               // it was recorded
	TryLost               // nobody knows: docket ended before it was recorded
)

// noteRun remembers a run's change for who follows them. It is called after
// the write, so that a closure that failed leaves nothing behind.
func (t *tx) noteRun(r *ci.Run, from ci.State, lost bool) {
	if t.s.changed == nil {
		return
	}
	run := *r
	run.Steps = slices.Clone(r.Steps)
	t.changes = append(t.changes, Change{At: t.now, Run: &RunChange{Run: run, From: from, Lost: lost}})
}

// noteEntry is noteRun for an entry.
func (t *tx) noteEntry(e *ci.OutboxEntry, try TryEnd, res AttemptResult) {
	if t.s.changed == nil {
		return
	}
	entry := *e
	entry.Payload, entry.Tries = nil, slices.Clone(e.Tries)
	t.changes = append(t.changes, Change{At: t.now, Entry: &EntryChange{Entry: entry, Try: try, Result: res}})
}

// unfinished reports whether the last attempt to send an entry has no record
// of its end.
func unfinished(e *ci.OutboxEntry) bool {
	n := len(e.Tries)
	return e.Attempts > 0 && (n == 0 || !e.Tries[n-1].At.Equal(e.AttemptedAt.Time))
}

// Instance names this store among all: a restored one has another name.
func (s *Store) Instance() string { return s.instance }
