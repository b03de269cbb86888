package store

import (
	"context"
	"fmt"

	"docket/store/ci"
)

// HeadStart asks for the run of a head that no delivery told of.
type HeadStart struct {
	Project string
	Key     string // ci.Head.Key
	Commit  string // it is this one that is meant, also where the head has moved since
	Draft   ci.Draft
	By      ci.By
}

// MissedHead returns a head that no run is known of, or CodeNotFound.
func (s *Store) MissedHead(project, key, commit string) (m ci.MissedHead, err error) {
	err = s.view(func(t *tx) error {
		m, err = t.missedHead(project, key, commit)
		return err
	})
	return m, err
}

func (t *tx) missedHead(project, key, commit string) (m ci.MissedHead, err error) {
	v := t.get(bucketHeads, headKey(project, headOpen, key))
	if v != nil {
		if m, err = decodeJSON[ci.MissedHead]("head", v); err != nil {
			return m, err
		}
	}
	if v == nil || m.Commit != commit {
		return m, ci.Errorf(ci.CodeNotFound, "project %s has no head %q at %s that no run is known of; `docket projects heads` lists those there are", project, key, ci.ShortCommit(commit))
	}
	return m, nil
}

// StartedHead returns the run that was started for a head, if it was.
func (s *Store) StartedHead(project, key, commit string) (r ci.Run, ok bool, err error) {
	err = s.view(func(t *tx) error {
		rec, known, err := t.known(startOfHead(project, key, commit))
		if err != nil || !known {
			return err
		}
		ok = true
		r, err = t.run(rec.Run)
		return err
	})
	return r, ok, err
}

// startOfHead is the durable identity of a head's run.
func startOfHead(project, key, commit string) answered {
	return answered{scope: project + "\x00heads", key: key + " " + commit, digest: digestOf("start head", project, key+" "+commit)}
}

// StartHead makes the run of a head, or returns the one that was made before
// (replayed): project, head and commit are its identity. CodeConflict if a
// delivery has told of the head meanwhile.
func (s *Store) StartHead(ctx context.Context, h HeadStart) (run ci.Run, replayed bool, err error) {
	n := s.prepareRun(&h.Draft, &h.Draft.Spec, h.Draft.Spec.Digest(), ci.At(s.now()))
	a := startOfHead(h.Project, h.Key, h.Commit)
	err = s.update(ctx, func(t *tx) error {
		run, replayed = ci.Run{}, false
		rec, ok, err := t.known(a)
		if err != nil {
			return err
		}
		if ok {
			replayed = true
			run, err = t.run(rec.Run)
			return err
		}
		m, err := t.missedHead(h.Project, h.Key, h.Commit)
		if err != nil {
			return err
		}
		if err := t.headConflict(&m); err != nil {
			return err
		}
		if run, err = t.createRun(n); err != nil {
			return err
		}
		if err := t.put(bucketHeads, headKey(h.Project, headKnown, h.Key), []byte(h.Commit)); err != nil {
			return err
		}
		if err := t.delete(bucketHeads, headKey(h.Project, headOpen, h.Key)); err != nil {
			return err
		}
		if err := t.decide(ci.Decision{
			Kind: ci.DecisionRecovered, Run: run.ID, Project: h.Project, Integration: h.Draft.Integration, By: h.By,
			Reason: fmt.Sprintf("no delivery told of %s at %s, so its run was started", h.Key, ci.ShortCommit(h.Commit)),
		}); err != nil {
			return err
		}
		return t.remember(a, run.ID, nil)
	})
	return run, replayed, err
}

// headConflict says what a delivery that came since has made of a head.
func (t *tx) headConflict(m *ci.MissedHead) error {
	other, err := t.runOfHead(m.Project, &m.Head)
	if err != nil {
		return err
	}
	if other != "" {
		e := ci.Errorf(ci.CodeConflict, "run %s builds this head already: its delivery arrived meanwhile", other)
		e.ExistingRun = other
		return e
	}
	told, err := t.headTold(m.Project, &m.Head)
	if err == nil && told {
		return ci.Errorf(ci.CodeConflict, "a delivery of this head arrived meanwhile and started nothing; `docket receipts list` says why, and `docket runs start %s` runs it all the same", m.Project)
	}
	return err
}
