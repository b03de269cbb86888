//go:build torture

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"docket/store"
	"docket/store/ci"
)

// tortureRecord is what the store of the stopped server holds, oldest first.
type tortureRecord struct {
	runs      []ci.Run
	byID      map[string]*ci.Run
	receipts  []ci.Receipt
	entries   []ci.OutboxEntry
	decisions map[string][]ci.Decision // by run
}

// check holds what the stopped server left behind against what was promised.
func (w *tortureWorld) check(book *tortureBook, seen tortureSeen) {
	w.t.Helper()
	faults, err := store.VerifyFile(context.Background(), w.storeFile())
	if err != nil {
		w.fatal("the store cannot be verified: %v", err)
	}
	for _, f := range faults {
		w.fail("verify: %s", f)
	}
	s, err := store.Open(w.storeFile(), store.Options{ReadOnly: true})
	if err != nil {
		w.fatal("%v", err)
	}
	defer s.Close()
	r := w.record(s)
	w.runs = len(r.runs)
	w.checkSeen(r, seen)
	w.checkReceipts(s, r, book)
	w.checkRequests(r, book)
	w.checkRuns(r, book)
	w.checkSuperseded(r, book)
	w.checkSteps(r)
	w.checkStatuses(r)
	w.checkMessages(r)
	w.checkNothingLeft()
}

func (w *tortureWorld) storeFile() string { return filepath.Join(w.dataDir(), storeFile) }

func (w *tortureWorld) record(s *store.Store) *tortureRecord {
	w.t.Helper()
	r := &tortureRecord{byID: map[string]*ci.Run{}, decisions: map[string][]ci.Decision{}}
	r.runs = tortureAll(w, func(p store.Page) ([]ci.Run, string, error) { return s.Runs(store.RunFilter{}, p) })
	r.receipts = tortureAll(w, func(p store.Page) ([]ci.Receipt, string, error) { return s.Receipts("", p) })
	r.entries = tortureAll(w, func(p store.Page) ([]ci.OutboxEntry, string, error) { return s.Entries("", p) })
	for i := range r.runs {
		r.byID[r.runs[i].ID] = &r.runs[i]
	}
	for _, d := range tortureAll(w, func(p store.Page) ([]ci.Decision, string, error) { return s.Decisions("", p) }) {
		r.decisions[d.Run] = append(r.decisions[d.Run], d)
	}
	return r
}

// decided reports whether there is a decision of a kind on a run.
func (r *tortureRecord) decided(run, kind string) bool {
	return slices.ContainsFunc(r.decisions[run], func(d ci.Decision) bool { return d.Kind == kind })
}

// checkSeen: the API showed what is on disk.
func (w *tortureWorld) checkSeen(r *tortureRecord, seen tortureSeen) {
	if len(seen.runs) != len(r.runs) || len(seen.receipts) != len(r.receipts) || len(seen.entries) != len(r.entries) {
		w.fail("the API showed %d runs, %d receipts and %d notifications, and the store has %d, %d and %d",
			len(seen.runs), len(seen.receipts), len(seen.entries), len(r.runs), len(r.receipts), len(r.entries))
	}
	for _, run := range seen.runs {
		if on := r.byID[run.ID]; on == nil || on.State != run.State {
			w.fail("the API showed run %s as %s, and the store has %+v", run.ID, run.State, on)
		}
	}
}

// checkReceipts: every acknowledged delivery has one receipt with its bytes
// and the runs that were answered, and nothing else has one.
func (w *tortureWorld) checkReceipts(s *store.Store, r *tortureRecord, book *tortureBook) {
	sent := map[string]*tortureDelivery{}
	for _, d := range book.deliveries {
		sent[d.id] = d
		if d.receipt == "" {
			w.fail("the delivery %s was never acknowledged", d.id)
		}
	}
	for _, id := range book.forged {
		if _, err := s.Receipt(ci.NewReceiptID("torture", 0, id)); ci.CodeOf(err) != ci.CodeNotFound {
			w.fail("a delivery with a bad signature has a receipt: %s (%v)", id, err)
		}
	}
	found := map[string]bool{}
	w.bodiesGone = 0
	for _, rec := range r.receipts {
		d := sent[rec.Delivery]
		switch {
		case d == nil:
			w.fail("there is a receipt %s of nothing that was sent", rec.ID)
			continue
		case found[d.id]:
			w.fail("the delivery %s has two receipts", d.id)
		case rec.ID != d.receipt || rec.Outcome != d.outcome || !slices.Equal(rec.Runs, d.runs):
			w.fail("the receipt %s says %s %v, and the answer was %s %s %v", rec.ID, rec.Outcome, rec.Runs, d.receipt, d.outcome, d.runs)
		}
		found[d.id] = true
		_, body, err := s.ReceiptBody(rec.ReceiptID())
		if ci.CodeOf(err) == ci.CodeNotFound && rec.ReceivedAt.Before(w.prunedTo) {
			w.bodiesGone++
			continue
		}
		if err != nil || !bytes.Equal(body, d.body) {
			w.fail("the receipt %s has another body than was sent (%v): %q", rec.ID, err, body)
		}
	}
	for _, d := range book.deliveries {
		if d.receipt != "" && !found[d.id] {
			w.fail("the delivery %s was acknowledged with %s %v, and there is no receipt", d.id, d.receipt, d.runs)
		}
	}
	w.checkCaused(r, book)
}

