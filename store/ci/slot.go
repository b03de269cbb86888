package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// SlotLayout is how a slot's local time is written. Two of one schedule are
// in the order of their texts.
const SlotLayout = "2006-01-02 15:04"

// SlotRecord is how far a schedule has come. Its times are local ones of the
// schedule's zone, as SlotLayout has them: a slot is its local time, which no
// clock change and no step of the machine's clock can make come twice.
type SlotRecord struct {
	Schedule Schedule `json:"schedule"`
	// Spans are what is settled, in order and apart from each other, the
	// newest MaxSpans of them: every slot in one has had its run. What lies
	// between two was left out.
	Spans []SlotSpan `json:"spans"`
	Run   string     `json:"run,omitempty"` // the newest one that the schedule started
	// GoneAt is since when the configuration has it no more.
	GoneAt Time `json:"gone_at,omitzero"`
}

// SlotSpan is all of a schedule's slots from one local time to another, both
// included.
type SlotSpan struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// MaxSpans is how many spans a schedule's record keeps; the oldest are joined.
const MaxSpans = 8

// Key identifies a schedule within its project: another time table, zone or
// branch is another schedule.
func (s Schedule) Key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Cron, s.Timezone, s.Branch}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Zone is the name of the schedule's time zone.
func (s Schedule) Zone() string {
	if s.Timezone == "" {
		return "UTC"
	}
	return s.Timezone
}

// Valid reports whether the record can be read by a schedule.
func (r *SlotRecord) Valid() bool {
	before := ""
	for _, span := range r.Spans {
		if !validSlot(span.From) || !validSlot(span.To) || span.From <= before || span.To < span.From {
			return false
		}
		before = span.To
	}
	return len(r.Spans) > 0 && len(r.Spans) <= MaxSpans
}

func validSlot(s string) bool {
	t, err := time.Parse(SlotLayout, s)
	return err == nil && t.Format(SlotLayout) == s
}
