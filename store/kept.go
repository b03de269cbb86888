package store

import "docket/store/ci"

// What is kept of a record is its JSON as the API has it, without what its
// key or header says and without what is empty. A field of the outer struct
// stands in the place of the record's own of that name.

type keptReceipt struct {
	*ci.Receipt
	Action string   `json:"action,omitzero"`
	Reason string   `json:"reason,omitzero"`
	Runs   []string `json:"runs,omitzero"` // in the header
}

func receiptJSON(r *ci.Receipt) []byte {
	return mustJSON(keptReceipt{Receipt: r, Action: r.Action, Reason: r.Reason})
}

type keptRun struct {
	*ci.Run
	ID         string            `json:"id,omitzero"`      // in the key
	Project    string            `json:"project,omitzero"` // in the key
	Number     uint64            `json:"number,omitzero"`  // in the key
	State      ci.State          `json:"state,omitzero"`   // in the header
	URL        string            `json:"url,omitzero"`     // filled in when it is read
	Attempt    int               `json:"attempt,omitzero"`
	Inputs     map[string]string `json:"inputs,omitzero"`
	StartedAt  ci.Time           `json:"started_at,omitzero"`
	FinishedAt ci.Time           `json:"finished_at,omitzero"`
}

func runJSON(r *ci.Run) []byte {
	return mustJSON(keptRun{
		Run: r, Attempt: r.Attempt, Inputs: r.Inputs, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	})
}

type keptEntry struct {
	*ci.OutboxEntry
	Run            string         `json:"run,omitzero"`   // in the header
	State          ci.OutboxState `json:"state,omitzero"` // in the header
	Attempts       int            `json:"attempts,omitzero"`
	NextAttemptAt  ci.Time        `json:"next_attempt_at,omitzero"`
	LastError      string         `json:"last_error,omitzero"`
	FinishedAt     ci.Time        `json:"finished_at,omitzero"`
	AttemptedAt    ci.Time        `json:"attempted_at,omitzero"`
	FirstAttemptAt ci.Time        `json:"first_attempt_at,omitzero"`
}

func entryJSON(e *ci.OutboxEntry) []byte {
	return mustJSON(keptEntry{
		OutboxEntry: e, Attempts: e.Attempts, NextAttemptAt: e.NextAttemptAt, LastError: e.LastError,
		FinishedAt: e.FinishedAt, AttemptedAt: e.AttemptedAt, FirstAttemptAt: e.FirstAttemptAt,
	})
}
