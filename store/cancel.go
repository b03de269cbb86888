package store

import (
	"bytes"

	"docket/store/ci"
)

// cancelWaiting ends the pending runs that an event ends. before is the commit
// that a deleted branch was at, where it is known.
func (t *tx) cancelWaiting(list []ci.Cancel, receipt, before string) error {
	for _, c := range list {
		moves, err := t.waiting(c)
		if err != nil {
			return err
		}
		var outlive map[uint64]bool
		if branch, _ := ci.SplitRef(c.Ref); c.Deleted && branch != "" {
			if outlive, err = t.noteDeletion(c.Project, branch, before); err != nil {
				return err
			}
		}
		for _, m := range moves {
			if outlive[m.seq] {
				continue
			}
			r, err := t.run(ci.RunID(c.Project, m.number))
			if err != nil {
				return err
			}
			if !r.State.Pending() {
				continue
			}
			if err := t.moveRun(&r, ci.Cancelled, c.Reason); err != nil {
				return err
			}
			if err := t.decide(ci.Decision{
				Kind: ci.DecisionCancelled, Run: r.ID, Receipt: receipt, Project: r.Project,
				By: byDelivery, Reason: c.Reason,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// waiting returns what a Cancel is about and has not ended. Runs that a person
// started have no scope and are left alone.
func (t *tx) waiting(c ci.Cancel) ([]placed, error) {
	if c.All {
		return t.allWaiting(c.Project), nil
	}
	if c.PullRequest > 0 {
		return t.alive(c.Project, refPullRequest, pullRequestName(c.PullRequest), func(m move) bool { return m.scope != 0 })
	}
	branch, _ := ci.SplitRef(c.Ref)
	hash := scopeHash(c.Scope)
	if branch == "" || hash == 0 {
		return nil, nil
	}
	return t.alive(c.Project, refBranch, branch, func(m move) bool { return m.scope == hash })
}

// allWaiting returns all runs of a project that have not begun.
func (t *tx) allWaiting(project string) (list []placed) {
	for _, state := range ci.States {
		if !state.Pending() {
			continue
		}
		prefix := append([]byte{stateBytes[state]}, projectPrefix(project)...)
		c := t.bucket(bucketStates).Cursor()
		for k, v := c.Seek(prefix); len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			list = append(list, placed{move: move{seq: fromBE64(v)}, number: fromBE64(k[len(prefix):])})
		}
	}
	return list
}
