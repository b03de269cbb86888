package store

import (
	"bytes"

	"docket/store/ci"
)

// RunFilter narrows a listing of runs; empty fields match all.
type RunFilter struct {
	Project string
	State   ci.State
	Branch  string
	Ref     RefKind
}

// Runs lists runs, newest first. The cost depends on the page, not on how
// many runs there are.
func (s *Store) Runs(f RunFilter, p Page) (list []ci.Run, next string, err error) {
	list = []ci.Run{}
	limit, before, err := p.read()
	if err != nil {
		return nil, "", err
	}
	err = s.view(func(t *tx) error {
		m, err := t.runStreams(f, before)
		if err != nil {
			return err
		}
		for looked := 0; ; looked++ {
			seq, key, ok := m.next()
			if !ok {
				return nil
			}
			if len(list) == limit || looked == maxLooked {
				next = cursor(before)
				return nil
			}
			before = seq
			v := t.get(bucketRuns, key)
			if f.Ref == KindBranch && t.otherKind(key) {
				continue
			}
			if v == nil || f.State != "" && runState(v) != f.State {
				continue
			}
			r, err := decodeRun(key, v)
			if err != nil {
				return err
			}
			if f.Ref != "" && kindOf(&r) != f.Ref {
				continue
			}
			t.showWaiting(&r)
			list = append(list, r)
		}
	})
	return list, next, err
}

// runStreams opens the index that fits a filter best: one stream of runs per
// project, merged by order of creation.
func (t *tx) runStreams(f RunFilter, before uint64) (*merge, error) {
	projects := []string{f.Project}
	if f.Project == "" {
		projects = t.projects()
	}
	m := &merge{}
	for _, p := range projects {
		switch {
		case f.Branch != "":
			for _, kind := range branchKinds(f.Ref) {
				m.add(t.bucket(bucketRefs).Cursor(), refPrefix(p, kind, f.Branch), p, before)
			}
		case f.Ref == KindTag:
			m.add(t.bucket(bucketKinds).Cursor(), kindPrefix(p, refTag), p, before)
		case f.Ref == KindPull:
			m.add(t.bucket(bucketKinds).Cursor(), kindPrefix(p, refPullRequest), p, before)
		case f.State != "":
			m.add(t.bucket(bucketStates).Cursor(), append([]byte{stateBytes[f.State]}, projectPrefix(p)...), p, before)
		default:
			m.add(t.bucket(bucketRuns).Cursor(), projectPrefix(p), p, before)
		}
	}
	return m, nil
}

// projects lists the projects that have runs, configured today or not.
func (t *tx) projects() []string {
	var list []string
	c := t.bucket(bucketRuns).Cursor()
	for k, _ := c.First(); k != nil; {
		i := bytes.IndexByte(k, 0)
		if i < 0 {
			break
		}
		list = append(list, string(k[:i]))
		k, _ = c.Seek(after(k[:i+1]))
	}
	return list
}

// merge reads several streams of runs, newest first over all. Each stream's
// values begin with the run's order of creation, and its keys end with the
// run's number.
type merge struct{ streams []*stream }

type stream struct {
	c       *tableCursor
	prefix  []byte
	project string
	seq     uint64
	number  uint64
}

// add opens a stream at the first run that was created before a sequence; 0
// means the newest.
func (m *merge) add(c *tableCursor, prefix []byte, project string, before uint64) {
	st := &stream{c: c, prefix: prefix, project: project}
	if !st.take(last(c, prefix)) {
		return
	}
	if before > 0 && st.seq >= before {
		if !st.search(before) {
			return
		}
	}
	m.streams = append(m.streams, st)
}

// take reads the entry that the cursor stands on.
func (st *stream) take(k, v []byte) bool {
	if len(k) != len(st.prefix)+8 || !bytes.HasPrefix(k, st.prefix) {
		return false
	}
	st.seq, st.number = fromBE64(v), fromBE64(k[len(st.prefix):])
	return true
}

// search finds the newest entry below a sequence by halving the numbers:
// within a stream the order of numbers is the order of creation.
func (st *stream) search(before uint64) bool {
	lo, hi := uint64(0), st.number // seq(lo) < before <= seq(hi)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		k, v := lastBefore(st.c, st.prefix, append(append([]byte(nil), st.prefix...), be64(mid+1)...))
		if k == nil || !st.take(k, v) {
			lo = mid
			continue
		}
		if st.seq >= before {
			hi = min(st.number, mid)
		} else {
			lo = mid
		}
	}
	return st.take(lastBefore(st.c, st.prefix, append(append([]byte(nil), st.prefix...), be64(hi)...)))
}

// next returns the newest run that is left.
func (m *merge) next() (seq uint64, key []byte, ok bool) {
	best := -1
	for i, st := range m.streams {
		if best < 0 || st.seq > m.streams[best].seq {
			best = i
		}
	}
	if best < 0 {
		return 0, nil, false
	}
	st := m.streams[best]
	seq, key = st.seq, runKey(st.project, st.number)
	if !st.take(st.c.Prev()) {
		m.streams = append(m.streams[:best], m.streams[best+1:]...)
	}
	return seq, key, true
}
