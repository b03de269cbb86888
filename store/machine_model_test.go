package store_test

import (
	"fmt"
	"slices"
	"time"

	"docket/store/ci"
)

// model is what a store promises, in maps and without a disk.
type model struct {
	now      time.Time
	runs     map[string]*mRun
	order    []*mRun
	receipts map[string]*mReceipt
	keys     map[string]mKey
	entries  []*mEntry
	forks    map[string]bool // project and commit
	holds    map[string]time.Time
	slot     *ci.SlotRecord   // of the one schedule, nil before it is seen
	slots    []*ci.SlotRecord // what it was before
}

type mRun struct {
	id, project, branch, commit, context, cause string
	number, seq, attempt                        int
	state                                       ci.State
	cancel                                      ci.State // what it is asked to become
	cancelBy, supersededBy                      string
	deploying, fork                             bool
	group                                       string
	skip, silent, undecided                     bool
}

// lane is where the run's status is told; "" for nowhere.
func (r *mRun) lane() string {
	if r.commit == "" || r.undecided || r.silent {
		return ""
	}
	return "status " + r.commit + " " + r.context
}

// settled reports whether a run of the same project, commit and context is on
// record, whose word a skip would stand beside.
func (m *model) settled(r *mRun) bool {
	for _, o := range m.order {
		if o != r && o.project == r.project && o.lane() == "status "+r.commit+" "+r.context {
			return true
		}
	}
	return false
}

type mReceipt struct {
	body    string
	runs    []string
	outcome ci.Outcome
}

type mKey struct{ digest, run string }

type mEntry struct {
	lane, hold, run, event string
	state                  ci.OutboxState
	attempts               int
	status, final, retried bool
	due                    time.Time
}

func newModel(now time.Time) *model {
	return &model{
		now: now, runs: map[string]*mRun{}, receipts: map[string]*mReceipt{}, keys: map[string]mKey{},
		forks: map[string]bool{}, holds: map[string]time.Time{},
	}
}

func (m *model) create(r mRun) *mRun {
	for _, o := range m.order {
		if o.project == r.project {
			r.number++
		}
	}
	r.number++
	r.seq = len(m.order) + 1
	r.id = fmt.Sprintf("%s-%d", r.project, r.number)
	key := r.project + " " + r.commit
	switch {
	case r.commit == "":
	case r.cause == ci.CauseDelivery && r.fork:
		m.forks[key] = true
	case r.cause == ci.CauseDelivery:
		delete(m.forks, key)
	case m.forks[key] && !r.fork:
		r.fork = true
		if r.state == ci.Queued {
			r.state = ci.Held
		}
	}
	m.runs[r.id] = &r
	m.order = append(m.order, &r)
	m.tell(&r)
	return &r
}

func (m *model) move(r *mRun, to ci.State) {
	r.state, r.undecided = to, false
	if to.Final() {
		r.cancel, r.cancelBy = "", ""
	}
	m.tell(r)
}

const modelTarget = "https://hooks.example.org"

// tell puts into the outbox what a run's state means for the world.
func (m *model) tell(r *mRun) {
	if lane := r.lane(); lane != "" && r.state != ci.Preparing {
		word := map[ci.State]string{
			ci.Held: "pending", ci.Queued: "pending", ci.Running: "pending", ci.Succeeded: "success", ci.Failed: "failure",
		}[r.state]
		if r.skip {
			word = "success"
		} else if word == "" {
			word = "error"
		}
		if r.state.Final() {
			for _, e := range m.entries {
				if e.lane == lane && e.run == r.id && e.state == ci.OutboxPending && !e.final && e.attempts == 0 {
					e.state = ci.OutboxSkipped
				}
			}
		}
		m.entries = append(m.entries, &mEntry{
			lane: lane, hold: "github", run: r.id, event: word, state: ci.OutboxPending,
			status: true, final: r.state.Final(), due: m.now,
		})
	}
	event := map[ci.State]string{ci.Queued: ci.RunQueued, ci.Running: ci.RunStarted}[r.state]
	if r.state.Final() {
		event = ci.RunFinished
	}
	if event != "" && !r.skip {
		m.entries = append(m.entries, &mEntry{
			lane: "hook " + r.id, hold: modelTarget, run: r.id, event: event, state: ci.OutboxPending,
			final: r.state.Final(), due: m.now,
		})
	}
}

