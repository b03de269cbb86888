package store

import (
	"docket/store/ci"
)

// isForkCommit reports whether a run by hand asks for a commit that a fork brought.
func (t *tx) isForkCommit(r *ci.Run) (bool, error) {
	if r.Source.Commit == "" || fromProvider(r) {
		return false, nil
	}
	return t.get(bucketForks, forkKey(r.Project, r.Source.Commit)) != nil, nil
}

// noteForkCommit remembers a fork's commit, and forgets it once the
// repository itself has it at the head of a branch or as a tag.
func (t *tx) noteForkCommit(r *ci.Run) error {
	if r.Source.Commit == "" || !fromProvider(r) {
		return nil
	}
	key := forkKey(r.Project, r.Source.Commit)
	if r.Fork {
		return t.put(bucketForks, key, []byte(r.ID))
	}
	if r.Source.PullRequest == nil && t.get(bucketForks, key) != nil {
		return t.delete(bucketForks, key)
	}
	return nil
}

func forkKey(project, commit string) []byte { return append(projectPrefix(project), commit...) }
