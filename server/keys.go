package server

// Log keys, the same in every line about the same thing.
const (
	keyIntegration = "integration"
	keyEvent       = "event"
	keyDelivery    = "delivery"
	keyReceipt     = "receipt"
	keyRuns        = "runs"
	keyReason      = "reason"
	keyStatus      = "status"
	keyDetail      = "detail"
	keyBytes       = "bytes"
	keyRemote      = "remote"
	keyUser        = "user"
	keyMethod      = "method"
	keyPath        = "path"
	keyError       = "error"
	keyStack       = "stack"
	keyLevel       = "level"
	keyBy          = "by"
	keyLeftOut     = "left_out" // how many like this were not logged before it
)
