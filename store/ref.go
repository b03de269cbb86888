package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"slices"

	"docket/store/ci"
)

// The refs bucket files each run under what it builds: a branch, a tag, a
// pull request's number, a pull request's head branch. The first three also
// say how the ref moved, which superseding, a branch's head and twins are
// read from. A skipped run is filed under the same letter in capitals: it is
// listed, and nothing else is read from it than how the ref moved.
const (
	refBranch      = 'b'
	refTag         = 't'
	refPullRequest = 'p'
	refHeadBranch  = 'h'
	refIgnored     = 'i' // pushes of a branch that started nothing (see bridge.go)
)

// lookBack bounds how many of a ref's pushes are put in order, and maxMoves
// how many of its runs are looked at to find them.
const (
	lookBack = 64
	maxMoves = 1024
)

// moveHeader is how many bytes of an entry come before its commits.
const moveHeader = 17

// Flags of a move.
const (
	moveHead = 1
	movePast = 2
)

// move is a refs entry's value.
type move struct {
	seq    uint64
	scope  uint64 // hash of the run's scope; 0: it supersedes nothing
	head   bool   // it tells where the branch's head is
	past   bool   // of a life of the branch that ended (see deletion.go)
	before string
	after  string
}

func refPrefix(project string, kind byte, name string) []byte {
	k := make([]byte, 0, len(project)+len(name)+12)
	k = append(k, project...)
	k = append(k, 0, kind)
	k = append(k, name...)
	return append(k, 0)
}

func refKey(project string, kind byte, name string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(refPrefix(project, kind, name), number)
}

func pullRequestName(number int) string { return string(be64(uint64(number))) }

// refOf returns the kind and name under which a run's moves are kept; ok is
// false for a run that builds none of them.
func refOf(r *ci.Run) (kind byte, name string, ok bool) {
	switch {
	case r.Source.PullRequest != nil:
		return refPullRequest, pullRequestName(r.Source.PullRequest.Number), true
	case r.Source.Branch != "":
		return refBranch, r.Source.Branch, true
	case r.Source.Tag != "":
		return refTag, r.Source.Tag, true
	}
	return 0, "", false
}

func scopeHash(scope string) uint64 {
	if scope == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(scope))
	return h.Sum64() | 1
}

func encodeMove(m move) []byte {
	b := make([]byte, 0, moveHeader+2+64)
	b = binary.BigEndian.AppendUint64(b, m.seq)
	b = binary.BigEndian.AppendUint64(b, m.scope)
	var flags byte
	if m.head {
		flags |= moveHead
	}
	if m.past {
		flags |= movePast
	}
	return encodeCommits(append(b, flags), m.before, m.after)
}

func encodeCommits(b []byte, before, after string) []byte {
	for _, c := range [...]string{before, after} {
		b = append(b, byte(len(c)/2))
		raw, err := hex.AppendDecode(b, []byte(c))
		if err != nil {
			panic(err) // commits are checked hex
		}
		b = raw
	}
	return b
}

var errMove = errors.New("refs entry is cut short")

func decodeMove(v []byte) (m move, err error) {
	if len(v) < moveHeader+2 {
		return m, errMove
	}
	m.seq, m.scope, m.head = fromBE64(v), fromBE64(v[8:]), v[16]&moveHead != 0
	m.past = v[16]&movePast != 0
	v = v[moveHeader:]
	for _, field := range []*string{&m.before, &m.after} {
		if len(v) < 1 || len(v) < 1+int(v[0]) {
			return m, errMove
		}
		n := int(v[0])
		*field, v = hex.EncodeToString(v[1:1+n]), v[1+n:]
	}
	return m, nil
}

// refKeys are the places of a run in the refs index.
func refKeys(r *ci.Run) (keys [][]byte) {
	kind, name, ok := refOf(r)
	if !ok {
		return nil
	}
	keys = append(keys, refKey(r.Project, filedAs(kind, r), name, r.Number))
	if kind == refPullRequest && r.Source.Branch != "" {
		keys = append(keys, refKey(r.Project, filedAs(refHeadBranch, r), r.Source.Branch, r.Number))
	}
	return keys
}

// filedAs returns the letter that a run is filed under for a kind.
func filedAs(kind byte, r *ci.Run) byte {
	if r.Internal.Skip {
		return skippedKind(kind)
	}
	return kind
}

func skippedKind(kind byte) byte { return kind - 'a' + 'A' }

// fileRef puts a run into the refs index.
func (t *tx) fileRef(r *ci.Run) error {
	m := encodeMove(move{
		seq: r.Internal.Seq, scope: scopeHash(r.Internal.Scope), head: r.Internal.Head,
		before: r.Source.Before, after: r.Source.Commit,
	})
	for _, key := range refKeys(r) {
		if err := t.put(bucketRefs, key, m); err != nil {
			return err
		}
	}
	return nil
}

// unfileRef takes a run out of the refs index.
func (t *tx) unfileRef(r *ci.Run) error { return t.deleteAll(bucketRefs, refKeys(r)) }

// placed is a move and the number of its run; a bridge (see bridge.go) is no
// run's, or that of one that was skipped.
type placed struct {
	move
	number uint64
	bridge bool
}

// moves returns the newest moves of a ref's present life in order of arrival,
// at most lookBack, those that keep returns true for.
func (t *tx) moves(project string, kind byte, name string, keep func(move) bool) (list []placed, err error) {
	err = t.eachMove(project, kind, name, func(p placed) bool {
		if keep(p.move) {
			list = append(list, p)
		}
		return len(list) < lookBack
	})
	slices.Reverse(list)
	return list, err
}

