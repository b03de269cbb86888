package pipeline

import (
	"fmt"

	"docket/store/ci"
)

// Candidate is a run of a scope, as superseding sees it.
type Candidate struct {
	ci.Push
	State     ci.State
	Deploying bool // it has entered a deploy step
	Event     bool // an event started it, not a person
	Fork      bool // it is held once it is prepared
	Undecided bool // a filter may still keep it from running
	Bridge    bool // no run: it only shows how the others follow

	SupersededBy string // the run that it gave way to, or is being stopped for
}

// waits reports whether a person has yet to approve the run.
func (c Candidate) waits() bool { return c.State == ci.Held || c.State == ci.Preparing && c.Fork }

// Verdict says that a run gives way to another.
type Verdict struct {
	Run    string
	By     string // the run that takes its place
	Reason string
}

// Supersede decides which runs of one scope give way. runs are in order of
// arrival, all that are not final and those final ones that a late push may
// meet, of one life of the ref: none from before it was last deleted.
//
// An older run gives way to the newest one if it has not begun, under
// SupersedeRunning also if it runs; never if it is final or deploys, or if a
// person started it or the other. Which is newer ci.Order decides. A run that waits
// or will wait for approval takes the place only of those that wait too. A run that
// has ended takes the place only of a push that arrived after it and that the
// chain puts before it. A run that a filter may still stop takes nobody's place
// before that is known. Who gives way takes nobody's place, also if it did so
// before a push was known that shows it to be the newer one: its head is never
// built.
func Supersede(policy ci.SupersedePolicy, runs []Candidate) []Verdict {
	if policy != ci.SupersedePending && policy != ci.SupersedeRunning {
		return nil
	}
	order, at := inOrder(runs)
	by := make([]int, len(runs))           // 1 + the index of the run that takes the place
	for k := len(order) - 1; k >= 0; k-- { // those that could take its place are decided before
		old := at[order[k]]
		for j := len(order) - 1; j > k; j-- {
			if next := at[order[j]]; by[next] == 0 && yields(policy, runs[old]) && takes(runs, next, old) {
				by[old] = next + 1
				break
			}
		}
	}
	var out []Verdict
	for i, c := range runs {
		if by[i] > 0 {
			out = append(out, Verdict{Run: c.Run, By: runs[by[i]-1].Run, Reason: reason(runs, i, by[i]-1)})
		}
	}
	return out
}

// inOrder returns the order, from the oldest to the newest, of the runs that
// events started; at has their places in runs.
func inOrder(runs []Candidate) (order, at []int) {
	var pushes []ci.Push
	for i, c := range runs {
		if c.Event || c.Bridge {
			pushes, at = append(pushes, c.Push), append(at, i)
		}
	}
	return ci.Order(pushes), at
}

// Restore returns the run of one scope that is to be made anew, "" for none:
// the newest one, where it gave way to one that is now known to be older.
// Its ref was not deleted since.
func Restore(policy ci.SupersedePolicy, runs []Candidate) string {
	if policy != ci.SupersedePending && policy != ci.SupersedeRunning {
		return ""
	}
	order, at := inOrder(runs)
	for k := len(order) - 1; k >= 0; k-- {
		newest := runs[at[order[k]]]
		switch {
		case newest.Bridge && newest.After != "":
			continue // a filter stopped it
		case newest.Bridge, newest.State != ci.Superseded:
			return ""
		}
		for _, older := range order[:k] {
			if runs[at[older]].Run == newest.SupersededBy {
				return newest.Run
			}
		}
		return ""
	}
	return ""
}

// yields reports whether a run may have to give way at all.
func yields(policy ci.SupersedePolicy, c Candidate) bool {
	switch {
	case c.Deploying, c.Bridge:
		return false
	case c.State.Pending():
		return true
	}
	return c.State == ci.Running && policy == ci.SupersedeRunning
}

// takes reports whether runs[next], the newer one, takes the place of runs[old].
func takes(runs []Candidate, next, old int) bool {
	switch by := runs[next]; {
	case by.State == ci.Superseded, by.Bridge, by.Undecided:
		return false
	case by.State.Final():
		return old > next
	case by.waits():
		return runs[old].waits()
	}
	return true
}

func reason(runs []Candidate, old, next int) string {
	by := runs[next]
	if old > next {
		return fmt.Sprintf("arrived late: %s already has %s, which came after it", by.Run, ci.ShortCommit(by.After))
	}
	return fmt.Sprintf("gave way to %s, which has the newer head %s", by.Run, ci.ShortCommit(by.After))
}
