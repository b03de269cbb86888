package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// candidates reads runs such as "xa:queued ab:running:deploying", named r0, r1...
// Words after the state: deploying, manual, fork.
func candidates(s string) []pipeline.Candidate {
	var out []pipeline.Candidate
	for i, f := range strings.Fields(s) {
		w := strings.Split(f, ":")
		out = append(out, pipeline.Candidate{
			Push:      ci.Push{Run: fmt.Sprintf("r%d", i), Before: strings.Trim(w[0][:1], "-"), After: w[0][1:]},
			State:     ci.State(w[1]),
			Deploying: slices.Contains(w[2:], "deploying"),
			Event:     !slices.Contains(w[2:], "manual"),
			Fork:      slices.Contains(w[2:], "fork"),
		})
	}
	return out
}

func TestSupersede(t *testing.T) {
	for what, tc := range map[string]struct {
		policy ci.SupersedePolicy
		runs   string
		want   string // "old>new" of each verdict
	}{
		"nothing":                                   {ci.SupersedePending, "", ""},
		"one alone":                                 {ci.SupersedePending, "xa:queued", ""},
		"an older queued one gives way":             {ci.SupersedePending, "xa:queued ab:queued", "r0>r1"},
		"an older preparing one gives way":          {ci.SupersedePending, "xa:preparing ab:queued", "r0>r1"},
		"to one that is still preparing":            {ci.SupersedePending, "xa:queued ab:preparing", "r0>r1"},
		"to one that runs":                          {ci.SupersedePending, "xa:queued ab:running", "r0>r1"},
		"all older ones give way to the newest":     {ci.SupersedePending, "xa:queued ab:preparing bc:queued", "r0>r2 r1>r2"},
		"a running one stays under pending":         {ci.SupersedePending, "xa:running ab:queued", ""},
		"a running one gives way under running":     {ci.SupersedeRunning, "xa:running ab:queued", "r0>r1"},
		"a deploying one never":                     {ci.SupersedeRunning, "xa:running:deploying ab:queued", ""},
		"a deploying one that waits neither":        {ci.SupersedeRunning, "xa:queued:deploying ab:queued", ""},
		"policy none":                               {ci.SupersedeNone, "xa:queued ab:queued", ""},
		"an unknown policy":                         {"", "xa:queued ab:queued", ""},
		"final ones stay what they are":             {ci.SupersedeRunning, "xa:succeeded ab:cancelled bc:queued", ""},
		"a manual run is not touched":               {ci.SupersedeRunning, "xa:queued:manual ab:queued", ""},
		"a manual run touches none":                 {ci.SupersedeRunning, "xa:queued ab:queued:manual", ""},
		"a manual run in between is no link either": {ci.SupersedeRunning, "xa:queued ab:queued:manual bc:queued", "r0>r2"},

		"a late push gives way at once":                        {ci.SupersedePending, "xa:succeeded bc:queued ab:queued", "r2>r1"},
		"a late push gives way to what runs":                   {ci.SupersedePending, "ab:running xa:queued", "r1>r0"},
		"a late push gives way to what has ended":              {ci.SupersedePending, "ab:succeeded xa:queued", "r1>r0"},
		"a late push gives way to the newest that has ended":   {ci.SupersedePending, "ab:failed bc:succeeded xa:preparing", "r2>r1"},
		"a late push that runs stays under pending":            {ci.SupersedePending, "ab:succeeded xa:running", ""},
		"what has ended takes no place from those before it":   {ci.SupersedePending, "xa:queued ab:failed", ""},
		"no chain: what has ended takes no place":              {ci.SupersedePending, "xa:succeeded -b:queued", ""},
		"no chain: arrival decides":                            {ci.SupersedePending, "xa:queued -b:queued", "r0>r1"},
		"a force push back is the newest":                      {ci.SupersedePending, "xa:queued ab:queued ba:queued", "r0>r2 r1>r2"},
		"a replay of an old push does not displace the newest": {ci.SupersedePending, "xa:succeeded ab:queued xa:queued", "r2>r1"},

		"what gave way takes no place, though it proves to be newer": {ci.SupersedePending, "cd:superseded ab:queued bc:queued", "r1>r2"},
		"nor that of a late push that is alone":                      {ci.SupersedePending, "bc:superseded -a:succeeded ab:queued", ""},
		"nor does a late push that gives way itself":                 {ci.SupersedePending, "-b:queued ca:succeeded -b:queued", "r2>r1"},
		"a late push gives way to what others gave way to":           {ci.SupersedePending, "bc:superseded cd:succeeded ab:queued", "r2>r1"},

		"a held one takes no place from a queued one":         {ci.SupersedeRunning, "xa:queued ab:held", ""},
		"nor from a running one":                              {ci.SupersedeRunning, "xa:running ab:held", ""},
		"a fork's that is preparing takes none either":        {ci.SupersedeRunning, "xa:queued ab:preparing:fork", ""},
		"a held one takes a held one's place":                 {ci.SupersedePending, "xa:held ab:held", "r0>r1"},
		"a fork's that is preparing takes a held one's place": {ci.SupersedePending, "xa:held ab:preparing:fork", "r0>r1"},
		"a held one gives way to a queued one":                {ci.SupersedePending, "xa:held ab:queued", "r0>r1"},
		"a queued one looks past a held one":                  {ci.SupersedePending, "xa:queued ab:held bc:queued cd:held", "r0>r2 r1>r3"},
		"past a held one the chain still holds":               {ci.SupersedePending, "bc:queued ab:held xa:queued", "r1>r0 r2>r0"},
	} {
		t.Run(what, func(t *testing.T) {
			runs := candidates(tc.runs)
			var got []string
			for _, v := range pipeline.Supersede(tc.policy, runs) {
				got = append(got, v.Run+">"+v.By)
				if v.Reason == "" || !strings.Contains(v.Reason, v.By) {
					t.Errorf("the reason for %s is %q", v.Run, v.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestSupersede_Reasons(t *testing.T) {
	runs := candidates("xa:queued ab:queued")
	runs[1].After = shaA
	if got, want := pipeline.Supersede(ci.SupersedePending, runs)[0].Reason, "gave way to r1, which has the newer head 6dcb09b"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	late := candidates("ab:succeeded xa:queued")
	if got, want := pipeline.Supersede(ci.SupersedePending, late)[0].Reason, "arrived late: r0 already has b, which came after it"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

// Ensure that whatever the runs, nobody gives way who may not, the newest of
// those that are alive stays, and deciding again changes nothing.
func TestSupersede_Always(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commit := rapid.SampledFrom([]string{"-", "a", "b", "c", "d"})
		var runs []pipeline.Candidate
		for i := range rapid.IntRange(0, 8).Draw(t, "runs") {
			runs = append(runs, pipeline.Candidate{
				Push:      ci.Push{Run: fmt.Sprintf("r%d", i), Before: strings.Trim(commit.Draw(t, "before"), "-"), After: commit.Draw(t, "after")},
				State:     rapid.SampledFrom(ci.States).Draw(t, "state"),
				Deploying: rapid.Bool().Draw(t, "deploying"),
				Event:     rapid.Bool().Draw(t, "event"),
				Fork:      rapid.Bool().Draw(t, "fork"),
			})
		}
		policy := rapid.SampledFrom([]ci.SupersedePolicy{ci.SupersedeNone, ci.SupersedePending, ci.SupersedeRunning}).Draw(t, "policy")
		at := func(id string) *pipeline.Candidate {
			return &runs[slices.IndexFunc(runs, func(c pipeline.Candidate) bool { return c.Run == id })]
		}
		verdicts := pipeline.Supersede(policy, runs)
		yielded := map[string]bool{}
		for _, v := range verdicts {
			old, by := at(v.Run), at(v.By)
			if yielded[v.Run] || v.Run == v.By || !old.Event || !by.Event || old.Deploying || old.State.Final() || policy == ci.SupersedeNone ||
				old.State == ci.Running && policy != ci.SupersedeRunning || by.State == ci.Held && old.State != ci.Held && !(old.State == ci.Preparing && old.Fork) {
				t.Fatalf("%+v may not give way to %+v", old, by)
			}
			yielded[v.Run] = true
		}
		for _, v := range verdicts {
			if yielded[v.By] {
				t.Fatalf("%s gives way to %s, which gives way itself: %+v", v.Run, v.By, verdicts)
			}
		}
		for id := range yielded {
			at(id).State = ci.Superseded
		}
		if again := pipeline.Supersede(policy, runs); len(again) > 0 {
			t.Fatalf("decided again: %+v", again)
		}
	})
}
