package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"

	"docket/store/ci"
)

// newRun is a run that is ready to be numbered, with what can be made of it
// outside the transaction.
type newRun struct {
	run    ci.Run
	spec   *ci.Spec
	digest string
	json   []byte
	policy ci.SupersedePolicy

	status     *ci.OutboxEntry // of its first state; nil if it has none
	statusJSON []byte
}

// prepareRun makes all of a run that does not depend on the store.
func (s *Store) prepareRun(d *ci.Draft, spec *ci.Spec, digest string, now ci.Time) *newRun {
	r := ci.Run{
		State: d.State, Cause: d.Cause, Source: d.Source, Fork: d.Fork, Spec: digest,
		Inputs: d.Inputs, CreatedAt: now, Project: d.Project,
		Internal: ci.Internal{
			Integration: d.Integration, Context: d.Context, Scope: d.Scope, Title: d.Title,
		},
	}
	if d.Job != nil {
		job := *d.Job
		if job.Resolve && r.Source.Commit != "" {
			job.Object, r.Source.Commit = r.Source.Commit, ""
		}
		r.Internal.Job = &job
	}
	r.Internal.Head = r.Source.Branch != "" && r.Source.PullRequest == nil &&
		(r.Cause.Kind == ci.CauseDelivery || d.Job != nil && d.Job.Resolve)
	r.Steps = pendingSteps(spec)
	n := &newRun{run: r, spec: spec, digest: digest, json: mustJSON(r), policy: d.Supersede}
	if lane, ok := runLane(&r, spec); ok && r.State != ci.Preparing {
		state, text := statusOf(&r)
		n.status = statusEntry(&r, lane, state, text)
		s.stamp(n.status, now)
		n.statusJSON = mustJSON(n.status)
	}
	return n
}

func pendingSteps(spec *ci.Spec) []ci.StepResult {
	steps := make([]ci.StepResult, len(spec.Steps))
	for i, st := range spec.Steps {
		steps[i] = ci.StepResult{Name: st.Name, State: ci.StepPending}
	}
	return steps
}

// createRun numbers a run and writes it with everything that goes with it:
// its frozen spec, its index entries and what is to be told of it.
func (t *tx) createRun(n *newRun) (ci.Run, error) {
	r := n.run
	number, err := t.nextNumber(r.Project)
	if err != nil {
		return r, err
	}
	seq, err := t.next(bucketRuns)
	if err != nil {
		return r, err
	}
	r.Number, r.ID, r.Internal.Seq = number, ci.RunID(r.Project, number), seq
	body := n.json
	if foreign, err := t.isForkCommit(&r); err != nil {
		return r, err
	} else if foreign && !r.Fork {
		r.Fork = true // asking for it by hand does not make a fork's commit ours
		if r.State == ci.Queued {
			r.State = ci.Held
		}
		body = mustJSON(r)
	}
	if err := t.putSpec(n.digest, n.spec); err != nil {
		return r, err
	}
	if err := t.put(bucketRuns, runKey(r.Project, number), encodeRun(seq, r.State, body)); err != nil {
		return r, err
	}
	if err := t.put(bucketStates, stateKey(r.State, r.Project, number), be64(seq)); err != nil {
		return r, err
	}
	if err := t.markScope(&r, n.policy); err != nil {
		return r, err
	}
	if err := t.fileRef(&r); err != nil {
		return r, err
	}
	if err := t.noteForkCommit(&r); err != nil {
		return r, err
	}
	t.wake(TopicRuns)
	if err := t.joinLane(&r, n.spec); err != nil {
		return r, err
	}
	if n.status == nil || r.State != n.run.State {
		return r, t.announce(&r, n.spec, eventOf(r.State))
	}
	status := *n.status
	status.Run = r.ID
	if err := t.enterJSON(&status, r.Internal.Integration, n.statusJSON); err != nil {
		return r, err
	}
	return r, t.notify(&r, n.spec, eventOf(r.State))
}

// nextNumber counts up from the project's newest run, which retention keeps.
func (t *tx) nextNumber(project string) (uint64, error) {
	n, ok := t.numbers[project]
	if !ok {
		if k, _ := last(t.bucket(bucketRuns).Cursor(), projectPrefix(project)); k != nil {
			_, n, _ = splitRunKey(k)
		}
	}
	n++
	t.numbers[project] = n
	return n, nil
}

func (t *tx) putSpec(digest string, spec *ci.Spec) error {
	key, err := specKey(digest)
	if err != nil {
		return err
	}
	if t.get(bucketSpecs, key) != nil {
		return nil
	}
	return t.put(bucketSpecs, key, mustJSON(spec))
}

func specKey(digest string) ([]byte, error) {
	h, ok := strings.CutPrefix(digest, "sha256:")
	key, err := hex.DecodeString(h)
	if !ok || err != nil || len(key) != 32 {
		return nil, ci.Errorf(ci.CodeNotFound, "no spec %q: a spec's digest is sha256: and 64 hex digits", digest)
	}
	return key, nil
}

// specCache keeps decoded specs. A digest names its content for ever, so
// nothing here can be out of date, whatever became of a transaction.
type specCache struct {
	mu sync.Mutex
	m  map[string]*ci.Spec
}

