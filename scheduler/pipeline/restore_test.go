package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// scopeRuns reads runs such as "ab:queued cd:superseded>0 bc:bridge de:preparing?",
// named r0, r1... ">0" says for which run it gave way, "?" that a filter may
// still stop it; a bridge is no run.
func scopeRuns(s string) []pipeline.Candidate {
	var out []pipeline.Candidate
	for i, f := range strings.Fields(s) {
		move, state, _ := strings.Cut(f, ":")
		state, by, _ := strings.Cut(state, ">")
		state, undecided := strings.CutSuffix(state, "?")
		c := pipeline.Candidate{
			Push:  ci.Push{Run: fmt.Sprintf("r%d", i), Before: strings.Trim(move[:1], "-"), After: strings.Trim(move[1:], "-")},
			State: ci.State(state), Event: true, Undecided: undecided,
		}
		if by != "" {
			c.SupersededBy = "r" + by
		}
		if state == "bridge" {
			c.Bridge, c.Event, c.State, c.Run = true, false, "", ""
		}
		out = append(out, c)
	}
	return out
}

// Ensure that only the newest run is made anew, and only where it gave way to
// one that is older.
func TestRestore(t *testing.T) {
	for what, tc := range map[string]struct{ runs, want string }{
		"nothing":                        {"", ""},
		"the newest goes on":             {"xa:superseded>1 ab:queued", ""},
		"it gave way to an older one":    {"cd:superseded>1 xa:superseded>2 ab:superseded>3 bc:queued", "r0"},
		"one that is not the newest":     {"bc:superseded>1 xa:queued ab:queued cd:running", ""},
		"to one that is newer all right": {"xa:queued ab:superseded>0 ", "r1"},
		"to one that is not known":       {"xa:queued ab:superseded>9", ""},
		"a filter stopped the newest":    {"ab:superseded>1 xa:queued bc:bridge", "r0"},
		"a bridge shows it":              {"cd:superseded>1 xa:queued ac:bridge", "r0"},
		"the branch is gone":             {"ab:superseded>1 xa:queued b-:bridge", ""},
	} {
		if got := pipeline.Restore(ci.SupersedePending, scopeRuns(tc.runs)); got != tc.want {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
		if got := pipeline.Restore(ci.SupersedeNone, scopeRuns(tc.runs)); got != "" {
			t.Errorf("%s: %q where nothing gives way", what, got)
		}
	}
}

// Ensure that what a filter may still stop takes nobody's place, gives way like
// any other, and that bridges do neither but tell the order.
func TestSupersede_OfWhatMayNotRun(t *testing.T) {
	for what, tc := range map[string]struct{ runs, want string }{
		"it takes no place":             {"xa:queued ab:preparing?", ""},
		"it gives way":                  {"xa:preparing? ab:queued", "r0>r1"},
		"the one behind it takes all":   {"xa:queued ab:preparing? bc:queued", "r0>r2 r1>r2"},
		"a bridge takes no place":       {"xa:queued ab:bridge", ""},
		"a bridge tells the order":      {"bc:queued ab:bridge xa:queued", "r2>r0"},
		"without it arrival would tell": {"bc:queued xa:queued", "r0>r1"},
	} {
		var got []string
		for _, v := range pipeline.Supersede(ci.SupersedePending, scopeRuns(tc.runs)) {
			got = append(got, v.Run+">"+v.By)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", what, got, tc.want)
		}
	}
}
