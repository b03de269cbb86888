package store

import (
	"bytes"
	"slices"

	"docket/store/ci"
)

// A branch's life ends with its deletion: what moved it before has no say in
// what becomes of a new branch of that name. The deletion is kept as a bridge, a
// move from the branch's last commit to none, that ends the chain of that life,
// in whatever order its moves arrive. What the chain does not show is marked as
// past; and where nothing is known to lead to the deletion, the deletions bucket
// has how far the runs had come then: all before that is past.

func deletionKey(project, branch string) []byte { return append(projectPrefix(project), branch...) }

// noteDeletion ends a branch's life at a commit, "" where that is not known.
// outlive says which of its moves, by their place among the runs, belong to a
// life after it.
func (t *tx) noteDeletion(project, branch, at string) (outlive map[uint64]bool, err error) {
	moves, err := t.moves(project, refBranch, branch, func(m move) bool { return m.head && m.after != "" })
	if err != nil {
		return nil, err
	}
	if moves, err = t.withBridges(project, branch, moves); err != nil {
		return nil, err
	}
	fates, known := ci.Deleted(pushesOf(project, moves), at)
	told, err := t.toldDeletion(project, branch, at, moves)
	if err != nil {
		return nil, err
	}
	outlive = map[uint64]bool{}
	if !known && !told {
		return nil, t.endLife(project, branch, at)
	}
	for i, m := range moves {
		switch {
		case told || fates[i] == ci.Lives:
			outlive[m.seq] = true
		case fates[i] == ci.Lost:
			if err := t.markPast(project, branch, m); err != nil {
				return nil, err
			}
		}
	}
	if told {
		return outlive, nil
	}
	return outlive, t.fileDeletion(project, branch, at)
}

// toldDeletion reports whether a deletion is one that was told before: by
// another kind of event, which does not say where the branch was, or which came
// first and did not.
func (t *tx) toldDeletion(project, branch, at string, present []placed) (told bool, err error) {
	if at == "" {
		return slices.ContainsFunc(present, func(p placed) bool { return p.after == "" }), nil
	}
	if slices.ContainsFunc(present, func(p placed) bool { return p.after == at }) {
		return false, nil
	}
	bound := fromBE64(t.get(bucketDeletions, deletionKey(project, branch)))
	if bound == 0 {
		return false, nil
	}
	prefix := refPrefix(project, refBranch, branch)
	c := t.bucket(bucketRefs).Cursor()
	k, v := last(c, prefix)
	for looked := 0; len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix) && looked < lookBack; looked++ {
		m, err := decodeMove(v)
		if err != nil {
			return false, err
		}
		if m.seq <= bound && m.after == at {
			return true, nil
		}
		k, v = c.Prev()
	}
	return false, nil
}

// endLife ends all that there is of a branch.
func (t *tx) endLife(project, branch, before string) error {
	if err := t.trimIgnored(project, branch, 0); err != nil {
		return err
	}
	if err := t.put(bucketDeletions, deletionKey(project, branch), be64(t.bucket(bucketRuns).Sequence())); err != nil {
		return err
	}
	return t.fileDeletion(project, branch, before)
}

// fileDeletion keeps a deletion as a move, where it is known from where.
func (t *tx) fileDeletion(project, branch, before string) error {
	if before == "" {
		return nil
	}
	return t.fileBridge(project, branch, before, "")
}

// markPast takes a move out of the branch's present life.
func (t *tx) markPast(project, branch string, p placed) error {
	p.past = true
	for _, at := range []struct {
		kind byte
		last uint64
	}{{refBranch, p.number}, {skippedKind(refBranch), p.number}, {refIgnored, p.seq}} {
		key := refKey(project, at.kind, branch, at.last)
		v := t.get(bucketRefs, key)
		if v == nil || fromBE64(v) != p.seq {
			continue
		}
		if at.kind == refIgnored {
			return t.delete(bucketRefs, key)
		}
		return t.put(bucketRefs, key, encodeMove(p.move))
	}
	return nil
}
