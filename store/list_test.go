package store_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// listed is what the naive model knows of a run.
type listed struct {
	id, project, branch string
	state               ci.State
}

// pageThrough reads a listing to its end; between the pages it calls between.
func pageThrough(t must, limit func() int, read func(store.Page) (ids []string, next string, err error), between func()) []string {
	t.Helper()
	var all []string
	var p store.Page
	for n := 0; ; n++ {
		p.Limit = limit()
		ids, next, err := read(p)
		if err != nil {
			t.Fatalf("page %d: %v", n, err)
		}
		if len(ids) > p.Limit {
			t.Fatalf("%d of at most %d", len(ids), p.Limit)
		}
		all = append(all, ids...)
		if next == "" {
			return all
		}
		if n > 1000 {
			t.Fatalf("no end after %d pages", n)
		}
		p.Cursor = next
		between()
	}
}

// Ensure that whatever the filter and the sizes of the pages, one after
// another they are what a plain list gives, also while new runs come.
func TestRuns_PagesAreTheWholeList(t *testing.T) {
	s := storetest.MustOpen(t)
	projects := []string{"a", "a-1", "ab", "b"}
	branches := []string{"main", "m", "main/x", "main2"}
	var model []listed // oldest first
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		add := func(label string) {
			n++
			l := listed{project: rapid.SampledFrom(projects).Draw(rt, label), branch: rapid.SampledFrom(branches).Draw(rt, label)}
			var change []func(*store.Acceptance)
			if rapid.IntRange(0, 3).Draw(rt, label) == 0 {
				change = append(change, fromFork(1+n%3))
			}
			r := mustAccept(rt, s, pushed(fmt.Sprint("d-", n), l.project, l.branch, n, n+1, change...)).Runs[0]
			l.id, l.state = r.ID, r.State
			model = append(model, l)
			if rapid.Bool().Draw(rt, label) {
				if _, _, err := s.CancelRun(context.Background(), action(r.ID, "")); err != nil {
					rt.Fatalf("%v", err)
				}
				model[len(model)-1].state = ci.Cancelled
			}
		}
		for range rapid.IntRange(0, 3).Draw(rt, "new") {
			add("run")
		}
		f := store.RunFilter{
			Project: rapid.SampledFrom(append([]string{"", "none"}, projects...)).Draw(rt, "project"),
			Branch:  rapid.SampledFrom(append([]string{"", "none"}, branches...)).Draw(rt, "branch"),
			State:   rapid.SampledFrom([]ci.State{"", ci.Queued, ci.Held, ci.Cancelled, ci.Running}).Draw(rt, "state"),
		}
		var want []string
		for _, l := range slices.Backward(model) {
			if (f.Project == "" || f.Project == l.project) && (f.Branch == "" || f.Branch == l.branch) && (f.State == "" || f.State == l.state) {
				want = append(want, l.id)
			}
		}
		limit := func() int { return rapid.IntRange(1, 9).Draw(rt, "limit") }
		got := pageThrough(rt, limit, func(p store.Page) (ids []string, next string, err error) {
			list, next, err := s.Runs(f, p)
			for _, r := range list {
				ids = append(ids, r.ID)
			}
			return ids, next, err
		}, func() {
			if rapid.IntRange(0, 4).Draw(rt, "between") == 0 {
				add("meanwhile") // is newer than every page to come
			}
		})
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v:\n got %v\nwant %v", f, got, want)
		}
	})
}

func TestReceipts_PagesAreTheWholeList(t *testing.T) {
	s := storetest.MustOpen(t)
	type rec struct {
		id  string
		out ci.Outcome
	}
	var model []rec
	for i := range 45 {
		a := pushed(fmt.Sprint("d-", i), "api", "main", i, i+1)
		out := ci.Accepted
		if i%3 == 0 {
			a.Drafts, out = nil, ci.Ignored
		}
		mustAccept(t, s, a)
		model = append(model, rec{a.Delivery.ReceiptID().String(), out})
	}
	for _, outcome := range []ci.Outcome{"", ci.Accepted, ci.Ignored} {
		for _, size := range []int{1, 2, 7, 15, 30, 45, 46, 200} {
			var want []string
			for _, r := range slices.Backward(model) {
				if outcome == "" || outcome == r.out {
					want = append(want, r.id)
				}
			}
			got := pageThrough(t, func() int { return size }, func(p store.Page) (ids []string, next string, err error) {
				list, next, err := s.Receipts(outcome, p)
				for _, r := range list {
					ids = append(ids, r.ID)
				}
				return ids, next, err
			}, func() {})
			if !slices.Equal(got, want) {
				t.Fatalf("%q in pages of %d: %v, want %v", outcome, size, got, want)
			}
		}
	}
}

