package store

import (
	"docket/store/ci"
)

// RefKind is what kind of ref a run builds.
type RefKind string

// Kinds of refs, for RunFilter.
const (
	KindBranch RefKind = "branch"
	KindTag    RefKind = "tag"
	KindPull   RefKind = "pull" // pull request
)

// RefKinds lists them.
var RefKinds = []RefKind{KindBranch, KindTag, KindPull}

// The kinds bucket files the runs of tags and of pull requests by project, for
// listings of one kind. Those of branches are most of all runs anyway and are
// listed by leaving the others out.

func kindPrefix(project string, kind byte) []byte { return append(projectPrefix(project), kind) }

func kindKey(project string, kind byte, number uint64) []byte {
	return append(kindPrefix(project, kind), be64(number)...)
}

// filedKind returns under which kind a run is filed; ok is false for none.
func filedKind(r *ci.Run) (kind byte, ok bool) {
	kind, _, ok = refOf(r)
	return kind, ok && kind != refBranch
}

// fileKind puts a new run into the index.
func (t *tx) fileKind(r *ci.Run) error {
	kind, ok := filedKind(r)
	if !ok {
		return nil
	}
	return t.put(bucketKinds, kindKey(r.Project, kind, r.Number), be64(r.Internal.Seq))
}

// otherKind reports whether the run of a key is filed as a tag's or a pull
// request's.
func (t *tx) otherKind(key []byte) bool {
	project, number, _ := splitRunKey(key)
	return t.get(bucketKinds, kindKey(project, refTag, number)) != nil ||
		t.get(bucketKinds, kindKey(project, refPullRequest, number)) != nil
}

// branchKinds returns under which kinds a branch's runs lie in the refs
// bucket, where only those of one kind are wanted.
func branchKinds(k RefKind) []byte {
	switch k {
	case KindBranch:
		return []byte{refBranch, skippedKind(refBranch)}
	case KindPull:
		return []byte{refHeadBranch, skippedKind(refHeadBranch)}
	case KindTag:
		return nil
	}
	return []byte{refBranch, refHeadBranch, skippedKind(refBranch), skippedKind(refHeadBranch)}
}

// kindOf is refOf in the words of a filter; "" for a run of none of them.
func kindOf(r *ci.Run) RefKind {
	switch kind, _, _ := refOf(r); kind {
	case refBranch:
		return KindBranch
	case refTag:
		return KindTag
	case refPullRequest:
		return KindPull
	}
	return ""
}

// refileKinds makes the index of a store from before it.
func (t *tx) refileKinds() error {
	index := t.bucket(bucketKinds)
	return t.bucket(bucketRuns).ForEach(func(k, v []byte) error {
		r, err := decodeRun(k, v)
		if err != nil {
			return err
		}
		kind, ok := filedKind(&r)
		if !ok {
			return nil
		}
		return index.Put(kindKey(r.Project, kind, r.Number), be64(r.Internal.Seq))
	})
}

// kinds ensures that each filing is of a run of that kind, and that no run is
// filed twice or not at all.
func (v *verifier) kinds() error {
	if v.t.bucket(bucketKinds) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	filed, runs := 0, 0
	err := v.each(bucketKinds, func(k, val []byte) error {
		filed++
		if len(k) < 11 {
			v.broken("kinds: %q", k)
			return nil
		}
		key := append(append([]byte(nil), k[:len(k)-9]...), k[len(k)-8:]...)
		rv := v.t.get(bucketRuns, key)
		if rv == nil {
			v.broken("kinds: %q has no such run", k)
			return nil
		}
		r, err := decodeRun(key, rv)
		if err != nil {
			return nil // told already
		}
		if kind, ok := filedKind(&r); !ok || kind != k[len(k)-9] || fromBE64(val) != r.Internal.Seq {
			v.broken("kinds: run %s is filed as %q, %d", r.ID, k[len(k)-9], fromBE64(val))
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = v.each(bucketRuns, func(k, val []byte) error {
		if r, err := decodeRun(k, val); err == nil {
			if _, ok := filedKind(&r); ok {
				runs++
			}
		}
		return nil
	})
	if filed != runs {
		v.broken("kinds: %d filings of %d runs of tags and pull requests", filed, runs)
	}
	return err
}