// checkCaused: the runs that deliveries caused are those that were answered,
// each once.
func (w *tortureWorld) checkCaused(r *tortureRecord, book *tortureBook) {
	answered := map[string]*tortureDelivery{}
	for _, d := range book.deliveries {
		for _, id := range d.runs {
			if other := answered[id]; other != nil {
				w.fail("run %s was answered to two deliveries: %s and %s", id, other.id, d.id)
			}
			answered[id] = d
		}
	}
	for _, run := range r.runs {
		if run.Cause.Kind != ci.CauseDelivery {
			continue
		}
		if d := answered[run.ID]; d == nil || d.receipt != run.Cause.Receipt {
			w.fail("run %s belongs to the receipt %q, and no delivery was answered with it", run.ID, run.Cause.Receipt)
		}
		delete(answered, run.ID)
	}
	for id, d := range answered {
		w.fail("run %s was answered to the delivery %s, and is not there", id, d.id)
	}
}

// checkRenewed: the run stands, once, for one that gave way before it was known
// to be the newest, and the audit says so.
func (w *tortureWorld) checkRenewed(r *tortureRecord, run *ci.Run, made map[string]string) {
	old := r.byID[run.Cause.Run]
	switch {
	case old == nil || old.State != ci.Superseded || old.Source.Commit != run.Source.Commit:
		w.fail("run %s repeats %q, which did not give way: %+v", run.ID, run.Cause.Run, old)
	case made[old.ID] != "":
		w.fail("run %s was made anew twice: %s and %s", old.ID, made[old.ID], run.ID)
	case !slices.ContainsFunc(r.decisions[run.ID], func(d ci.Decision) bool {
		return d.Kind == ci.DecisionRecovered && d.OtherRun == old.ID
	}):
		w.fail("nothing says why run %s was made anew as %s: %+v", run.Cause.Run, run.ID, r.decisions[run.ID])
	}
	made[run.Cause.Run] = run.ID
}

// checkRequests: every request made exactly the one run that was answered.
func (w *tortureWorld) checkRequests(r *tortureRecord, book *tortureBook) {
	asked := map[string]*tortureRequest{}
	for _, q := range book.requests {
		asked[q.reason] = q
	}
	made := map[string]string{}
	for _, run := range r.runs {
		if run.Cause.Kind == ci.CauseDelivery {
			continue
		}
		if run.Cause.Kind == ci.CauseRerun && run.Cause.Reason == "" { // those that are asked for say so
			w.checkRenewed(r, &run, made)
			continue
		}
		q := asked[run.Cause.Reason]
		switch {
		case q == nil:
			w.fail("run %s was asked for by nobody: %+v", run.ID, run.Cause)
			continue
		case made[q.key] != "":
			w.fail("the key %s made two runs: %s and %s", q.key, made[q.key], run.ID)
		case q.run != run.ID:
			w.fail("the key %s made run %s, and the answer was %q", q.key, run.ID, q.run)
		}
		made[q.key] = run.ID
	}
	for _, q := range book.requests {
		if q.run != "" && made[q.key] == "" {
			w.fail("the key %s was answered with run %s, which is not there", q.key, q.run)
		}
	}
}

// checkRuns: every run ended, for a reason that is on record.
func (w *tortureWorld) checkRuns(r *tortureRecord, book *tortureBook) {
	for _, run := range r.runs {
		p := w.project(run.Project)
		switch run.State {
		case ci.Succeeded:
			if p.fails {
				w.fail("run %s succeeded, though its last step fails", run.ID)
			}
		case ci.Failed:
			last := run.Steps[len(run.Steps)-1]
			full := w.size.full // its files found no room
			if !full && (!p.fails || last.ExitCode == nil || *last.ExitCode != 1) {
				w.fail("run %s failed: %s %+v", run.ID, run.Reason, run.Steps)
			}
		case ci.Interrupted:
			if p.requeue || !r.decided(run.ID, ci.DecisionInterrupted) {
				w.fail("run %s was interrupted (%s), by these decisions: %+v", run.ID, run.Reason, r.decisions[run.ID])
			}
		case ci.Cancelled:
			if !r.decided(run.ID, ci.DecisionCancelled) {
				w.fail("run %s was cancelled (%s) by nobody", run.ID, run.Reason)
			}
		case ci.Superseded:
			if !r.decided(run.ID, ci.DecisionSuperseded) || p.supersede == ci.SupersedeNone {
				w.fail("run %s was superseded (%s) by no decision", run.ID, run.Reason)
			}
		default:
			w.fail("run %s is still %s", run.ID, run.State)
		}
		if !p.requeue && run.Attempt > 1 {
			w.fail("run %s was claimed %d times", run.ID, run.Attempt)
		}
	}
	for id := range book.cancelled {
		if run := r.byID[id]; run == nil || run.State != ci.Cancelled {
			w.fail("run %s was answered as cancelled, and is %+v", id, run)
		}
	}
}

