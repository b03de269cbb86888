package ci_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/store/ci"
)

// pushes reads moves such as "-a ab bc": "-" is no commit.
func pushes(s string) []ci.Push {
	var out []ci.Push
	for i, m := range strings.Fields(s) {
		out = append(out, ci.Push{Run: fmt.Sprint(i), Before: strings.Trim(m[:1], "-"), After: strings.Trim(m[1:], "-")})
	}
	return out
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		what, moves string
		want        []int
	}{
		{"nothing", "", []int{}},
		{"one", "xa", []int{0}},
		{"in order", "xa ab bc", []int{0, 1, 2}},
		{"in order from a new branch", "-a ab bc", []int{0, 1, 2}},
		{"the last one late", "xa bc ab", []int{0, 2, 1}},
		{"backwards", "bc ab xa", []int{2, 1, 0}},
		{"a force push aside", "xa ab ac", []int{0, 1, 2}},
		{"a force push back", "xa ab ba", []int{0, 1, 2}},
		{"a force push back that overtook", "ba xa ab", []int{1, 2, 0}},
		{"a force push back over several", "xy ya ab bc ca", []int{0, 1, 2, 3, 4}},
		{"there, back and there again", "xa ax xa", []int{0, 1, 2}},
		{"there, back and on", "xa ab ba ac", []int{0, 1, 2, 3}},
		{"a ring is cut at the last arrival", "ab bc ca", []int{0, 1, 2}},
		{"a lost move: arrival decides", "xa bc", []int{0, 1}},
		{"a lost move in a long chain", "xa ab cd de", []int{0, 1, 2, 3}},
		{"unknown befores: arrival decides", "-a -b -c", []int{0, 1, 2}},
		{"made again elsewhere", "-a ab -c", []int{0, 1, 2}},
		{"made again at an old commit", "xa ab -a", []int{0, 1, 2}},
		{"a lost move away, and back", "-a ab ba ca", []int{0, 1, 2, 3}},
		{"two hooks", "xa xa ab ab", []int{0, 1, 2, 3}},
		{"a replay of an old push", "xa ab bc ab", []int{0, 1, 3, 2}},
		{"a replay of the first push", "xa ab bc xa", []int{0, 3, 1, 2}},
		{"a replay of a branch's beginning", "-a ab -a", []int{0, 2, 1}},
		{"a replay of the newest push", "xa ab ab", []int{0, 1, 2}},
		{"a push that moved nothing", "xa aa", []int{0, 1}},
		{"deleted", "xa ab b-", []int{0, 1, 2}},
		{"deleted, the deletion first", "b- ab xa", []int{2, 1, 0}},
		{"deleted and made anew", "xa ab b- -c", []int{0, 1, 2, 3}},
		{"made anew before its deletion was told", "xa ab -c b-", []int{0, 1, 3, 2}},
		{"made anew, and its old life last", "-c b- xa ab", []int{2, 3, 1, 0}},
		{"made anew where it was deleted", "xa a- -a", []int{0, 1, 2}},
		{"a ring beside a deletion", "c- ab ba", []int{0, 1, 2}},
		{"deleted after a move that was lost", "xa b-", []int{1, 0}},
	} {
		t.Run(tc.what, func(t *testing.T) {
			p := pushes(tc.moves)
			got := ci.Order(p)
			if !slices.Equal(got, tc.want) {
				t.Fatalf("Order(%s) = %v, want %v", tc.moves, got, tc.want)
			}
			newest := ci.Newest(p)
			if len(got) == 0 {
				if newest != -1 {
					t.Errorf("Newest of nothing = %d", newest)
				}
				return
			}
			if newest != got[len(got)-1] {
				t.Errorf("Newest = %d, Order = %v", newest, got)
			}
		})
	}
}

// Ensure that for a chain of new commits no permutation of arrivals changes
// the order.
func TestOrder_OfAChainIgnoresArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "moves")
		var chain []ci.Push
		before := rapid.SampledFrom([]string{"", "c0"}).Draw(t, "before")
		for i := 1; i <= n; i++ {
			after := fmt.Sprintf("c%d", i)
			chain = append(chain, ci.Push{Run: fmt.Sprint(i), Before: before, After: after})
			before = after
		}
		arrived := rapid.Permutation(chain).Draw(t, "arrival")
		for at, i := range ci.Order(arrived) {
			if arrived[i] != chain[at] {
				t.Fatalf("place %d of %v is %v, want %v", at, arrived, arrived[i], chain[at])
			}
		}
	})
}

// Ensure that for a ref that wanders between few commits, in whatever order
// its moves arrive, the newest head is where it ended; if it ended where it
// began there is no end to see, and arrival decides.
func TestNewest_OfAWanderingRef(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits := []string{"a", "b", "c", "d"}
		start := rapid.SampledFrom(append([]string{""}, commits...)).Draw(t, "start")
		at := start
		var walk []ci.Push
		for i := range rapid.IntRange(1, 12).Draw(t, "moves") {
			next := rapid.SampledFrom(commits).Filter(func(s string) bool { return s != at }).Draw(t, "next")
			walk = append(walk, ci.Push{Run: fmt.Sprint(i), Before: at, After: next})
			at = next
		}
		if got := ci.Newest(walk); walk[got].After != at && start != "" {
			t.Fatalf("in order: newest of %v is %v, want the end %s", walk, walk[got], at)
		}
		if at == start {
			return
		}
		arrived := rapid.Permutation(walk).Draw(t, "arrival")
		if got := ci.Newest(arrived); arrived[got].After != at {
			t.Fatalf("newest of %v is %v, want the end %s", arrived, arrived[got], at)
		}
	})
}

// Ensure that whatever arrives, also with moves lost and repeated, Order is a
// permutation, Older is a strict order that agrees with it, and a chain whose
// last move arrived in order ends with it.
func TestOrder_OfAnythingIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commit := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"})
		var p []ci.Push
		for i := range rapid.IntRange(0, 10).Draw(t, "moves") {
			p = append(p, ci.Push{Run: fmt.Sprint(i), Before: commit.Draw(t, "before"), After: commit.Filter(func(s string) bool { return s != "" }).Draw(t, "after")})
		}
		order := ci.Order(p)
		sorted := slices.Sorted(slices.Values(order))
		for i, k := range sorted {
			if i != k || len(order) != len(p) {
				t.Fatalf("Order(%v) = %v is no permutation", p, order)
			}
		}
		for a, i := range order {
			for b, j := range order {
				if got := ci.Older(p, i, j); got != (a < b) {
					t.Fatalf("Older(%v, %d, %d) = %v, Order = %v", p, i, j, got, order)
				}
			}
		}
	})
}

// Ensure that lost moves leave the parts of a chain in order.
func TestOrder_WithLostMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "moves")
		var left []ci.Push
		for i := range n {
			if i == n-1 || rapid.Bool().Draw(t, "arrives") {
				left = append(left, ci.Push{Run: fmt.Sprint(i), Before: fmt.Sprintf("c%d", i), After: fmt.Sprintf("c%d", i+1)})
			}
		}
		for at, i := range ci.Order(left) {
			if at != i {
				t.Fatalf("Order(%v) = %v", left, ci.Order(left))
			}
		}
		arrived := rapid.Permutation(left).Draw(t, "arrival")
		for i := range arrived {
			for j := range arrived {
				if arrived[i].After == arrived[j].Before && !ci.Older(arrived, i, j) {
					t.Fatalf("in %v, %v is not older than %v", arrived, arrived[i], arrived[j])
				}
			}
		}
	})
}
