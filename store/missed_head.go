package store

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"docket/store/ci"
)

// The heads bucket has, of each project whose heads are compared with the
// provider's: what they began with, the commit that each head is accounted for
// up to, the heads that no run is known of, and the newest commits that
// deliveries without a run told of. A head is named by ci.Head.Key.
const (
	headBase  = 'b'
	headKnown = 'k'
	headOpen  = 'o'
	headTold  = 't'
)

// keptTold is how many commits of one head are remembered of deliveries that
// made no run, and lookedMoves how many runs of one head are looked through
// for a commit.
const (
	keptTold    = 8
	lookedMoves = 256
)

func headsPrefix(project string, kind byte) []byte { return append(projectPrefix(project), kind) }

func headKey(project string, kind byte, key string) []byte {
	return append(headsPrefix(project, kind), key...)
}

// HeadsBase returns what a project's heads are compared with; ok is false
// before the first comparison.
func (s *Store) HeadsBase(project string) (b ci.HeadsBase, ok bool, err error) {
	err = s.view(func(t *tx) error {
		v := t.get(bucketHeads, headsPrefix(project, headBase))
		if v == nil {
			return nil
		}
		ok = true
		b, err = decodeJSON[ci.HeadsBase]("heads", v)
		return err
	})
	return b, ok, err
}

// HeadState returns the commit that each of a project's heads is accounted
// for up to, and the heads that are not, both by key.
func (s *Store) HeadState(project string) (known map[string]string, open map[string]ci.MissedHead, err error) {
	known, open = map[string]string{}, map[string]ci.MissedHead{}
	err = s.view(func(t *tx) error {
		prefix := headsPrefix(project, headKnown)
		c := t.bucket(bucketHeads).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			known[string(k[len(prefix):])] = string(v)
		}
		list, err := t.openHeads(project)
		for _, m := range list {
			open[m.Key()] = m
		}
		return err
	})
	return known, open, err
}

func (t *tx) openHeads(project string) (list []ci.MissedHead, err error) {
	prefix := headsPrefix(project, headOpen)
	c := t.bucket(bucketHeads).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		m, err := decodeJSON[ci.MissedHead]("head", v)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// MissedHeads lists a project's heads that no run is known of and whose
// delivery is waited for no longer. One that a delivery has told of since is
// left out.
func (s *Store) MissedHeads(project string) (list []ci.MissedHead, err error) {
	list = []ci.MissedHead{}
	err = s.view(func(t *tx) error {
		open, err := t.openHeads(project)
		if err != nil {
			return err
		}
		for i := range open {
			if open[i].ListedAt.IsZero() {
				continue
			}
			told, err := t.headTold(project, &open[i].Head)
			if err != nil {
				return err
			}
			if !told {
				list = append(list, open[i])
			}
		}
		return nil
	})
	return list, err
}

// HeadsTold returns the keys of those heads that a run or a delivery is known
// of. Each is looked up by its key.
func (s *Store) HeadsTold(project string, heads []ci.Head) (told map[string]bool, err error) {
	told = map[string]bool{}
	err = s.view(func(t *tx) error {
		for i := range heads {
			is, err := t.headTold(project, &heads[i])
			if err != nil {
				return err
			}
			told[heads[i].Key()] = is
		}
		return nil
	})
	return told, err
}

func (t *tx) headTold(project string, h *ci.Head) (bool, error) {
	for _, c := range strings.Fields(string(t.get(bucketHeads, headKey(project, headTold, h.Key())))) {
		if c == h.Commit {
			return true, nil
		}
	}
	run, err := t.runOfHead(project, h)
	return run != "", err
}

// runOfHead returns the newest run of a head's commit there, "" for none.
func (t *tx) runOfHead(project string, h *ci.Head) (string, error) {
	kind, name := byte(refBranch), ""
	branch, tag := ci.SplitRef(h.Ref)
	switch {
	case h.PullRequest != nil:
		kind, name = refPullRequest, pullRequestName(h.PullRequest.Number)
	case branch != "":
		name = branch
	case tag != "":
		kind, name = refTag, tag
	default:
		return "", nil
	}
	for _, k := range [...]byte{kind, skippedKind(kind)} {
		run, err := t.runAtHead(project, k, name, h.Commit)
		if run != "" || err != nil {
			return run, err
		}
	}
	return "", nil
}

// runAtHead returns the newest run of a commit that is filed under a ref. A
// tag's that has no commit yet is taken for it: it is being peeled.
func (t *tx) runAtHead(project string, kind byte, name, commit string) (string, error) {
	prefix := refPrefix(project, kind, name)
	c := t.bucket(bucketRefs).Cursor()
	k, v := last(c, prefix)
	for looked := 0; looked < lookedMoves && len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix); looked++ {
		m, err := decodeMove(v)
		if err != nil {
			return "", err
		}
		if m.after == commit || kind == refTag && m.after == "" {
			return ci.RunID(project, fromBE64(k[len(prefix):])), nil
		}
		k, v = c.Prev()
	}
	return "", nil
}

