package ci_test

import (
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that each pair of states is allowed or not as this table says; a
// dash is a move that must never happen.
func TestCanMove_EveryPair(t *testing.T) {
	const table = `
             preparing held queued running succeeded failed cancelled superseded interrupted
preparing    -         yes  yes    -       -         yes    yes       yes        -
held         -         -    yes    -       -         -      yes       yes        -
queued       -         -    -      yes     -         -      yes       yes        -
running      -         -    yes    -       yes       yes    yes       yes        yes
succeeded    -         -    -      -       -         -      -         -          -
failed       -         -    -      -       -         -      -         -          -
cancelled    -         -    -      -       -         -      -         -          -
superseded   -         -    -      -       -         -      -         -          -
interrupted  -         -    -      -       -         -      -         -          -`
	lines := strings.Split(strings.TrimSpace(table), "\n")
	to := strings.Fields(lines[0])
	if len(to) != len(ci.States) || len(lines) != len(ci.States)+1 {
		t.Fatalf("the table has %d states, and there are %d", len(to), len(ci.States))
	}
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		for i, cell := range f[1:] {
			if got := ci.CanMove(ci.State(f[0]), ci.State(to[i])); got != (cell == "yes") {
				t.Errorf("%s to %s: %v", f[0], to[i], got)
			}
		}
	}
	for _, odd := range []ci.State{"", "nonsense"} {
		if ci.CanMove(odd, ci.Queued) || ci.CanMove(ci.Queued, odd) {
			t.Errorf("a move from or to %q", odd)
		}
	}
}

func TestState_Kinds(t *testing.T) {
	for s, want := range map[ci.State]struct{ final, pending, valid bool }{
		ci.Preparing: {false, true, true}, ci.Held: {false, true, true}, ci.Queued: {false, true, true},
		ci.Running: {false, false, true}, ci.Succeeded: {true, false, true}, ci.Failed: {true, false, true},
		ci.Cancelled: {true, false, true}, ci.Superseded: {true, false, true}, ci.Interrupted: {true, false, true},
		"": {}, "Queued": {},
	} {
		if s.Final() != want.final || s.Pending() != want.pending || s.Valid() != want.valid {
			t.Errorf("%q: final %v, pending %v, valid %v", s, s.Final(), s.Pending(), s.Valid())
		}
	}
	// An end has no way out, and every other state has one.
	for _, s := range ci.States {
		out := false
		for _, to := range ci.States {
			out = out || ci.CanMove(s, to)
		}
		if out == s.Final() {
			t.Errorf("%s: final %v, and a way out %v", s, s.Final(), out)
		}
	}
}
