package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"docket/store/ci"
)

// Jobs returns up to limit preparing runs whose job is due at now, oldest
// first, and when the next one will be due (zero: none waits). While runs are
// paused there are none.
func (s *Store) Jobs(now time.Time, limit int) (runs []ci.Run, next time.Time, err error) {
	err = s.view(func(t *tx) error {
		if t.paused(ci.WorkRuns) {
			return nil
		}
		for _, key := range t.preparing() {
			if len(runs) == limit {
				return nil
			}
			r, err := decodeRun(key, t.get(bucketRuns, key))
			if err != nil {
				return err
			}
			if j := r.Internal.Job; j != nil && j.NextAt.After(now) && !j.NextAt.After(now.Add(maxJobWait)) {
				if next.IsZero() || j.NextAt.Before(next) {
					next = j.NextAt.Time
				}
				continue
			}
			runs = append(runs, r)
		}
		return nil
	})
	return runs, next, err
}

// preparing returns the keys of the preparing runs in order of creation.
func (t *tx) preparing() [][]byte {
	type entry struct {
		seq uint64
		key []byte
	}
	var list []entry
	c := t.bucket(bucketStates).Cursor()
	letter := stateBytes[ci.Preparing]
	for k, v := c.Seek([]byte{letter}); len(k) > 0 && k[0] == letter; k, v = c.Next() {
		list = append(list, entry{fromBE64(v), k[1:]})
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	keys := make([][]byte, len(list))
	for i, e := range list {
		keys[i] = e.key
	}
	return keys
}

// Resolution is what an inbox worker found out about a preparing run.
type Resolution struct {
	Commit string   // of the ref; "" leaves the run's own
	Spec   *ci.Spec // completed from the pipeline file; nil leaves the frozen one
	Failed string   // why the run can never start; it ends as failed
	Note   string   // what was found out, for the run's log
	// Skipped is why a filter (see ci.Job.Paths) keeps the run from running. It
	// ends as cancelled; where the job says so and no other run of the commit
	// and context is on record, its status is a success that says why, else it
	// has none. Commit is taken, Spec is not.
	Skipped string
}

// ResolveJob freezes what a job found and moves the run on: to queued, for a
// fork's to held, or to its end. A run that is not preparing any more stays as
// it is.
func (s *Store) ResolveJob(ctx context.Context, id string, res Resolution) (ci.Run, error) {
	return s.changeRun(ctx, id, func(t *tx, r *ci.Run) error {
		if r.State != ci.Preparing {
			return nil
		}
		if res.Failed != "" {
			return t.moveRun(r, ci.Failed, res.Failed)
		}
		if res.Skipped != "" {
			return t.skipPreparing(r, res)
		}
		return t.resolve(r, res)
	})
}

func (t *tx) resolve(r *ci.Run, res Resolution) error {
	if r.Source.Commit == "" && res.Commit == "" {
		return ci.Errorf(ci.CodeInternal, "run %s was to be resolved without a commit", r.ID)
	}
	before, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	if res.Spec != nil {
		r.Spec = res.Spec.Digest()
		if err := t.putSpec(r.Spec, res.Spec); err != nil {
			return err
		}
	}
	spec, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	had, wasIn := runLane(r, before)
	undecided := r.Undecided()
	r.Steps, r.Internal.Job, r.Internal.Note = pendingSteps(spec), nil, res.Note
	known := r.Source.Commit != ""
	if !known {
		r.Source.Commit = res.Commit
		if err := t.fileRef(r); err != nil {
			return err
		}
	}
	if err := t.changeLane(r, spec, had, wasIn); err != nil {
		return err
	}
	if undecided { // from now on it can take an older one's place
		if err := t.listScope(r); err != nil {
			return err
		}
	}
	if !known {
		foreign, err := t.isForkCommit(r)
		if err != nil {
			return err
		}
		// The head of one of the repository's own branches is its own, even
		// if a fork brought the commit first.
		if foreign && r.Source.PullRequest == nil && r.Cause.Kind != ci.CauseRerun {
			if err := t.delete(bucketForks, forkKey(r.Project, r.Source.Commit)); err != nil {
				return err
			}
		}
	}
	if r.Fork && !r.Internal.Approved {
		return t.moveRun(r, ci.Held, "")
	}
	return t.moveRun(r, ci.Queued, "")
}

// DelayJob records that a job could not be done yet, and when to try again.
func (s *Store) DelayJob(ctx context.Context, id string, nextAt time.Time, why string) error {
	_, err := s.changeRun(ctx, id, func(t *tx, r *ci.Run) error {
		if r.State != ci.Preparing || r.Internal.Job == nil {
			return nil
		}
		r.Internal.Job.Attempts++
		r.Internal.Job.NextAt, r.Internal.Job.LastErr = ci.At(nextAt), why
		t.wake(TopicRuns)
		return t.putRun(r)
	})
	return err
}
