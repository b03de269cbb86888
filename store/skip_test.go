package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

const pathsReason = `no changed file matches on.push.paths ["src/**"]`

// skipped makes a push one that a filter stops and that is to be reported.
func skipped(a *store.Acceptance) {
	a.Reason = pathsReason
	d := &a.Drafts[0]
	d.State, d.Skip, d.Reason, d.Spec = ci.Cancelled, true, pathsReason, notifying("https://hooks.example.org")
}

// undecided makes a push one that a filter may still stop.
func undecided(onSkip string) func(*store.Acceptance) {
	return func(a *store.Acceptance) {
		d := &a.Drafts[0]
		d.State, d.Job = ci.Preparing, &ci.Job{Paths: &ci.Paths{Only: []string{"src/**"}}, PathsKey: "on.push.paths", OnSkip: onSkip}
		d.Spec = notifying("https://hooks.example.org")
	}
}

// mustSay returns the text and state of a run's last status.
func mustSay(t must, s *store.Store, run string) (state, text string) {
	t.Helper()
	list := entriesOf(t, s, run, ci.OutboxGitHubStatus)
	if len(list) == 0 {
		t.Fatalf("%s says nothing", run)
	}
	var p ci.StatusPayload
	mustNil(t, json.Unmarshal(list[len(list)-1].Payload, &p))
	return p.State, p.Description
}

// Ensure that what a filter keeps from running is on record as ended, says so
// once as a success, and does nothing else.
func TestSkip_IsOneFinalStatus(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	out := mustAccept(t, s, pushed("d-2", "api", "main", 1, 2, skipped))
	if out.Receipt.Outcome != ci.Accepted || len(out.Runs) != 1 {
		t.Fatalf("%+v", out)
	}
	r := mustState(t, s, "api-2", ci.Cancelled)
	if r.Reason != "skipped: "+pathsReason || !r.Internal.Skip || r.FinishedAt.IsZero() || r.Steps[0].State != ci.StepSkipped {
		t.Fatalf("%+v", r)
	}
	if all := entriesOf(t, s, r.ID, ""); len(all) != 1 || !all[0].Final {
		t.Fatalf("it tells %+v", all)
	}
	if state, text := mustSay(t, s, r.ID); state != "success" || text != "api-2 was skipped: "+pathsReason {
		t.Fatalf("%s %q", state, text)
	}
	mustScopes(t, s, 0)
	if h, err := s.HeadOf("api", "main"); err != nil || h.Run != "api-1" || h.Commit != sha(1) {
		t.Fatalf("the branch's latest is %+v, %v", h, err)
	}
	e := entriesOf(t, s, r.ID, "")[0]
	if _, ok, err := s.BeginAttempt(t.Context(), e.ID); err != nil || !ok {
		t.Fatalf("its status is not sent: %v", err)
	}
	list, _, err := s.Runs(store.RunFilter{Project: "api", Branch: "main"}, store.Page{})
	if err != nil || len(list) != 2 || list[0].ID != r.ID {
		t.Fatalf("listed %+v, %v", list, err)
	}
	mustClaim(t, s, "api-1")
	mustClaim(t, s, "")
}