// eachMove calls fn with the newest moves of a ref's present life, at most
// maxMoves, the last to arrive first, until fn returns false.
func (t *tx) eachMove(project string, kind byte, name string, fn func(placed) bool) error {
	prefix := refPrefix(project, kind, name)
	c := t.bucket(bucketRefs).Cursor()
	var deleted uint64
	switch kind {
	case refBranch, skippedKind(refBranch), refIgnored:
		deleted = fromBE64(t.get(bucketDeletions, deletionKey(project, name)))
	}
	k, v := last(c, prefix)
	for looked := 0; len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix) && looked < maxMoves; looked++ {
		m, err := decodeMove(v)
		if err != nil {
			return err
		}
		if m.seq <= deleted || !m.past && !fn(placed{move: m, number: fromBE64(k[len(prefix):])}) {
			return nil
		}
		k, v = c.Prev()
	}
	return nil
}

// alive returns the moves of a ref's runs that have not ended, in order of
// arrival, those that keep returns true for. It costs as much as there is
// alive in the project, however long the ref's history is.
func (t *tx) alive(project string, kind byte, name string, keep func(move) bool) ([]placed, error) {
	var list []placed
	for _, state := range ci.States {
		if state.Final() {
			continue
		}
		prefix := append([]byte{stateBytes[state]}, projectPrefix(project)...)
		c := t.bucket(bucketStates).Cursor()
		for k, _ := c.Seek(prefix); len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			number := fromBE64(k[len(prefix):])
			v := t.get(bucketRefs, refKey(project, kind, name, number))
			if v == nil {
				continue
			}
			m, err := decodeMove(v)
			if err != nil {
				return nil, err
			}
			if keep(m) {
				list = append(list, placed{move: m, number: number})
			}
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.number, b.number) })
	return list, nil
}

func pushesOf(project string, list []placed) []ci.Push {
	pushes := make([]ci.Push, len(list))
	for i, p := range list {
		pushes[i] = ci.Push{Run: ci.RunID(project, p.number), Before: p.before, After: p.after}
	}
	return pushes
}

// head finds a branch's newest head that a run was made for, and the newest run
// of that commit there.
func (t *tx) head(project, branch string) (h Head, ok bool, err error) {
	telling, err := t.moves(project, refBranch, branch, func(m move) bool { return m.head && m.after != "" })
	if err != nil || len(telling) == 0 {
		return h, false, err
	}
	if telling, err = t.withBridges(project, branch, telling); err != nil {
		return h, false, err
	}
	runs := map[string][]uint64{} // numbers by commit, newest first
	err = t.eachMove(project, refBranch, branch, func(p placed) bool {
		runs[p.after] = append(runs[p.after], p.number)
		return true
	})
	if err != nil {
		return h, false, err
	}
	order := ci.Order(pushesOf(project, telling))
	for i := len(order) - 1; i >= 0; i-- {
		commit := telling[order[i]].after
		if commit == "" {
			return h, false, nil // it was deleted
		}
		r, ok, err := t.speaks(project, runs[commit])
		if err != nil || ok {
			return Head{Branch: branch, Run: r.ID, State: r.State, Commit: commit}, ok, err
		}
	}
	return h, false, nil
}

// speaks returns, of a commit's runs on its branch, newest first, the one whose
// state is the branch's: the newest that is decided on and did not give way, or
// else the newest that did.
func (t *tx) speaks(project string, numbers []uint64) (run ci.Run, ok bool, err error) {
	for _, number := range numbers {
		key := runKey(project, number)
		r, err := decodeRun(key, t.get(bucketRuns, key))
		if err != nil {
			return run, false, err
		}
		if r.Undecided() {
			continue
		}
		if r.State != ci.Superseded {
			return r, true, nil
		}
		if !ok {
			run, ok = r, true
		}
	}
	return run, ok, nil
}

// Head is the newest head of a branch that docket knows, and its newest run.
type Head struct {
	Branch string
	Run    string
	State  ci.State
	Commit string
}

// maxHeads bounds how many branches Heads lists.
const maxHeads = 200

// Heads lists the heads of a project's branches by name, at most 200.
func (s *Store) Heads(project string) (heads []Head, err error) {
	heads = []Head{}
	err = s.view(func(t *tx) error {
		prefix := append(projectPrefix(project), refBranch)
		c := t.bucket(bucketRefs).Cursor()
		k, _ := c.Seek(prefix)
		for len(heads) < maxHeads && len(k) > len(prefix)+9 && string(k[:len(prefix)]) == string(prefix) {
			branch := string(k[len(prefix) : len(k)-9])
			h, ok, err := t.head(project, branch)
			if err != nil {
				return err
			}
			if ok {
				heads = append(heads, h)
			}
			k, _ = c.Seek(after(refPrefix(project, refBranch, branch)))
		}
		return nil
	})
	return heads, err
}

// HeadOf returns the head of one branch, or CodeNotFound.
func (s *Store) HeadOf(project, branch string) (h Head, err error) {
	err = s.view(func(t *tx) error {
		var ok bool
		if h, ok, err = t.head(project, branch); err != nil {
			return err
		}
		if !ok {
			return ci.Errorf(ci.CodeNotFound, "no run of branch %q of project %s is known", branch, project)
		}
		return nil
	})
	return h, err
}