// checkSuperseded: who gave way did so for a run of the same branch, and
// behind all who gave way there is one that did not.
func (w *tortureWorld) checkSuperseded(r *tortureRecord, book *tortureBook) {
	for _, run := range r.runs {
		passed := map[string]bool{}
		for at := &run; at.State == ci.Superseded; {
			next := r.byID[at.SupersededBy]
			if next == nil || next.Project != at.Project || next.Source.Ref != at.Source.Ref {
				w.fail("run %s gave way to %q, which is no run of its branch", at.ID, at.SupersededBy)
				break
			}
			if passed[at.ID] {
				w.fail("run %s gave way to %s in a circle: nobody was built", run.ID, run.SupersededBy)
				break
			}
			passed[at.ID] = true
			at = next
		}
	}
	moves := map[string][]*tortureDelivery{} // by branch, in the order of its moves
	for _, d := range book.deliveries {
		moves[d.repository.name+" "+d.branch] = append(moves[d.repository.name+" "+d.branch], d)
	}
	for _, list := range moves {
		w.checkHead(r, list)
	}
}

// checkHead: the run of a branch's last move gave way to none. Only where a
// move was missing that tells what follows what could arrival decide against
// it: that one came after the run that took the place.
func (w *tortureWorld) checkHead(r *tortureRecord, moves []*tortureDelivery) {
	last := moves[len(moves)-1]
	for i, id := range last.runs {
		run := r.byID[id]
		if run == nil || run.State != ci.Superseded {
			continue
		}
		missing := false
		by := r.byID[run.SupersededBy]
		for _, d := range slices.Backward(moves[:len(moves)-1]) {
			at := r.byID[d.runs[i]]
			if by == nil || at == nil || at == by {
				break
			}
			missing = missing || at.Internal.Seq > by.Internal.Seq
		}
		if !missing {
			w.fail("run %s has the newest head of %s, and gave way to %s", id, last.branch, run.SupersededBy)
		}
	}
}

// checkSteps: steps ran at the run's commit, and never more often than the
// run was claimed.
func (w *tortureWorld) checkSteps(r *tortureRecord) {
	text, err := os.ReadFile(w.ledger)
	if err != nil {
		w.fail("no step ever ran: %v", err)
	}
	begun, ended := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 || r.byID[f[0]] == nil {
			w.fail("a step of no run wrote %q", line)
			continue
		}
		run := r.byID[f[0]]
		if run.Source.Commit != f[1] {
			w.fail("run %s is for %s, and its step had %s", run.ID, run.Source.Commit, f[1])
		}
		switch f[3] {
		case "begin":
			begun[run.ID]++
			if want := fmt.Sprint(slices.Index(w.commits, run.Source.Commit)); f[2] != want {
				w.fail("run %s is for commit %s, and its step found the files of commit %s", run.ID, want, f[2])
			}
		case "end":
			ended[run.ID]++
		}
	}
	for _, run := range r.runs {
		if begun[run.ID] > run.Attempt {
			w.fail("run %s was claimed %d times, and its step ran %d times", run.ID, run.Attempt, begun[run.ID])
		}
		if run.State == ci.Succeeded && (begun[run.ID] == 0 || ended[run.ID] == 0) {
			w.fail("run %s succeeded after %d first and %d last steps", run.ID, begun[run.ID], ended[run.ID])
		}
	}
}

// checkNothingLeft: no process and no workspace of any run is left.
func (w *tortureWorld) checkNothingLeft() {
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.fail("%v", err)
	}
	mark := []byte(w.dataDir())
	for _, dir := range pids {
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // gone, or not ours
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if bytes.Contains(environ, mark) || bytes.Contains(cmdline, mark) || strings.HasPrefix(cwd, string(mark)) {
			w.fail("a process is left: %s %q in %s", dir, cmdline, cwd)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.dataDir(), "workspaces", "*", "*"))
	if err != nil || len(left) > 0 {
		w.fail("workspaces are left: %v (%v)", left, err)
	}
}
