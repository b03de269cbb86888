package recovery

import (
	"cmp"
	"slices"
	"time"

	"docket/store/ci"
)

// maxGrace bounds how long a head's delivery is waited for before the head is listed.
const maxGrace = 5 * time.Minute

// Grace is how long the delivery of a head that was just seen may be on its
// way: two rounds, and five minutes at most.
func Grace(every time.Duration) time.Duration { return min(2*every, maxGrace) }

// Heads is what a project's heads are compared by.
type Heads struct {
	Now  time.Time
	List []ci.Head // every branch, tag and open pull request at the provider
	// First: nothing was compared before, so all there is is taken as known.
	First bool
	Known map[string]string        // key of a head -> the commit that is accounted for
	Open  map[string]ci.MissedHead // those that are not, by key
	// Told are the keys of those moved heads that a run or a delivery is known of.
	Told map[string]bool
	// Match reports whether a head would start a run.
	Match func(h *ci.Head, before string) bool
	Grace time.Duration
	// Hold: deliveries are still being recovered, so no head is listed yet.
	Hold bool
}

// HeadsOutcome is what a comparison of heads leads to. It is all that changes.
type HeadsOutcome struct {
	Known  map[string]string // accounted for from now on
	Open   []ci.MissedHead   // to be put on record
	Settle []string          // keys that are not open any more
	Gone   []string          // keys of heads that are not there any more
	Listed []ci.MissedHead   // all that no run is known of and whose delivery is waited for no longer
}

// None reports whether nothing changes.
func (o *HeadsOutcome) None() bool { return len(o.Known)+len(o.Open)+len(o.Settle)+len(o.Gone) == 0 }

// Moved returns the heads that are elsewhere than where they are known.
func Moved(list []ci.Head, known map[string]string) []ci.Head {
	var moved []ci.Head
	for i := range list {
		if known[list[i].Key()] != list[i].Commit {
			moved = append(moved, list[i])
		}
	}
	return moved
}

// Compare decides on every head of a project.
func (in *Heads) Compare() HeadsOutcome {
	out := HeadsOutcome{Known: map[string]string{}}
	there := map[string]bool{}
	for i := range in.List {
		h := &in.List[i]
		key := h.Key()
		there[key] = true
		before, open := in.Known[key], false
		if before != h.Commit {
			if in.First || in.Told[key] || !in.Match(h, before) {
				out.Known[key] = h.Commit
			} else {
				open = true
				in.open(h, before, &out)
			}
		}
		if _, was := in.Open[key]; was && !open {
			out.Settle = append(out.Settle, key)
		}
	}
	gone := map[string]bool{}
	for key := range in.Known {
		gone[key] = !there[key]
	}
	for key := range in.Open {
		gone[key] = !there[key]
	}
	for key, is := range gone {
		if is {
			out.Gone = append(out.Gone, key)
		}
	}
	slices.Sort(out.Gone)
	slices.Sort(out.Settle)
	byKey := func(a, b ci.MissedHead) int { return cmp.Compare(a.Key(), b.Key()) }
	slices.SortFunc(out.Open, byKey)
	slices.SortFunc(out.Listed, byKey)
	return out
}

// open decides on a head that no run is known of.
func (in *Heads) open(h *ci.Head, before string, out *HeadsOutcome) {
	m, was := in.Open[h.Key()]
	if !was || m.Commit != h.Commit {
		m = ci.MissedHead{Project: m.Project, Head: *h, Before: before, SeenAt: ci.At(in.Now)}
		was = false
	}
	if m.ListedAt.IsZero() && !in.Hold && in.Now.Sub(m.SeenAt.Time) >= in.Grace {
		m.ListedAt = ci.At(in.Now)
		was = false
	}
	if !was {
		out.Open = append(out.Open, m)
	}
	if !m.ListedAt.IsZero() {
		out.Listed = append(out.Listed, m)
	}
}