// noteHeads remembers what a delivery told of a head, for the projects in
// which it made no run that is filed under its commit. Only projects whose
// heads are compared need it.
func (t *tx) noteHeads(a *Acceptance) error {
	key, ok := headOfEvent(&a.Event)
	if !ok {
		return nil
	}
	for _, p := range a.Projects {
		filed := slices.ContainsFunc(a.Drafts, func(d ci.Draft) bool {
			return d.Project == p && !d.Skip && (d.Job == nil || !d.Job.Resolve)
		})
		if filed || t.get(bucketHeads, headsPrefix(p, headBase)) == nil {
			continue
		}
		at := headKey(p, headTold, key)
		commits := strings.Fields(string(t.get(bucketHeads, at)))
		if slices.Contains(commits, a.Event.Commit) {
			continue
		}
		commits = append([]string{a.Event.Commit}, commits[:min(len(commits), keptTold-1)]...)
		if err := t.put(bucketHeads, at, []byte(strings.Join(commits, " "))); err != nil {
			return err
		}
	}
	return nil
}

// headOfEvent returns the key of the head that an event tells of.
func headOfEvent(e *ci.Event) (key string, ok bool) {
	if e.Deleted || !ci.IsCommit(e.Commit) {
		return "", false
	}
	h := ci.Head{Ref: e.Ref}
	switch {
	case e.Kind == ci.EventPush && (e.Branch != "" || e.Tag != ""):
	case e.Kind == ci.EventPullRequest && e.PullRequest != nil:
		h.PullRequest = e.PullRequest
	default:
		return "", false
	}
	return h.Key(), true
}

// HeadChanges are what one comparison of a project's heads changes.
type HeadChanges struct {
	Project string
	Base    *ci.HeadsBase // set at the first comparison: whatever was kept before goes
	Known   map[string]string
	Open    []ci.MissedHead
	Settle  []string
	Gone    []string
}

// RecordHeads writes what a comparison of heads found, in one commit. A head
// that was accounted for since it was looked at stays so.
func (s *Store) RecordHeads(ctx context.Context, c HeadChanges) error {
	return s.update(ctx, func(t *tx) error {
		if c.Base != nil {
			if err := t.forgetHeads(c.Project); err != nil {
				return err
			}
			if err := t.put(bucketHeads, headsPrefix(c.Project, headBase), mustJSON(c.Base)); err != nil {
				return err
			}
		}
		for key, commit := range c.Known {
			if err := t.put(bucketHeads, headKey(c.Project, headKnown, key), []byte(commit)); err != nil {
				return err
			}
			if err := t.delete(bucketHeads, headKey(c.Project, headOpen, key)); err != nil {
				return err
			}
		}
		for i := range c.Open {
			m := &c.Open[i]
			if string(t.get(bucketHeads, headKey(c.Project, headKnown, m.Key()))) == m.Commit {
				continue
			}
			m.Project = c.Project
			if err := t.put(bucketHeads, headKey(c.Project, headOpen, m.Key()), mustJSON(m)); err != nil {
				return err
			}
		}
		for _, key := range c.Settle {
			if err := t.delete(bucketHeads, headKey(c.Project, headOpen, key)); err != nil {
				return err
			}
		}
		for _, key := range c.Gone {
			for _, kind := range []byte{headKnown, headOpen, headTold} {
				if err := t.delete(bucketHeads, headKey(c.Project, kind, key)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (t *tx) forgetHeads(project string) error {
	prefix := projectPrefix(project)
	var keys [][]byte
	c := t.bucket(bucketHeads).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return t.deleteAll(bucketHeads, keys)
}

// heads ensures that what is kept of heads can be read, and that no head is
// both accounted for and not.
func (v *verifier) heads() error {
	if v.t.bucket(bucketHeads) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketHeads, func(k, val []byte) error {
		i := bytes.IndexByte(k, 0)
		if i < 1 || len(k) < i+2 {
			v.broken("heads: %q", k)
			return nil
		}
		project, kind, key := string(k[:i]), k[i+1], string(k[i+2:])
		if v.t.get(bucketHeads, headsPrefix(project, headBase)) == nil {
			v.broken("heads: %q of a project whose heads were never compared", k)
		}
		switch kind {
		case headBase:
			if _, err := decodeJSON[ci.HeadsBase]("heads", val); err != nil || key != "" {
				v.broken("heads of %s: %v", project, err)
			}
		case headKnown, headTold:
			for _, c := range strings.Fields(string(val)) {
				if !ci.IsCommit(c) {
					v.broken("heads: %q is at %q, which is no commit", k, c)
				}
			}
		case headOpen:
			m, err := decodeJSON[ci.MissedHead]("head", val)
			if err != nil || m.Project != project || m.Key() != key || !ci.IsCommit(m.Commit) {
				v.broken("heads: %q: it says %q of %q, %v", k, m.Key(), m.Project, err)
			} else if string(v.t.get(bucketHeads, headKey(project, headKnown, key))) == m.Commit {
				v.broken("heads: %q has no run, and is accounted for", k)
			}
		default:
			v.broken("heads: %q", k)
		}
		return nil
	})
}
