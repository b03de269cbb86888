package ci

// Work is a part of docket that can be paused: it starts nothing new, and
// what is asked of it waits on record.
type Work string

// What can be paused.
const (
	WorkRuns   Work = "runs"   // runs are prepared and started
	WorkOutbox Work = "outbox" // notifications are sent
)

// Works is every Work.
var Works = []Work{WorkRuns, WorkOutbox}

// Pause says since when a part of docket waits for somebody to let it go on,
// and who stopped it.
type Pause struct {
	Since  Time   `json:"since"`
	By     By     `json:"by"`
	Reason string `json:"reason"`
}

// Pauses are the pauses in force; nil is none.
type Pauses struct {
	Runs   *Pause `json:"runs"`
	Outbox *Pause `json:"outbox"`
}

// Of returns the pause of a part, nil if it is not paused.
func (p Pauses) Of(w Work) *Pause {
	if w == WorkOutbox {
		return p.Outbox
	}
	return p.Runs
}