// Ensure that a skip is not made beside another run of its commit and context:
// its success would stand in the place of that one's result.
func TestSkip_NeverSpeaksForAnotherRun(t *testing.T) {
	for what, before := range map[string]func(*testing.T, *store.Store){
		"one that waits": func(t *testing.T, s *store.Store) { mustPush(t, s, "d-1", 0, 2) },
		"one that failed": func(t *testing.T, s *store.Store) {
			mustPush(t, s, "d-1", 0, 2)
			mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Failed)
			mustDrain(t, s)
		},
		"one of another branch": func(t *testing.T, s *store.Store) {
			mustAccept(t, s, pushed("d-1", "api", "dev", 0, 2))
			mustFinish(t, s, mustClaim(t, s, "api-1"), ci.Failed)
			mustDrain(t, s)
		},
		"another skip": func(t *testing.T, s *store.Store) {
			mustPush(t, s, "d-1", 1, 2, skipped)
			mustDrain(t, s)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			before(t, s)
			out := mustAccept(t, s, pushed("d-2", "api", "main", 1, 2, skipped))
			if out.Receipt.Outcome != ci.Ignored || out.Receipt.Reason != pathsReason || len(out.Runs) != 0 || out.Receipt.Verdicts[0].Outcome != ci.Ignored {
				t.Fatalf("%+v", out)
			}
			rec, err := s.Receipt(out.Receipt.ReceiptID())
			if err != nil || rec.Outcome != ci.Ignored || rec.Reason != pathsReason || len(rec.Runs) != 0 {
				t.Fatalf("%+v, %v", rec, err)
			}
		})
	}
	t.Run("but for another project, or another context", func(t *testing.T) {
		s := storetest.MustOpen(t)
		mustPush(t, s, "d-1", 0, 2)
		mustPush(t, s, "d-2", 1, 2, skipped, func(a *store.Acceptance) { a.Drafts[0].Context = "docket/api/pr" })
		mustAccept(t, s, pushed("d-3", "web", "main", 1, 2, skipped))
		mustState(t, s, "web-1", ci.Cancelled)
	})
	t.Run("nor where nothing is reported", func(t *testing.T) {
		s := storetest.MustOpen(t)
		out := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2, skipped, func(a *store.Acceptance) { a.Drafts[0].Spec.Report = false }))
		if out.Receipt.Outcome != ci.Ignored {
			t.Fatalf("%+v", out)
		}
	})
}

// mustDrain sends all that waits.
func mustDrain(t must, s *store.Store) {
	t.Helper()
	mustSend(t, s, time.Now().Add(time.Hour))
}

// Ensure that a run of a skipped commit speaks in the skip's place, also one
// that was asked for before and resolved after.
func TestSkip_GivesWayToARunOfItsCommit(t *testing.T) {
	s := storetest.MustOpen(t)
	asked := mustRequest(t, s, manualRun("k", "main", 0))
	skip := mustPush(t, s, "d-1", 1, 2, skipped)
	_, err := s.ResolveJob(t.Context(), asked.ID, store.Resolution{Commit: sha(2)})
	mustNil(t, err)
	e := entriesOf(t, s, skip.ID, "")[0]
	if got, ok, err := s.BeginAttempt(t.Context(), e.ID); err != nil || ok || got.State != ci.OutboxSkipped || !strings.Contains(got.LastError, asked.ID) {
		t.Fatalf("the skip still speaks: %+v, %v", got, err)
	}
	mustFinish(t, s, mustClaim(t, s, asked.ID), ci.Failed)
	mustDrain(t, s)
	list := entriesOf(t, s, asked.ID, ci.OutboxGitHubStatus)
	if last := list[len(list)-1]; last.Event != "failure" || last.State != ci.OutboxSent {
		t.Fatalf("%+v", last)
	}
	if h, err := s.HeadOf("api", "main"); err != nil || h.Run != asked.ID {
		t.Fatalf("the latest is %+v, %v", h, err)
	}
}

// Ensure that a skipped delivery is judged again like an ignored one, and that
// its run stays the first answer while nothing else comes of it.
func TestSkip_IsJudgedAgain(t *testing.T) {
	s := storetest.MustOpen(t)
	first := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2, skipped))
	again := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2, skipped))
	if !again.Duplicate || len(again.Runs) != 1 || again.Runs[0].ID != first.Runs[0].ID || again.Receipt.Outcome != ci.Accepted {
		t.Fatalf("%+v", again)
	}
	mended := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2))
	if mended.Duplicate || len(mended.Runs) != 2 || mended.Runs[1].State != ci.Queued {
		t.Fatalf("%+v", mended)
	}
	if last := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2)); !last.Duplicate || len(last.Runs) != 2 {
		t.Fatalf("%+v", last)
	}
}

