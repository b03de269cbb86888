package ci

// Push is one move of a ref, as a run remembers it: what superseding and a
// branch's newest head are decided from.
type Push struct {
	Run    string
	Before string // "" for a new ref or an unknown one
	After  string
}

// Newest returns the index of the push that holds the ref's newest head, and
// -1 for none. pushes are in order of arrival. The before/after chain decides
// first: a push whose commit is where another one started is older than that
// one. Among heads that the chain leaves open, the last to arrive wins.
func Newest(pushes []Push) int {
	for i := len(pushes) - 1; i >= 0; i-- {
		if !followed(pushes, i) {
			return i
		}
	}
	return len(pushes) - 1 // a ring of force pushes: arrival decides
}

// followed reports whether the chain leads from pushes[i] on to another push
// that does not lead back to it.
func followed(pushes []Push, i int) bool {
	at := pushes[i].After
	seen := map[string]bool{at: true}
	moved := false
	for range pushes {
		next := ""
		for j := len(pushes) - 1; j >= 0; j-- {
			p := pushes[j]
			if j != i && p.Before == at && p.After != at {
				next = p.After
				break
			}
		}
		if next == "" {
			return moved
		}
		if seen[next] { // the ref came back here: which visit is this one?
			return false
		}
		seen[next], at, moved = true, next, true
	}
	return moved
}

// Older reports whether the chain, and where it is silent arrival, puts
// pushes[i] before pushes[j].
func Older(pushes []Push, i, j int) bool {
	if leads(pushes, pushes[i].After, pushes[j].After) {
		return true
	}
	if leads(pushes, pushes[j].After, pushes[i].After) {
		return false
	}
	return i < j
}

// leads reports whether the chain of moves goes from commit a to commit b.
func leads(pushes []Push, a, b string) bool {
	if a == b {
		return false
	}
	seen := map[string]bool{}
	todo := []string{a}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, p := range pushes {
			if p.Before != at || p.After == at {
				continue
			}
			if p.After == b {
				return true
			}
			todo = append(todo, p.After)
		}
	}
	return false
}
