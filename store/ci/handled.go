package ci

import "time"

// Handled is a request that was to be put on record, and when each part of the
// work on it ended. Parts that it did not have are zero.
type Handled struct {
	Method, Route string // as in POST, /hooks/{integration}
	Status        int    // the answer's
	Receipt       string // of a delivery; "" for a request by hand
	Run           string // of a request by hand
	// First is false for one that had been put on record before, or was not.
	First       bool
	Integration string
	Event       string
	Outcome     string // as docket_deliveries_total has it; "" for a request by hand
	// Traceparent is what a request by hand said of its own trace.
	Traceparent string

	Began, Verified, Judged, Committed, Ended time.Time
}
