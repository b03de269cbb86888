package ci

import "slices"

// Fate is what becomes of a move of a ref once the ref's deletion is told.
type Fate byte

const (
	// Lives: the move belongs to a life that began after the deletion.
	Lives Fate = iota
	// Ended: the deletion ended it, and the chain shows it.
	Ended
	// Lost: the deletion ended it, and no chain shows it: moves are missing.
	Lost
)

// Deleted tells what becomes of a ref's moves, in order of arrival, as it is
// told only now that the ref was deleted at a commit. known is false where no
// move leads there: then arrival decides, and all of them ended.
//
// Where the chain shows which moves the deletion ended, others live on if their
// life began with a push without a Before: it may have begun after the deletion.
func Deleted(moves []Push, at string) (fate []Fate, known bool) {
	fate = make([]Fate, len(moves))
	known = at != "" && slices.ContainsFunc(moves, func(p Push) bool { return p.After == at })
	began := make([]bool, len(moves))
	for i, p := range moves {
		if p.Before == "" && p.After != "" {
			for _, k := range from(moves, i) {
				began[k] = true
			}
		}
	}
	whole := append(slices.Clip(moves), Push{Before: at})
	order := Order(whole)
	end := slices.Index(order, len(moves))
	for i := range moves {
		switch place := slices.Index(order, i); {
		case !known, !began[i] && place > end:
			fate[i] = Lost
		case place < end:
			fate[i] = Ended
		}
	}
	return fate, known
}

// from returns the moves that moves[i] leads to, itself first.
func from(moves []Push, i int) []int {
	list := []int{i}
	for n := 0; n < len(list); n++ {
		at := moves[list[n]].After
		for k, p := range moves {
			if at != "" && p.Before == at && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	return list
}
