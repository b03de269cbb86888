package store

import (
	"context"

	"docket/store/ci"
)

// Check is a run's check run at the provider.
type Check struct {
	ID int64 `json:"id"`
	// Conclusion is the end that it was told, in the provider's word. After it
	// the provider changes nothing of it any more.
	Conclusion string `json:"conclusion,omitempty"`
}

// Takes reports whether the check run is there and can be told a conclusion,
// or "" for that it goes on: one that has its own takes that one alone.
func (c Check) Takes(conclusion string) bool {
	return c.ID != 0 && (c.Conclusion == "" || c.Conclusion == conclusion)
}

// Check returns a run's newest check run; its zero value where none is known.
func (s *Store) Check(run string) (c Check, err error) {
	err = s.view(func(t *tx) error {
		c, err = t.check(run)
		return err
	})
	return c, err
}

func (t *tx) check(run string) (Check, error) {
	key, err := runKeyOf(run)
	if err != nil {
		return Check{}, err
	}
	v := t.get(bucketChecks, key)
	if v == nil {
		return Check{}, nil
	}
	return decodeJSON[Check]("check", v)
}

// SetCheck records a run's check run. A run that is not on record any more
// keeps none.
func (s *Store) SetCheck(ctx context.Context, run string, c Check) error {
	return s.update(ctx, func(t *tx) error {
		key, err := runKeyOf(run)
		if err != nil {
			return err
		}
		if t.get(bucketRuns, key) == nil {
			return nil
		}
		return t.put(bucketChecks, key, mustJSON(c))
	})
}

// outlives reports whether an entry is sent although a newer run of the same
// commit and context speaks: a check run that exists is told its end, or it
// would be shown as running for ever. It is the newer run's that is shown.
func (t *tx) outlives(e *ci.OutboxEntry) (bool, error) {
	if e.Kind != ci.OutboxGitHubCheck || !e.Final {
		return false, nil
	}
	c, err := t.check(e.Run)
	return err == nil && c.ID != 0 && c.Conclusion == "", err
}

// checks ensures that each check run is of a run on record.
func (v *verifier) checks() error {
	if v.t.bucket(bucketChecks) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketChecks, func(k, val []byte) error {
		if v.t.get(bucketRuns, k) == nil {
			v.broken("checks: %q has no such run", k)
		}
		if c, err := decodeJSON[Check]("check", val); err != nil || c.ID <= 0 {
			v.broken("checks: %q has no check run's id", k)
		}
		return nil
	})
}