// first reports whether nothing that waits in an entry's lane is before it.
func (m *model) first(i int) bool {
	for _, e := range m.entries[:i] {
		if e.lane == m.entries[i].lane && e.state == ci.OutboxPending {
			return false
		}
	}
	return true
}

// due returns the places of the entries that may be sent now.
func (m *model) due() (list []int) {
	for i, e := range m.entries {
		if e.state == ci.OutboxPending && m.first(i) && !e.due.After(m.now) && !m.holds[e.hold].After(m.now) {
			list = append(list, i)
		}
	}
	return list
}

// begin begins an attempt, or skips what is not to be told any more.
func (m *model) begin(i int) (ok bool) {
	e := m.entries[i]
	if e.state != ci.OutboxPending || !m.first(i) {
		return false
	}
	if e.status {
		speaker := ""
		for _, r := range m.order {
			if r.lane() == e.lane && (!r.skip || speaker == "") {
				speaker = r.id
			}
		}
		if speaker != e.run {
			e.state = ci.OutboxSkipped
			return false
		}
	}
	if (e.status || e.retried) && !e.final && m.runs[e.run].state.Final() {
		e.state = ci.OutboxSkipped
		return false
	}
	e.attempts++
	return true
}

// next is the run to be claimed.
func (m *model) next(limit int) *mRun {
	running := map[string]int{}
	total := 0
	taken := map[string]bool{}
	for _, r := range m.order {
		if r.state == ci.Running {
			running[r.project]++
			total++
			taken[r.group] = r.group != ""
		}
	}
	if total >= limit {
		return nil
	}
	var best *mRun
	seen := map[string]bool{}
	for _, r := range m.order {
		if r.state != ci.Queued || taken[r.group] {
			continue
		}
		taken[r.group] = r.group != "" // it is this one's turn
		if seen[r.project] {
			continue
		}
		seen[r.project] = true
		if best == nil || running[r.project] < running[best.project] {
			best = r
		}
	}
	return best
}

func (m *model) claim(limit int) *mRun {
	r := m.next(limit)
	if r != nil {
		r.attempt++
		m.move(r, ci.Running)
	}
	return r
}

// accept returns the runs that a delivery is answered with.
func (m *model) accept(id, body string, drafts []mRun) (runs []string, duplicate, conflict bool) {
	rec := m.receipts[id]
	switch {
	case rec == nil:
		rec = &mReceipt{body: body}
		m.receipts[id] = rec
	case rec.body != body:
		return nil, false, true
	case slices.ContainsFunc(rec.runs, func(id string) bool { return !m.runs[id].skip }):
		return rec.runs, true, false
	default:
		duplicate = true
	}
	if rec.outcome == "" {
		rec.outcome, duplicate = ci.Ignored, false
	}
	for _, d := range drafts {
		if d.skip && m.settled(&d) {
			continue
		}
		rec.runs = append(rec.runs, m.create(d).id)
		rec.outcome, duplicate = ci.Accepted, false
	}
	return slices.Clone(rec.runs), duplicate, false
}

// supersede carries out one decision.
func (m *model) supersede(old, newer string) {
	r := m.runs[old]
	switch {
	case r.state.Pending():
		r.supersededBy = newer
		m.move(r, ci.Superseded)
	case r.state == ci.Running && !r.deploying && r.cancel == "":
		r.cancel, r.cancelBy = ci.Superseded, newer
	}
}

func (m *model) lost(r *mRun, attempt int, requeue bool) {
	if r.state != ci.Running || r.attempt != attempt {
		return
	}
	switch {
	case r.cancel != "":
		if r.cancelBy != "" {
			r.supersededBy = r.cancelBy
		}
		m.move(r, r.cancel)
	case requeue && !r.deploying:
		m.move(r, ci.Queued)
	default:
		m.move(r, ci.Interrupted)
	}
}
