package store

import (
	"context"
	"time"

	"docket/store/ci"
)

// headSettles is how long a branch must have been at rest before the provider
// is believed: its answers may lag behind its deliveries.
const headSettles = 5 * time.Minute

// Mark stands for what is on record now, for SeeHeads.
func (s *Store) Mark() (mark uint64, err error) {
	err = s.view(func(t *tx) error {
		mark = t.bucket(bucketRuns).Sequence()
		return nil
	})
	return mark, err
}

// SeeHeads takes the provider's word for where branches are, where arrival
// alone has to tell which of several heads is the newest: a push between them
// never came. A head that is known and that no known move leads away from, and
// that is not taken for the newest, becomes it, and superseding is decided on
// again. Everything else is left as it is, and so are branches that moved in the
// last minutes, or after the mark that was taken before the provider was asked.
// It returns how many branches that concerned.
func (s *Store) SeeHeads(ctx context.Context, project string, mark uint64, heads []ci.Head) (n int, err error) {
	var wrong []ci.Head
	err = s.view(func(t *tx) error {
		for _, h := range heads {
			_, misplaced, err := t.misplaced(project, h, mark)
			if err != nil {
				return err
			}
			if misplaced {
				wrong = append(wrong, h)
			}
		}
		return nil
	})
	if err != nil || len(wrong) == 0 {
		return 0, err
	}
	err = s.update(ctx, func(t *tx) error {
		n = 0
		for _, h := range wrong {
			missing, misplaced, err := t.misplaced(project, h, mark)
			if err != nil {
				return err
			}
			if !misplaced {
				continue
			}
			if err := t.seeHead(project, h, missing); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// misplaced reports whether a head is known, is left open by the moves of its
// branch, and is not the one that they are taken to end with. missing is the
// move that never came: from that one to where the way to the head begins.
func (t *tx) misplaced(project string, h ci.Head, mark uint64) (missing ci.Push, is bool, err error) {
	branch, _ := ci.SplitRef(h.Ref)
	if branch == "" || h.PullRequest != nil {
		return missing, false, nil
	}
	moves, err := t.moves(project, refBranch, branch, func(m move) bool { return m.head && m.after != "" })
	if err != nil || len(moves) == 0 {
		return missing, false, err
	}
	if moves, err = t.withBridges(project, branch, moves); err != nil {
		return missing, false, err
	}
	for _, m := range moves {
		if m.seq > mark {
			return missing, false, nil
		}
	}
	pushes := pushesOf(project, moves)
	missing = ci.Push{Before: pushes[ci.Newest(pushes)].After, After: ci.Begins(pushes, h.Commit)}
	if missing.Before == "" || missing.Before == h.Commit || !ci.Open(pushes, h.Commit) {
		return missing, false, nil
	}
	settled, err := t.settled(project, moves)
	return missing, settled, err
}

// settled reports whether none of a branch's runs was made in the last minutes.
func (t *tx) settled(project string, moves []placed) (bool, error) {
	for _, m := range moves {
		if m.bridge {
			continue
		}
		key := runKey(project, m.number)
		r, err := decodeRun(key, t.get(bucketRuns, key))
		if err != nil || t.now.Sub(r.CreatedAt.Time) < headSettles {
			return false, err
		}
	}
	return true, nil
}

// seeHead puts the missing move on record, and has superseding look again.
func (t *tx) seeHead(project string, h ci.Head, missing ci.Push) error {
	branch, _ := ci.SplitRef(h.Ref)
	if err := t.fileBridge(project, branch, missing.Before, missing.After); err != nil {
		return err
	}
	var number uint64
	err := t.eachMove(project, refBranch, branch, func(p placed) bool {
		if p.after == h.Commit && p.scope != 0 {
			number = p.number
		}
		return number == 0
	})
	if err != nil || number == 0 {
		return err
	}
	r, err := t.run(ci.RunID(project, number))
	if err != nil {
		return err
	}
	if err := t.listScope(&r); err != nil {
		return err
	}
	t.wake(TopicRuns)
	return t.decide(ci.Decision{
		Kind: ci.DecisionRecovered, Run: r.ID, Project: project, By: recovery(),
		Reason: "the provider says that " + branch + " is at " + h.Commit + ", and what led there from " + missing.Before + " never came",
	})
}
