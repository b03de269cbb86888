package store

import (
	"bytes"

	"docket/store/ci"
)

// The commits bucket has, for each project, commit and context that a run has
// ended with, the number of the run that ended there last. What has not ended
// is found by its lane.

func commitKey(r *ci.Run) []byte {
	k := append(projectPrefix(r.Project), r.Source.Commit...)
	k = append(k, 0)
	return append(k, r.Internal.Context...)
}

// hasResult reports whether a run is one that the commits bucket knows of.
func hasResult(r *ci.Run) bool {
	return r.State.Final() && r.Source.Commit != "" && !r.Internal.Silent
}

func (t *tx) fileCommit(r *ci.Run) error {
	if !hasResult(r) {
		return nil
	}
	return t.put(bucketCommits, commitKey(r), be64(r.Number))
}

// refileCommits makes the index of a store from before it.
func (t *tx) refileCommits() error {
	ended := map[string]ci.Time{}
	return t.bucket(bucketRuns).ForEach(func(k, v []byte) error {
		r, err := decodeRun(k, v)
		if err != nil || !hasResult(&r) {
			return err
		}
		key := commitKey(&r)
		if ended[string(key)].After(r.FinishedAt.Time) {
			return nil
		}
		ended[string(key)] = r.FinishedAt
		return t.put(bucketCommits, key, be64(r.Number))
	})
}

// commits ensures that the index names a run of each commit and context that
// one has ended with, and no others.
func (v *verifier) commits() error {
	if v.t.bucket(bucketCommits) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	err := v.each(bucketCommits, func(k, val []byte) error {
		i := bytes.IndexByte(k, 0)
		if i < 0 {
			v.broken("commits: %q", k)
			return nil
		}
		key := runKey(string(k[:i]), fromBE64(val))
		r, err := decodeRun(key, v.t.get(bucketRuns, key))
		if err != nil || !hasResult(&r) || !bytes.Equal(commitKey(&r), k) {
			v.broken("commits: %q does not belong to run %s-%d: %v", k, k[:i], fromBE64(val), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.each(bucketRuns, func(k, val []byte) error {
		if r, err := decodeRun(k, val); err == nil && hasResult(&r) && v.t.get(bucketCommits, commitKey(&r)) == nil {
			v.broken("run %s: has ended, and the index of commits knows no run of %s", r.ID, r.Source.Commit)
		}
		return nil
	})
}
