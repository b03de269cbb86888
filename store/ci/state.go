package ci

import "slices"

// State is where a run is in its life.
type State string

const (
	// Preparing: an inbox job still has to resolve a branch, peel a tag or
	// read the pipeline file. The job's worker moves it on.
	Preparing State = "preparing"
	// Held: a fork's run waits for a person. Approve moves it on.
	Held State = "held"
	// Queued: everything is frozen. The scheduler's claim moves it on.
	Queued State = "queued"
	// Running: a runner of this process carries it. Its result, a cancel, a
	// time-out or the recovery at the next start moves it on.
	Running State = "running"

	// The rest are final.
	Succeeded   State = "succeeded"
	Failed      State = "failed"
	Cancelled   State = "cancelled"
	Superseded  State = "superseded"
	Interrupted State = "interrupted" // its process was lost
)

// States lists every state in the order of a run's life.
var States = []State{Preparing, Held, Queued, Running, Succeeded, Failed, Cancelled, Superseded, Interrupted}

// transitions is the whole table of legal moves. Running to Queued happens
// only at recovery, for a project with on_interrupt: requeue.
var transitions = map[State][]State{
	Preparing: {Held, Queued, Failed, Cancelled, Superseded},
	Held:      {Queued, Cancelled, Superseded},
	Queued:    {Running, Cancelled, Superseded},
	Running:   {Succeeded, Failed, Cancelled, Superseded, Interrupted, Queued},
}

// CanMove reports whether a run may go from one state to another.
func CanMove(from, to State) bool { return slices.Contains(transitions[from], to) }

// Final reports whether the state is an end.
func (s State) Final() bool {
	switch s {
	case Succeeded, Failed, Cancelled, Superseded, Interrupted:
		return true
	}
	return false
}

// Pending reports whether the run has not begun.
func (s State) Pending() bool { return s == Preparing || s == Held || s == Queued }

// Valid reports whether s is one of States.
func (s State) Valid() bool { return slices.Contains(States, s) }

// StepState is where a step is in its life.
type StepState string

const (
	StepPending   StepState = "pending"
	StepRunning   StepState = "running"
	StepSucceeded StepState = "succeeded"
	StepFailed    StepState = "failed"
	StepCancelled StepState = "cancelled"
	StepSkipped   StepState = "skipped" // an earlier step ended the run
)
