package scheduler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// moved is one delivery about a branch, written as "ab": from a to b. "-" is no
// commit; at the end "!" stands for a push that is ignored and "?" for one that
// is reported as skipped.
type moved string

func letter(c byte) string {
	if c == '-' {
		return ""
	}
	return strings.Repeat(fmt.Sprintf("%02x", c), 20)
}

func (m moved) before() string { return letter(m[0]) }
func (m moved) after() string  { return letter(m[1]) }

// deliver accepts a move of a project's main branch.
func (m moved) deliver(t *testing.T, s *store.Store, project string, serial int) {
	t.Helper()
	id := fmt.Sprintf("%s-%d", project, serial)
	e := ci.Event{
		Kind: ci.EventPush, Ref: "refs/heads/main", Branch: "main", Commit: m.after(), Before: m.before(),
		Repository: ci.Repository{ID: 7, FullName: "acme/" + project},
	}
	scope := project + " push 7 refs/heads/main"
	a := store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: id, Event: ci.EventPush, Body: []byte(id)},
		Projects: []string{project}, Reason: "ignored",
		Drafts: []ci.Draft{{
			Project: project, Integration: "github", State: ci.Queued, Context: "docket/" + project,
			Spec:   ci.Spec{Version: 1, CloneURL: "/nowhere", Report: true, Steps: []ci.Step{{Name: "test", Run: "true"}}},
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/" + id, Event: ci.EventPush},
			Source: ci.Source{Repository: e.Repository.FullName, Ref: e.Ref, Branch: "main", Commit: e.Commit, Before: e.Before},
			Scope:  scope, Supersede: ci.SupersedePending,
		}},
	}
	switch {
	case e.Commit == "":
		e.Deleted, a.Drafts = true, nil
		a.Cancels = []ci.Cancel{{Project: project, Scope: scope, Ref: e.Ref, Deleted: true, Reason: "the branch main was deleted"}}
	case strings.HasSuffix(string(m), "!"):
		a.Drafts = nil
	case strings.HasSuffix(string(m), "?"):
		a.Drafts[0].State, a.Drafts[0].Skip, a.Drafts[0].Reason = ci.Cancelled, true, "no file"
	}
	a.Event = e
	if _, err := s.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// permutations calls fn with each order of 0 to n-1.
func permutations(n int, fn func(order []int)) {
	var put func(order []int)
	put = func(order []int) {
		if len(order) == n {
			fn(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				put(append(slices.Clip(order), i))
			}
		}
	}
	put(nil)
}

// doubtful reports whether in an order of arrivals nothing tells whose life a
// deletion ended: it came before what led to it and after what came of it, or
// a push of the new life came before it and the new life's beginning did not.
func doubtful(arrived []string) bool {
	for i, m := range arrived {
		if m[1] != '-' {
			continue
		}
		before := arrived[:i]
		led := slices.ContainsFunc(before, func(p string) bool { return p[1] == m[0] })
		if !led && i > 0 {
			return true
		}
		for _, p := range before {
			for p[0] != '-' && p[1] != m[0] { // back to where it came from
				k := slices.IndexFunc(before, func(q string) bool { return q[1] == p[0] })
				if k < 0 {
					break
				}
				p = before[k]
			}
			if p[0] != '-' && p[1] != m[0] && !leadsTo(before, p, m[0]) {
				return true
			}
		}
	}
	return false
}

func leadsTo(moves []string, p string, commit byte) bool {
	for range moves {
		if p[1] == commit {
			return true
		}
		k := slices.IndexFunc(moves, func(q string) bool { return q[0] == p[1] })
		if k < 0 {
			return false
		}
		p = moves[k]
	}
	return false
}

var histories = []struct {
	what, moves string
	head        string // "-": none
}{
	{"pushes to a new branch", "-a ab bc cd de", "e"},
	{"pushes to an old branch", "xa ab bc cd", "d"},
	{"back to an old commit, and on", "xa ab bc ca ad", "d"},
	{"back to an old commit", "xa ab bc ca", "a"},
	{"deleted", "xa ab b-", "-"},
	{"deleted and made anew", "xa ab b- -c cd", "d"},
	{"made anew at its old commit", "-a a- -a ab", "b"},
	{"one that is ignored in between", "xa ab! bc cd", "d"},
	{"one that is skipped in between", "xa ab? bc cd", "d"},
	{"the newest one ignored", "xa ab bc!", "b"},
	{"the newest one skipped", "xa ab bc?", "b"},
}

