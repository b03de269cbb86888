package store_test

import (
	"fmt"
	"slices"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that a cursor is either refused or one that docket could have given:
// it leads to the older part of the listing, in order, and on to its end.
func FuzzCursor(f *testing.F) {
	s := storetest.MustOpen(f)
	var all []string
	for i := range 7 {
		all = append(all, mustPush(f, s, fmt.Sprint("d-", i), i, i+1, withPolicy(ci.SupersedeNone)).ID)
	}
	slices.Reverse(all)
	for _, n := range []uint64{1, 2, 8, 1 << 63, 1<<64 - 1} {
		f.Add(store.CursorAt(n), 1)
	}
	f.Add("AAAAAAAAAAF", 50) // bits that no byte has
	f.Add("AAAAAAAAAAA", 0)
	f.Add("AAAA\nAAAAAAE", 10)
	f.Add("", 201)
	f.Fuzz(func(t *testing.T, cursor string, limit int) {
		p := store.Page{Limit: limit, Cursor: cursor}
		list, next, err := s.Runs(store.RunFilter{}, p)
		for what, list := range map[string]func() error{
			"a filter":  func() error { _, _, err := s.Runs(store.RunFilter{Project: "api", Branch: "main"}, p); return err },
			"receipts":  func() error { _, _, err := s.Receipts("", p); return err },
			"entries":   func() error { _, _, err := s.Entries("", p); return err },
			"decisions": func() error { _, _, err := s.Decisions("", p); return err },
		} {
			if got := list(); ci.CodeOf(got) != ci.CodeOf(err) {
				t.Fatalf("%s: %v, but runs: %v", what, got, err)
			}
		}
		if err != nil {
			if ci.CodeOf(err) != ci.CodeInvalid || list != nil || next != "" {
				t.Fatalf("%v %q, %v", list, next, err)
			}
			return
		}
		if cursor != "" && store.CursorAt(mustCursor(t, p)) != cursor {
			t.Fatalf("%q was taken and is no cursor of docket's", cursor)
		}
		got := idsOf(list)
		for next != "" {
			if len(list) == 0 || len(list) > store.MaxLimit {
				t.Fatalf("a page of %d and a cursor to go on from", len(list))
			}
			p.Cursor = next
			list, next, err = s.Runs(store.RunFilter{}, p)
			mustNil(t, err)
			got = append(got, idsOf(list)...)
		}
		if n := len(all) - len(got); n < 0 || !slices.Equal(got, all[n:]) || cursor == "" && n != 0 {
			t.Fatalf("from %q: %v", cursor, got)
		}
	})
}

func mustCursor(t *testing.T, p store.Page) uint64 {
	t.Helper()
	before, err := store.CursorOf(p)
	mustNil(t, err)
	return before
}