// Ensure that a run that a filter may still stop takes no place, is nobody's
// latest and silences nobody; and that all of this changes once it is decided.
func TestUndecided_SaysNothingYet(t *testing.T) {
	s := storetest.MustOpen(t)
	old := mustPush(t, s, "d-1", 1, 2)
	mustPush(t, s, "d-2", 2, 2, undecided(ci.OnSkipReport)) // the same commit once more
	if n := len(entriesOf(t, s, "api-2", "")); n != 0 {
		t.Fatalf("it tells %d things", n)
	}
	e := entriesOf(t, s, old.ID, ci.OutboxGitHubStatus)[0]
	if _, ok, err := s.BeginAttempt(t.Context(), e.ID); err != nil || !ok {
		t.Fatalf("it silences the other: %v", err)
	}
	mustNil(t, s.FinishAttempt(t.Context(), e.ID, 1, store.AttemptResult{State: ci.OutboxSent}))
	sc := mustScopes(t, s, 1)[0]
	if !sc.Moves[1].Run.Undecided() {
		t.Fatalf("%+v", sc.Moves[1].Run)
	}
	mustNil(t, s.Supersede(t.Context(), sc, nil))
	if h, err := s.HeadOf("api", "main"); err != nil || h.Run != old.ID {
		t.Fatalf("the latest is %+v, %v", h, err)
	}
	_, err := s.ResolveJob(t.Context(), "api-2", store.Resolution{})
	mustNil(t, err)
	mustScopes(t, s, 1)
	if h, err := s.HeadOf("api", "main"); err != nil || h.Run != "api-2" {
		t.Fatalf("the latest is %+v, %v", h, err)
	}
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Failed)
	list := entriesOf(t, s, old.ID, ci.OutboxGitHubStatus)
	if got, ok, err := s.BeginAttempt(t.Context(), list[len(list)-1].ID); err != nil || ok {
		t.Fatalf("the older one still speaks: %+v, %v", got, err)
	}
}

func TestResolveJob_ASkip(t *testing.T) {
	for what, tc := range map[string]struct {
		onSkip string
		before func(*testing.T, *store.Store)
		says   bool
	}{
		"reported":                       {ci.OnSkipReport, nil, true},
		"silent":                         {ci.OnSkipSilent, nil, false},
		"reported beside another's word": {ci.OnSkipReport, func(t *testing.T, s *store.Store) { mustAccept(t, s, pushed("d-0", "api", "dev", 0, 2)) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			if tc.before != nil {
				tc.before(t, s)
			}
			r := mustPush(t, s, "d-1", 1, 2, undecided(tc.onSkip))
			if _, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Skipped: pathsReason}); err != nil {
				t.Fatal(err)
			}
			r = mustState(t, s, r.ID, ci.Cancelled)
			if r.Reason != "skipped: "+pathsReason || !r.Internal.Skip {
				t.Fatalf("%+v", r)
			}
			if d := mustDecided(t, s, r.ID, ci.DecisionSkipped); d.Reason != r.Reason {
				t.Fatalf("%+v", d)
			}
			all := entriesOf(t, s, r.ID, "")
			if !tc.says {
				if len(all) != 0 {
					t.Fatalf("it tells %+v", all)
				}
			} else if state, text := mustSay(t, s, r.ID); len(all) != 1 || state != "success" || text != r.ID+" was skipped: "+pathsReason {
				t.Fatalf("%s %q of %d", state, text, len(all))
			}
			if _, err := s.HeadOf("api", "main"); ci.CodeOf(err) != ci.CodeNotFound {
				t.Fatalf("it is the branch's latest: %v", err)
			}
		})
	}
	t.Run("of a run that no filter has a say in", func(t *testing.T) {
		s := storetest.MustOpen(t)
		r := mustRequest(t, s, manualRun("k", "main", 0))
		_, err := s.ResolveJob(t.Context(), r.ID, store.Resolution{Commit: sha(1), Skipped: "no"})
		mustCode(t, err, ci.CodeInternal)
		mustState(t, s, r.ID, ci.Preparing)
	})
}

