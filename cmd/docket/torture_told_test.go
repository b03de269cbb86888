//go:build torture

package main

import (
	"slices"

	"docket/store/ci"
)

// tortureState is what GitHub must hear of a run's end.
func tortureState(s ci.State) string {
	switch s {
	case ci.Succeeded:
		return "success"
	case ci.Failed:
		return "failure"
	}
	return "error"
}

// checkStatuses: what GitHub shows for a commit and context is the result of
// its newest run, nothing older ever arrived after something newer, and every
// run's end arrived unless a newer run spoke for the commit.
func (w *tortureWorld) checkStatuses(r *tortureRecord) {
	newest := map[tortureContext]*ci.Run{}
	for i := range r.runs { // oldest first
		run := &r.runs[i]
		if run.Source.Commit != "" {
			newest[tortureContextOf(run)] = run
		}
	}
	for key, list := range w.outside.statuses {
		if newest[key] == nil {
			w.fail("GitHub was told of %+v, which has no run: %+v", key, list)
			continue
		}
		w.checkOrder(r, key, list)
	}
	for key, run := range newest {
		list := w.outside.statuses[key]
		if len(list) == 0 {
			w.fail("GitHub never heard of run %s, the newest of %+v", run.ID, key)
			continue
		}
		if last := list[len(list)-1]; last.run != run.ID || last.state != tortureState(run.State) {
			w.fail("GitHub shows %+v for %+v, and its newest run %s %s; it was told %+v", last, key, run.ID, run.State, list)
		}
	}
	w.checkFinalStatuses(r, newest)
}

func tortureContextOf(run *ci.Run) tortureContext {
	return tortureContext{run.Source.Repository, run.Source.Commit, run.Internal.Context}
}

// checkOrder: among the statuses of one commit and context runs follow each
// other as they were made, and after a run's end nothing else is said of it.
func (w *tortureWorld) checkOrder(r *tortureRecord, key tortureContext, list []tortureStatus) {
	for i, st := range list {
		run := r.byID[st.run]
		if run == nil || tortureContextOf(run) != key {
			w.fail("GitHub was told %+v for %+v, which is not that run's", st, key)
			return
		}
		if want := w.url + "/runs/" + st.run; st.target != want {
			w.fail("the status %+v points to %s; want %s", st, st.target, want)
		}
		if i == 0 {
			continue
		}
		before := list[i-1]
		older := r.byID[before.run].Internal.Seq > run.Internal.Seq
		late := before.run == st.run && before.state != "pending" && before.state != st.state
		if older || late {
			w.fail("GitHub was told %+v after %+v for %+v", st, before, key)
		}
	}
}

// checkFinalStatuses: each run has exactly one final status in the outbox. It
// was sent and arrived, or it was skipped since a newer run speaks.
func (w *tortureWorld) checkFinalStatuses(r *tortureRecord, newest map[tortureContext]*ci.Run) {
	final := map[string][]ci.OutboxEntry{}
	for _, e := range r.entries {
		if e.Kind == ci.OutboxGitHubStatus && e.Final {
			final[e.Run] = append(final[e.Run], e)
		}
		if e.State != ci.OutboxSent && e.State != ci.OutboxSkipped {
			w.fail("the notification %s of run %s is %s: %s", e.ID, e.Run, e.State, e.LastError)
		}
	}
	for i := range r.runs {
		run := &r.runs[i]
		if run.Source.Commit == "" {
			continue // it ended before anybody knew its commit
		}
		key := tortureContextOf(run)
		list := final[run.ID]
		if len(list) != 1 {
			w.fail("run %s has %d final statuses: %+v", run.ID, len(list), list)
			continue
		}
		arrived := slices.ContainsFunc(w.outside.statuses[key], func(st tortureStatus) bool {
			return st.run == run.ID && st.state == tortureState(run.State)
		})
		switch e := list[0]; {
		case e.State == ci.OutboxSent && !arrived:
			w.fail("the final status %s of run %s counts as sent, and never arrived", e.ID, run.ID)
		case e.State == ci.OutboxSkipped && newest[key] == run:
			w.fail("the final status %s of run %s was skipped (%s), though no run is newer", e.ID, run.ID, e.LastError)
		}
	}
}

// checkMessages: what a project's webhook asked for arrived, each under one
// id, in order, with the run as it ended.
func (w *tortureWorld) checkMessages(r *tortureRecord) {
	finished := map[string][]string{} // ids, by run
	for _, e := range r.entries {
		if e.Kind != ci.OutboxWebhook {
			continue
		}
		m := w.outside.messages[e.ID]
		if m == nil {
			w.fail("the message %s (%s of run %s) counts as %s, and never arrived", e.ID, e.Event, e.Run, e.State)
			continue
		}
		if m.parsed.Type != e.Event || m.parsed.Data.ID != e.Run || e.Target != w.outside.target(m.project) {
			w.fail("the message %s arrived as %s of run %s at %s, and the outbox has %s of %s at %s", e.ID, m.parsed.Type, m.parsed.Data.ID, m.project, e.Event, e.Run, e.Target)
		}
	}
	over := map[string]bool{}
	for _, id := range w.outside.order {
		m := w.outside.messages[id]
		run := r.byID[m.parsed.Data.ID]
		if run == nil || run.Project != m.project {
			w.fail("the message %s tells %s of run %q, which is not one of %s", id, m.parsed.Type, m.parsed.Data.ID, m.project)
			continue
		}
		switch m.parsed.Type {
		case ci.RunQueued, ci.RunStarted:
			if over[run.ID] {
				w.fail("the message %s tells %s of run %s, after its end was told", id, m.parsed.Type, run.ID)
			}
			continue
		case ci.RunFinished:
			finished[run.ID] = append(finished[run.ID], id)
		}
		over[run.ID] = true
		if m.parsed.Data.State != run.State {
			w.fail("the message %s tells that run %s %s, and it %s", id, run.ID, m.parsed.Data.State, run.State)
		}
	}
	for _, run := range r.runs {
		want := 1
		if w.project(run.Project).events == "" {
			want = 0
		}
		if ids := finished[run.ID]; len(ids) != want {
			w.fail("the end of run %s was told under the ids %v; want %d", run.ID, ids, want)
		}
	}
}