// Ensure that in whatever order the deliveries of a branch's moves arrive, its
// latest is in the end the newest head that was to be built; that this one has
// a run which goes on, and no other; and that each run that gave way says so on
// its own commit, and says for which run.
func TestBranch_InEveryOrderOfItsDeliveries(t *testing.T) {
	s := storetest.MustOpen(t)
	sched := scheduler.New(scheduler.Options{Store: s, Config: func() *ci.Config { return &ci.Config{} }, Runner: newStage(), Boot: "this"})
	serial := 0
	for n, h := range histories {
		moves := strings.Fields(h.moves)
		permutations(len(moves), func(order []int) {
			var arrived []string
			for _, k := range order {
				arrived = append(arrived, moves[k])
			}
			if h.head != "-" && doubtful(arrived) {
				return
			}
			serial++
			project := fmt.Sprintf("p%d-%d", n, serial)
			for i, k := range order {
				moved(moves[k]).deliver(t, s, project, i)
				if err := sched.Decide(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			checkBranch(t, s, project, h.head, fmt.Sprintf("%s, as %v", h.what, arrived))
		})
	}
}

func checkBranch(t *testing.T, s *store.Store, project, want, what string) {
	t.Helper()
	h, err := s.HeadOf(project, "main")
	if want == "-" {
		if ci.CodeOf(err) != ci.CodeNotFound {
			t.Errorf("%s: the latest is %+v, %v", what, h, err)
		}
		return
	}
	if err != nil || h.Commit != letter(want[0]) || h.State != ci.Queued {
		t.Errorf("%s: the latest is %+v, %v", what, h, err)
	}
	runs, _, err := s.Runs(store.RunFilter{Project: project}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		switch {
		case r.ID == h.Run || r.Internal.Skip:
		case r.State == ci.Superseded:
			checkSuperseded(t, s, r, what)
		case r.State != ci.Cancelled:
			t.Errorf("%s: %s of %s is %s beside the newest, %s", what, r.ID, r.Source.Commit[:2], r.State, h.Run)
		}
	}
}

func checkSuperseded(t *testing.T, s *store.Store, r ci.Run, what string) {
	t.Helper()
	list, _, err := s.EntriesOf(r.ID, 100)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %s tells nothing: %v", what, r.ID, err)
	}
	var say ci.StatusPayload
	if err := json.Unmarshal(list[len(list)-1].Payload, &say); err != nil {
		t.Fatal(err)
	}
	if say.Commit != r.Source.Commit || say.State != "error" || say.Description != r.ID+" was superseded by run "+r.SupersededBy {
		t.Errorf("%s: %s says %s %q on %s", what, r.ID, say.State, say.Description, say.Commit[:2])
	}
}

// Ensure that where a push never came, so that arrival alone tells the order,
// the provider's word for where the branch is puts it right.
func TestBranch_TheProviderKnowsItsHead(t *testing.T) {
	for n, h := range []struct{ moves, head string }{
		{"xa ab cd de", "e"}, {"xa ab cd", "d"}, {"ab cd", "d"}, {"-a -c", "c"},
	} {
		now := time.Now()
		s := storetest.MustOpenAt(t, fmt.Sprintf("%s/docket.db", t.TempDir()), store.Options{Now: func() time.Time { return now }})
		sched := scheduler.New(scheduler.Options{Store: s, Config: func() *ci.Config { return &ci.Config{} }, Runner: newStage(), Boot: "this"})
		moves := strings.Fields(h.moves)
		serial := 0
		told := []ci.Head{{Ref: "refs/heads/main", Commit: letter(h.head[0])}, {Ref: "refs/heads/other", Commit: letter('z')}}
		see := func(project string, want int) {
			t.Helper()
			mark, err := s.Mark()
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.SeeHeads(t.Context(), project, mark, told)
			if err != nil || want >= 0 && got != want {
				t.Fatalf("%d heads were put right, want %d: %v", got, want, err)
			}
			if err := sched.Decide(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		permutations(len(moves), func(order []int) {
			serial++
			project := fmt.Sprintf("p%d-%d", n, serial)
			var arrived []string
			for i, k := range order {
				arrived = append(arrived, moves[k])
				moved(moves[k]).deliver(t, s, project, i)
				if err := sched.Decide(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			see(project, 0) // it moved just now: the provider may not know yet
			now = now.Add(time.Hour)
			see(project, -1)
			checkBranch(t, s, project, h.head, fmt.Sprintf("as %v", arrived))
			now = now.Add(time.Hour)
			see(project, 0)
		})
	}
}

// Ensure that the provider's word changes nothing where the moves tell where
// the branch is, or where it moved since.
func TestBranch_TheProviderIsHeardOnlyInDoubt(t *testing.T) {
	now := time.Now()
	s := storetest.MustOpenAt(t, t.TempDir()+"/docket.db", store.Options{Now: func() time.Time { return now }})
	for i, m := range []moved{"xa", "ab"} {
		m.deliver(t, s, "whole", i)
	}
	for i, m := range []moved{"cd", "xa"} {
		m.deliver(t, s, "late", i)
	}
	before, err := s.Mark()
	if err != nil {
		t.Fatal(err)
	}
	moved("ab").deliver(t, s, "late", 2)
	now = now.Add(time.Hour)
	for project, told := range map[string]string{"whole": "a", "late": "d"} {
		if n, err := s.SeeHeads(t.Context(), project, before, []ci.Head{{Ref: "refs/heads/main", Commit: letter(told[0])}}); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", project, n, err)
		}
	}
}
