package ci

// Push is one move of a ref, as a run remembers it: what superseding and a
// branch's newest head are decided from.
type Push struct {
	Run    string
	Before string // "" for a new ref or an unknown one
	After  string // "": the ref was deleted at Before
}

// Newest returns the index of the push that holds the ref's newest head, and
// -1 for none. pushes are in order of arrival. See Order.
func Newest(pushes []Push) int {
	order := Order(pushes)
	if len(order) == 0 {
		return -1
	}
	return order[len(order)-1]
}

// Open reports whether the ref was at a commit, for all that pushes tell, when
// the last of its moves was made: none of them leads away from there.
func Open(pushes []Push, commit string) bool { return newMoves(pushes).open[commit] > 0 }

// Begins returns where the moves that lead to a commit begin, as far as they are
// known: "" where the ref was made.
func Begins(pushes []Push, commit string) string {
	order := Order(pushes)
	for k := len(order) - 1; k >= 0; k-- {
		if p := pushes[order[k]]; p.After == commit && p.After != "" {
			if commit = p.Before; commit == "" {
				return ""
			}
		}
	}
	return commit
}

// Older reports whether pushes[i] lies before pushes[j]. See Order.
func Older(pushes []Push, i, j int) bool {
	if i == j {
		return false
	}
	for _, k := range Order(pushes) {
		if k == i || k == j {
			return k == i
		}
	}
	return false
}

// Order returns the indices of pushes from the oldest to the newest, as far
// as can be known from pushes in order of arrival. The before/after chain
// decides first: where all moves can be laid end to end they are, in whatever
// order they arrived, also when the ref came back to a commit it had left.
// Where moves are missing, several ends stay open, and of those the last to
// arrive is the newest; a ring without an end is cut at the last arrival. A
// move that came twice (two hooks, a replay) is one move, unless the ref did
// go back to where it starts. A deletion ends the chain that leads to it, and
// comes before what begins elsewhere.
func Order(pushes []Push) []int {
	m := newMoves(pushes)
	newestFirst := make([]int, 0, len(pushes))
	for len(newestFirst) < len(pushes) {
		newestFirst = append(newestFirst, m.take(m.last())...)
	}
	order := newestFirst
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// moves are the pushes not yet taken, as edges between commits. A commit that
// is entered more often than left is an end of the chain.
type moves struct {
	pushes []Push
	taken  []bool
	copyOf []int          // the earlier push that this one repeats, or -1
	top    int            // nothing at or above it is left
	open   map[string]int // times entered less times left
	into   map[string][]int
}

func newMoves(pushes []Push) *moves {
	m := &moves{
		pushes: pushes,
		taken:  make([]bool, len(pushes)),
		copyOf: make([]int, len(pushes)),
		top:    len(pushes),
		open:   map[string]int{},
		into:   map[string][]int{},
	}
	ends := 0
	count := func(i, by int) {
		p := pushes[i]
		if p.After != "" {
			ends -= max(0, m.open[p.After])
			m.open[p.After] += by
			ends += max(0, m.open[p.After])
		}
		if p.Before != "" {
			ends -= max(0, m.open[p.Before])
			m.open[p.Before] -= by
			ends += max(0, m.open[p.Before])
		}
	}
	for i := range pushes {
		m.copyOf[i] = -1
		count(i, 1)
	}
	first := map[[2]string]int{}
	for i, p := range pushes {
		move := [2]string{p.Before, p.After}
		k, again := first[move]
		if again {
			// A repetition that only adds an end is no move of its own.
			was := ends
			count(i, -1)
			if ends > 0 && ends < was {
				m.copyOf[i] = k
			} else {
				count(i, 1)
			}
		} else {
			first[move] = i
		}
		if m.copyOf[i] < 0 {
			m.into[p.After] = append(m.into[p.After], i)
		}
	}
	return m
}

// last returns the newest of the pushes that are left.
func (m *moves) last() int {
	for m.top > 0 && m.taken[m.top-1] {
		m.top--
	}
	for i := m.top - 1; i >= 0; i-- {
		if !m.taken[i] && m.copyOf[i] < 0 && m.open[m.pushes[i].After] > 0 {
			return m.lastVisit(i)
		}
	}
	for i := m.top - 1; i >= 0; i-- { // what is left was deleted, or came back to where it began
		if p := m.pushes[i]; !m.taken[i] && p.After == "" && (i == m.top-1 || m.leads(m.pushes[m.top-1].After, p.Before)) {
			return i
		}
	}
	if k := m.copyOf[m.top-1]; k >= 0 {
		return k
	}
	return m.top - 1
}

// lastVisit returns, of the moves that end where pushes[i] does, the one that
// the chain ends with: a move that came back there from a later place.
func (m *moves) lastVisit(i int) int {
	end := m.pushes[i].After
	if m.open[end] != 1 || len(m.into[end]) < 2 {
		return i
	}
	for at := len(m.into[end]) - 1; at >= 0; at-- {
		k := m.into[end][at]
		if !m.taken[k] && m.leads(end, m.pushes[k].Before) {
			return k
		}
	}
	return i
}

// leads reports whether the moves that are left go from commit a to commit b.
func (m *moves) leads(a, b string) bool {
	if b == "" {
		return false
	}
	// Backwards from b, since moves are kept by where they end.
	seen := map[string]bool{b: true}
	todo := []string{b}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == a {
			return true
		}
		for _, k := range m.into[at] {
			if from := m.pushes[k].Before; !m.taken[k] && from != "" && !seen[from] {
				seen[from] = true
				todo = append(todo, from)
			}
		}
	}
	return false
}

// take takes pushes[i] and its repetitions away and returns them, the last to
// arrive first.
func (m *moves) take(i int) []int {
	var out []int
	for k := len(m.pushes) - 1; k > i; k-- {
		if m.copyOf[k] == i && !m.taken[k] {
			m.taken[k] = true
			out = append(out, k)
		}
	}
	m.taken[i] = true
	p := m.pushes[i]
	if p.After != "" {
		m.open[p.After]--
	}
	if p.Before != "" {
		m.open[p.Before]++
	}
	return append(out, i)
}
