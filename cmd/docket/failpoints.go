package main

import "time"

// failpoints are what tests put into docket: places to be killed at, and
// wakeups that never come. In production all of it is zero.
type failpoints struct {
	commit    func(point string) error // the store's points
	pass      func(point string)       // all others
	noWakeups bool
	// recoverEvery takes the place of every integration's own.
	recoverEvery time.Duration
	// keepBodies takes the place of the configured retention of bodies.
	keepBodies time.Duration
}

// Points outside the store and the scheduler, which have their own.
const (
	pointBeforeSend   = "before send"   // an attempt is on record, and nothing was sent
	pointAfterSend    = "after send"    // a receiver answered, and that is not on record
	pointBackupProved = "backup proved" // a backup is whole, and has no name yet
	pointBecoming     = "becoming"      // the store is closed, and the next program has not begun
)

// at tells the test that a point is passed.
func (f *failpoints) at(point string) {
	if f.pass != nil {
		f.pass(point)
	}
}
