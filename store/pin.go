package store

import (
	"bytes"
	"context"
	"fmt"

	"docket/store/ci"
)

// A project is pinned to its repository's id: a renamed repository goes on
// working, and a new one under an old name is refused.

func (t *tx) pinOf(project string) (ci.Repository, bool, error) {
	v := t.get(bucketPins, []byte(project))
	if v == nil {
		return ci.Repository{}, false, nil
	}
	r, err := decodeJSON[ci.Repository]("pin", v)
	return r, err == nil, err
}

// checkPins refuses a delivery whose repository is not the one that its
// projects are pinned to. It is looked up in the write that accepts.
func (t *tx) checkPins(a *Acceptance, pinned []byte) error {
	for _, p := range a.Projects {
		if bytes.Equal(t.get(bucketPins, []byte(p)), pinned) {
			continue // as almost always, so that nothing is decoded
		}
		pin, ok, err := t.pinOf(p)
		if err != nil {
			return err
		}
		if ok && pin.ID != 0 && pin.ID != a.Event.Repository.ID {
			return ci.Errorf(ci.CodeForbidden, "project %s is pinned to repository id %d (%s), and this delivery is from id %d (%s); if that is right, run `docket projects repin %s --id %d`",
				p, pin.ID, pin.FullName, a.Event.Repository.ID, a.Event.Repository.FullName, p, a.Event.Repository.ID)
		}
	}
	return nil
}

// pin pins the projects that are not pinned yet, and follows a renaming.
// pinned is the record of one that is pinned to the delivery's repository.
func (t *tx) pin(a *Acceptance, pinned []byte) error {
	repo := a.Event.Repository
	if repo.ID == 0 {
		return nil
	}
	for _, p := range a.Projects {
		if bytes.Equal(t.get(bucketPins, []byte(p)), pinned) {
			continue // as almost always, so that nothing is decoded
		}
		pin, ok, err := t.pinOf(p)
		if err != nil {
			return err
		}
		if ok && pin.ID == repo.ID && (pin.FullName == repo.FullName || repo.FullName == "") {
			continue
		}
		if err := t.put(bucketPins, []byte(p), pinned); err != nil {
			return err
		}
		reason := fmt.Sprintf("first signed delivery from %s", repo.FullName)
		if ok && pin.ID == repo.ID && pin.FullName != "" {
			reason = fmt.Sprintf("repository %s is now called %s", pin.FullName, repo.FullName)
		}
		if err := t.decide(ci.Decision{
			Kind: ci.DecisionPinned, Project: p, Receipt: a.Delivery.ReceiptID().String(),
			By: ci.By{Kind: ci.ByServer, Name: "delivery"}, Reason: fmt.Sprintf("repository id %d: %s", repo.ID, reason),
		}); err != nil {
			return err
		}
	}
	return nil
}

// Pins returns the repository that each project is pinned to: the id, and the
// name it last had.
func (s *Store) Pins() (map[string]ci.Repository, error) {
	m := map[string]ci.Repository{}
	err := s.view(func(t *tx) error {
		c := t.bucket(bucketPins).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			r, err := decodeJSON[ci.Repository]("pin", v)
			if err != nil {
				return err
			}
			m[string(k)] = r
		}
		return nil
	})
	return m, err
}

// Repin pins a project to another repository id; 0 leaves that to the next
// signed delivery.
func (s *Store) Repin(ctx context.Context, project string, id int64, by ci.By) error {
	if id < 0 {
		return ci.Errorf(ci.CodeInvalid, "%d is not a repository id; GitHub's API shows it as \"id\"", id)
	}
	return s.update(ctx, func(t *tx) error {
		reason := "the next signed delivery decides"
		if id > 0 {
			reason = fmt.Sprintf("repository id %d", id)
			if err := t.put(bucketPins, []byte(project), mustJSON(ci.Repository{ID: id})); err != nil {
				return err
			}
		} else if err := t.delete(bucketPins, []byte(project)); err != nil {
			return err
		}
		return t.decide(ci.Decision{Kind: ci.DecisionPinned, Project: project, By: by, Reason: reason})
	})
}