func TestEntriesAndDecisions_PagesAreTheWholeList(t *testing.T) {
	s := storetest.MustOpen(t)
	entries := map[ci.OutboxState][]string{}
	var decided []string
	states := []ci.OutboxState{ci.OutboxPending, ci.OutboxSent, ci.OutboxDead, ci.OutboxSkipped}
	for i := range 24 {
		r := mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
		e := entriesOf(t, s, r.ID, "")[0]
		state := states[i%4]
		switch state {
		case ci.OutboxSkipped:
			_, _, err := s.DiscardEntry(t.Context(), store.EntryAction{ID: e.ID, By: operator})
			mustNil(t, err)
			decided = append([]string{r.ID}, decided...)
		case ci.OutboxSent, ci.OutboxDead:
			mustEnd(t, s, mustBegin(t, s, e.ID), store.AttemptResult{State: state, Error: "x"})
		}
		entries[state] = append([]string{e.ID}, entries[state]...)
		entries[""] = append([]string{e.ID}, entries[""]...)
	}
	for _, size := range []int{1, 2, 5, 6, 7, 23, 24, 25, 200} {
		limit := func() int { return size }
		for state, want := range entries {
			got := pageThrough(t, limit, func(p store.Page) (ids []string, next string, err error) {
				list, next, err := s.Entries(state, p)
				for _, e := range list {
					if state != "" && e.State != state {
						t.Fatalf("%s among %s", e.State, state)
					}
					ids = append(ids, e.ID)
				}
				return ids, next, err
			}, func() {})
			if !slices.Equal(got, want) {
				t.Fatalf("%q in pages of %d: %v, want %v", state, size, got, want)
			}
		}
		got := pageThrough(t, limit, func(p store.Page) (runs []string, next string, err error) {
			list, next, err := s.Decisions("", p)
			for _, d := range list {
				if d.Kind == ci.DecisionDiscarded {
					runs = append(runs, d.Run)
				}
			}
			return runs, next, err
		}, func() {})
		if !slices.Equal(got, decided) {
			t.Fatalf("decisions in pages of %d: %v, want %v", size, got, decided)
		}
	}
	if d := decisionsOf(t, s, decided[0]); len(d) != 1 || d[0].Run != decided[0] {
		t.Fatalf("decisions of one run: %+v", d)
	}
	if d := decisionsOf(t, s, "api"); len(d) != 0 {
		t.Fatalf("decisions of half an id: %+v", d)
	}
}

// Ensure that every listing keeps to the same bounds.
func TestPage_Bounds(t *testing.T) {
	s := storetest.MustOpen(t)
	for i := range 201 {
		mustAccept(t, s, pushed(fmt.Sprint("d-", i), "api", "main", i, i+1))
	}
	for _, d := range mustScopes(t, s, 1)[0].Moves {
		_, _, err := s.CancelRun(t.Context(), action(d.Run.ID, ""))
		mustNil(t, err)
	}
	listings := map[string]func(store.Page) (int, string, error){
		"runs": func(p store.Page) (int, string, error) {
			l, n, err := s.Runs(store.RunFilter{}, p)
			return len(l), n, err
		},
		"receipts":  func(p store.Page) (int, string, error) { l, n, err := s.Receipts("", p); return len(l), n, err },
		"entries":   func(p store.Page) (int, string, error) { l, n, err := s.Entries("", p); return len(l), n, err },
		"decisions": func(p store.Page) (int, string, error) { l, n, err := s.Decisions("", p); return len(l), n, err },
	}
	for name, read := range listings {
		for limit, want := range map[int]int{0: store.DefaultLimit, 1: 1, 200: 200} {
			if n, next, err := read(store.Page{Limit: limit}); err != nil || n != want || next == "" {
				t.Errorf("%s, limit %d: %d, next %q, %v", name, limit, n, next, err)
			}
		}
		for _, limit := range []int{-1, 201, 1 << 40} {
			if _, _, err := read(store.Page{Limit: limit}); ci.CodeOf(err) != ci.CodeInvalid {
				t.Errorf("%s, limit %d: %v", name, limit, err)
			}
		}
		for _, cursor := range []string{"x", "AAAAAAAAAAA", "AAAAAAAAAAAB", "nonsense!", "AAAAAAAAAA=", base64.StdEncoding.EncodeToString([]byte("12345678"))} {
			if _, _, err := read(store.Page{Cursor: cursor}); ci.CodeOf(err) != ci.CodeInvalid {
				t.Errorf("%s, cursor %q: %v", name, cursor, err)
			}
		}
		if n, next, err := read(store.Page{Cursor: base64.RawURLEncoding.EncodeToString([]byte{0, 0, 0, 0, 0, 0, 0, 1})}); n != 0 || next != "" || err != nil {
			t.Errorf("%s, before the first: %d, %q, %v", name, n, next, err)
		}
		if n, _, err := read(store.Page{Cursor: base64.RawURLEncoding.EncodeToString([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))}); n != store.DefaultLimit || err != nil {
			t.Errorf("%s, after the last: %d, %v", name, n, err)
		}
	}
}

func TestRuns_OfNothing(t *testing.T) {
	s := storetest.MustOpen(t)
	for _, f := range []store.RunFilter{{}, {Project: "x"}, {Branch: "x"}, {State: ci.Queued}, {State: "nonsense"}} {
		if list, next, err := s.Runs(f, store.Page{}); list == nil || len(list) != 0 || next != "" || err != nil {
			t.Fatalf("%+v: %v %q %v", f, list, next, err)
		}
	}
}
