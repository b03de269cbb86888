package dispatcher

import (
	"sync/atomic"

	"docket/store/ci"
)

// Counts are how attempts ended since the process started.
type Counts struct {
	Sent    uint64 // arrived
	Retried uint64 // failed, to be tried again
	Dead    uint64 // given up
	Skipped uint64 // something newer made them wrong to send
}

// counters are the live form of Counts.
type counters struct{ sent, retried, dead, skipped atomic.Uint64 }

// Stats returns the counts of each kind of entry. It costs nothing and may be
// called at any time.
func (d *Dispatcher) Stats() map[string]Counts {
	out := make(map[string]Counts, len(d.counters))
	for kind, c := range d.counters {
		out[kind] = Counts{Sent: c.sent.Load(), Retried: c.retried.Load(), Dead: c.dead.Load(), Skipped: c.skipped.Load()}
	}
	return out
}

func (d *Dispatcher) count(kind string, s ci.OutboxState) {
	c := d.counters[kind]
	if c == nil {
		return // a kind that this version does not know: its record says so
	}
	switch s {
	case ci.OutboxSent:
		c.sent.Add(1)
	case ci.OutboxPending:
		c.retried.Add(1)
	case ci.OutboxDead:
		c.dead.Add(1)
	case ci.OutboxSkipped:
		c.skipped.Add(1)
	}
}