// Ensure that a run that ends before its filter was asked has a final status
// all the same.
func TestUndecided_ItsEndIsTold(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 1, 2, undecided(ci.OnSkipSilent))
	mustPush(t, s, "d-2", 2, 3, undecided(ci.OnSkipSilent))
	_, err := s.ResolveJob(t.Context(), "api-1", store.Resolution{Failed: "the changed files cannot be read"})
	mustNil(t, err)
	if state, _ := mustSay(t, s, "api-1"); state != "failure" {
		t.Fatal(state)
	}
	_, _, err = s.CancelRun(t.Context(), action("api-2", "k"))
	mustNil(t, err)
	if state, _ := mustSay(t, s, "api-2"); state != "error" {
		t.Fatal(state)
	}
	mustDrain(t, s)
}

// Ensure that pushes that a filter stopped keep the chain whole: however the
// deliveries come, the newest run is the branch's latest.
func TestBridges_KeepTheChain(t *testing.T) {
	ways := map[string]func(*store.Acceptance){"ignored": ignored("[skip ci]"), "skipped": skipped}
	for what, stopped := range ways {
		t.Run(what, func(t *testing.T) {
			s := storetest.MustOpen(t)
			mustPush(t, s, "d-0", 0, 1)
			mustAccept(t, s, pushed("d-3", "api", "main", 3, 4))          // the newest one comes first,
			mustAccept(t, s, pushed("d-2", "api", "main", 2, 3, stopped)) // then the one that is stopped,
			mustAccept(t, s, pushed("d-1", "api", "main", 1, 2))          // and the oldest one last
			if h, err := s.HeadOf("api", "main"); err != nil || h.Commit != sha(4) {
				t.Fatalf("the latest is %+v, %v", h, err)
			}
			sc := mustScopes(t, s, 1)[0]
			var pushes []ci.Push
			for _, m := range sc.Moves {
				pushes = append(pushes, m.Push)
			}
			if n := ci.Newest(pushes); len(pushes) != 4 || pushes[n].After != sha(4) || sc.Moves[2].Run.ID != "" {
				t.Fatalf("of %+v the newest is %d", sc.Moves, n)
			}
		})
	}
}

// Ensure that a bounded number of ignored pushes is kept of each branch, few
// where it has no runs, and that they go with the branch.
func TestBridges_AreBounded(t *testing.T) {
	s := storetest.MustOpen(t)
	n := 0
	ignore := func(branch string, from, to int) {
		n++
		mustAccept(t, s, pushed("ig-"+strings.Repeat("x", n), "api", branch, from, to, ignored("no")))
	}
	for i := range 20 {
		ignore("dev", i+1, i+2)
	}
	if got := store.Ignored(s, "api", "dev"); got != 8 {
		t.Fatalf("%d are kept of a branch without runs", got)
	}
	mustPush(t, s, "d-1", 0, 1)
	for i := range 100 {
		ignore("main", i+1, i+2)
	}
	if got := store.Ignored(s, "api", "main"); got != 64 {
		t.Fatalf("%d are kept", got)
	}
	mustAccept(t, s, pushed("gone", "api", "main", 9, 0, ignored("deleted"), func(a *store.Acceptance) {
		a.Event.Deleted, a.Event.Commit = true, ""
		a.Cancels = []ci.Cancel{{Project: "api", Scope: scopeOf("api", "main"), Ref: "refs/heads/main", Deleted: true, Reason: "deleted"}}
	}))
	if got := store.Ignored(s, "api", "main"); got != 1 { // the deletion
		t.Fatalf("%d outlive the branch", got)
	}
}

// Ensure that with a skip's record the knowledge that its commit is settled
// goes, and that a run that ended later keeps it.
func TestSkip_IsForgottenWithItsRecord(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustPush(t, s, "d-1", 1, 2, skipped)
	mustPush(t, s, "d-2", 2, 3) // keeps the numbers
	mustDrain(t, s)
	c.add(week)
	if p, err := s.Prune(t.Context(), c.now(), 10); err != nil || len(p.Runs) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	mustPush(t, s, "d-3", 1, 2, skipped)
	mustState(t, s, "api-3", ci.Cancelled)
}