const maxCachedSpecs = 256

func (t *tx) spec(digest string) (*ci.Spec, error) {
	c := &t.s.specs
	c.mu.Lock()
	spec := c.m[digest]
	c.mu.Unlock()
	if spec != nil {
		return spec, nil
	}
	key, err := specKey(digest)
	if err != nil {
		return nil, err
	}
	v := t.get(bucketSpecs, key)
	if v == nil {
		return nil, ci.Errorf(ci.CodeNotFound, "no spec %s is on record", digest)
	}
	read, err := decodeJSON[ci.Spec]("spec", v)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxCachedSpecs {
		c.m = map[string]*ci.Spec{}
	}
	c.m[digest] = &read
	return &read, nil
}

// Spec returns a frozen spec by its digest, or CodeNotFound.
func (s *Store) Spec(digest string) (spec ci.Spec, err error) {
	err = s.view(func(t *tx) error {
		p, err := t.spec(digest)
		if err == nil {
			spec = *p
		}
		return err
	})
	return spec, err
}

// run reads one run, or CodeNotFound.
func (t *tx) run(id string) (ci.Run, error) {
	key, err := runKeyOf(id)
	if err != nil {
		return ci.Run{}, err
	}
	v := t.get(bucketRuns, key)
	if v == nil {
		return ci.Run{}, ci.Errorf(ci.CodeNotFound, "no run %q; `docket runs list` shows those there are", id)
	}
	return decodeRun(key, v)
}

// Run returns a run, or CodeNotFound.
func (s *Store) Run(id string) (r ci.Run, err error) {
	err = s.view(func(t *tx) error {
		r, err = t.run(id)
		return err
	})
	return r, err
}

// putRun writes a changed run that keeps its state.
func (t *tx) putRun(r *ci.Run) error {
	return t.put(bucketRuns, runKey(r.Project, r.Number), encodeRun(r.Internal.Seq, r.State, mustJSON(r)))
}

// moveRun takes a run to another state, if the table of transitions allows
// it, with the index entry and what is to be told of it.
func (t *tx) moveRun(r *ci.Run, to ci.State, reason string) error {
	if !ci.CanMove(r.State, to) {
		return ci.Errorf(ci.CodeConflict, "run %s is %s and cannot become %s", r.ID, r.State, to)
	}
	if err := t.delete(bucketStates, stateKey(r.State, r.Project, r.Number)); err != nil {
		return err
	}
	r.State, r.Reason = to, reason
	if to.Final() {
		r.FinishedAt = ci.At(t.now)
		r.CancelRequested = nil
		r.Internal.Process, r.Internal.Job = nil, nil
		endSteps(r)
	}
	if err := t.put(bucketStates, stateKey(to, r.Project, r.Number), be64(r.Internal.Seq)); err != nil {
		return err
	}
	if err := t.putRun(r); err != nil {
		return err
	}
	t.wake(TopicRuns)
	spec, err := t.spec(r.Spec)
	if err != nil {
		return err
	}
	if err := t.announce(r, spec, eventOf(to)); err != nil {
		return err
	}
	if to.Final() {
		return t.leaveLane(r, spec)
	}
	return nil
}

// endSteps closes the steps of a run that has ended.
func endSteps(r *ci.Run) {
	for i := range r.Steps {
		st := &r.Steps[i]
		switch st.State {
		case ci.StepPending:
			st.State = ci.StepSkipped
		case ci.StepRunning:
			st.State, st.FinishedAt = ci.StepCancelled, r.FinishedAt
			if r.State == ci.Failed {
				st.State = ci.StepFailed
			}
		}
	}
}

// RunFilter narrows a listing of runs; empty fields match all.
type RunFilter struct {
	Project string
	State   ci.State
	Branch  string
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
			if v == nil || f.State != "" && runState(v) != f.State {
				continue
			}
			r, err := decodeRun(key, v)
			if err != nil {
				return err
			}
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
			for _, kind := range []byte{refBranch, refHeadBranch} {
				m.add(t.bucket(bucketRefs).Cursor(), refPrefix(p, kind, f.Branch), p, before)
			}
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
	c       *bolt.Cursor
	prefix  []byte
	project string
	seq     uint64
	number  uint64
}

// add opens a stream at the first run that was created before a sequence; 0
// means the newest.
func (m *merge) add(c *bolt.Cursor, prefix []byte, project string, before uint64) {
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

// fromProvider reports whether a signed delivery says what the run's commit
// is and whose, be it for the first time or again.
func fromProvider(r *ci.Run) bool {
	return r.Cause.Kind == ci.CauseDelivery || r.Cause.Kind == ci.CauseReplay
}

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

// changeRun runs fn on a run in a write; fn changes it through t.
func (s *Store) changeRun(ctx context.Context, id string, fn func(t *tx, r *ci.Run) error) (r ci.Run, err error) {
	err = s.update(ctx, func(t *tx) error {
		r, err = t.run(id)
		if err != nil {
			return err
		}
		return fn(t, &r)
	})
	return r, err
}
