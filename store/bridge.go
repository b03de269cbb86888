package store

import (
	"bytes"
	"cmp"
	"slices"

	"docket/store/ci"
)

// A bridge is a move of a branch that no run is carried for: a push that a
// filter stopped. It keeps the chain of moves whole, so that which head is
// newer need not be told by arrival, and it is nobody's head and takes nobody's
// place. Skipped runs are bridges. Pushes that were ignored are kept in the
// refs bucket under a letter of their own and their place among the runs, the
// newest lookBack of each branch that has runs.

// noteIgnored keeps how a push moved its branch in those of the repository's
// projects that it starts nothing for.
func (t *tx) noteIgnored(a *Acceptance, runs []ci.Run) error {
	e := &a.Event
	if e.Kind != ci.EventPush || e.Branch == "" || e.Deleted || !ci.IsCommit(e.Commit) || e.Problem != "" {
		return nil
	}
	for _, project := range a.Projects {
		if slices.ContainsFunc(runs, func(r ci.Run) bool { return r.Project == project }) {
			continue
		}
		if k, _ := last(t.bucket(bucketRefs).Cursor(), refPrefix(project, refBranch, e.Branch)); k == nil {
			continue // nothing to put in order
		}
		seq, err := t.next(bucketRuns)
		if err != nil {
			return err
		}
		m := move{seq: seq, before: e.Before, after: e.Commit}
		if err := t.put(bucketRefs, refKey(project, refIgnored, e.Branch, seq), encodeMove(m)); err != nil {
			return err
		}
		if err := t.trimIgnored(project, e.Branch, lookBack); err != nil {
			return err
		}
	}
	return nil
}

// trimIgnored forgets the ignored pushes of a branch but for the newest ones.
func (t *tx) trimIgnored(project, branch string, keep int) error {
	prefix := refPrefix(project, refIgnored, branch)
	var keys [][]byte
	c := t.bucket(bucketRefs).Cursor()
	for k, _ := c.Seek(prefix); len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return t.deleteAll(bucketRefs, keys[:max(0, len(keys)-keep)])
}

// withBridges puts a branch's bridges between its moves, in order of arrival.
func (t *tx) withBridges(project, branch string, list []placed) ([]placed, error) {
	from := uint64(0)
	if len(list) >= lookBack {
		from = list[0].seq // the moves before these are not looked at either
	}
	for _, kind := range []byte{skippedKind(refBranch), refIgnored} {
		bridges, err := t.moves(project, kind, branch, func(m move) bool { return m.after != "" && m.seq >= from })
		if err != nil {
			return nil, err
		}
		for _, b := range bridges {
			b.number = 0
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b placed) int { return cmp.Compare(a.seq, b.seq) })
	return list, nil
}

// forgetIgnored takes the ignored pushes of a branch away with its last run.
func (t *tx) forgetIgnored(r *ci.Run) error {
	kind, name, _ := refOf(r)
	if kind != refBranch {
		return nil
	}
	if k, _ := last(t.bucket(bucketRefs).Cursor(), refPrefix(r.Project, refBranch, name)); k != nil {
		return nil
	}
	return t.trimIgnored(r.Project, name, 0)
}
