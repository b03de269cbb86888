package store

import (
	"bytes"
	"cmp"
	"slices"

	"docket/store/ci"
)

// A bridge is a move of a branch that no run is carried for: a push that a
// filter stopped, or a deletion. It keeps the chain of moves whole, so that which head is
// newer need not be told by arrival, and it is nobody's head and takes nobody's
// place. Skipped runs are bridges. Pushes that were ignored are kept in the
// refs bucket under a letter of their own and their place among the runs, the
// newest lookBack of each branch that has runs, and a few of each other one.

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
		if err := t.fileBridge(project, e.Branch, e.Before, e.Commit); err != nil {
			return err
		}
	}
	return nil
}

// fileBridge keeps how a branch was moved without a run.
func (t *tx) fileBridge(project, branch, before, after string) error {
	seq, err := t.next(bucketRuns)
	if err != nil {
		return err
	}
	m := move{seq: seq, before: before, after: after}
	if err := t.put(bucketRefs, refKey(project, refIgnored, branch, seq), encodeMove(m)); err != nil {
		return err
	}
	keep := lookBack
	if k, _ := last(t.bucket(bucketRefs).Cursor(), refPrefix(project, refBranch, branch)); k == nil {
		keep = keptAhead // of a branch that may never have a run
	}
	if err := t.trimIgnored(project, branch, keep); err != nil {
		return err
	}
	return t.lookAgain(project, branch, after)
}

// keptAhead is how many ignored pushes are kept of a branch without runs.
const keptAhead = 8

// lookAgain has superseding look at a branch again where a bridge that leads to
// a commit was told only after what followed it.
func (t *tx) lookAgain(project, branch, to string) error {
	var number uint64
	late := false
	err := t.eachMove(project, refBranch, branch, func(p placed) bool {
		late = late || p.before == to
		if number == 0 && p.scope != 0 {
			number = p.number
		}
		return !late || number == 0
	})
	if err != nil || !late || number == 0 {
		return err
	}
	r, err := t.run(ci.RunID(project, number))
	if err != nil {
		return err
	}
	t.wake(TopicRuns)
	return t.listScope(&r)
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
		bridges, err := t.moves(project, kind, branch, func(m move) bool { return m.before+m.after != "" && m.seq >= from })
		if err != nil {
			return nil, err
		}
		for _, b := range bridges {
			b.bridge = true
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
