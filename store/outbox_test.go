package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

func mustDue(t must, s *store.Store, now time.Time) (ids []string, list []ci.OutboxEntry, next time.Time) {
	t.Helper()
	list, next, err := s.DueEntries(now, 100)
	if err != nil {
		t.Fatalf("due: %v", err)
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids, list, next
}

func mustBegin(t must, s *store.Store, id string) ci.OutboxEntry {
	t.Helper()
	e, ok, err := s.BeginAttempt(context.Background(), id)
	if err != nil || !ok {
		t.Fatalf("begin %s: %v, %v", id, ok, err)
	}
	return e
}

func mustEnd(t must, s *store.Store, e ci.OutboxEntry, res store.AttemptResult) ci.OutboxEntry {
	t.Helper()
	if err := s.FinishAttempt(context.Background(), e.ID, e.Attempts, res); err != nil {
		t.Fatalf("finish %s: %v", e.ID, err)
	}
	return mustEntry(t, s, e.ID)
}

func mustEntry(t must, s *store.Store, id string) ci.OutboxEntry {
	t.Helper()
	e, err := s.Entry(id)
	if err != nil {
		t.Fatalf("entry %s: %v", id, err)
	}
	return e
}

// mustSend sends all that is due now.
func mustSend(t must, s *store.Store, now time.Time) (sent []ci.OutboxEntry) {
	t.Helper()
	for {
		ids, _, _ := mustDue(t, s, now)
		if len(ids) == 0 {
			return sent
		}
		for _, id := range ids {
			if e, ok, err := s.BeginAttempt(context.Background(), id); err != nil {
				t.Fatalf("begin %s: %v", id, err)
			} else if ok {
				sent = append(sent, mustEnd(t, s, e, store.AttemptResult{State: ci.OutboxSent}))
			}
		}
	}
}

func ticking(t *testing.T) (*store.Store, *clock) {
	t.Helper()
	c := newClock()
	return storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now}), c
}

func TestOutbox_ALaneGoesInOrderOneAtATime(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1, withSpec(notifying("https://hooks.example.org")))
	c.add(time.Second)
	mustClaim(t, s, r.ID)
	hooks := entriesOf(t, s, r.ID, ci.OutboxWebhook)
	if len(hooks) != 2 || hooks[0].Event != ci.RunQueued || hooks[1].Event != ci.RunStarted {
		t.Fatalf("%+v", hooks)
	}
	ids, _, _ := mustDue(t, s, c.now())
	if !slices.Contains(ids, hooks[0].ID) || slices.Contains(ids, hooks[1].ID) || len(ids) != 2 {
		t.Fatalf("due: %v", ids) // the first of the hook's lane, and the first status
	}
	if _, ok, err := s.BeginAttempt(t.Context(), hooks[1].ID); ok || err != nil {
		t.Fatalf("the second overtook: %v, %v", ok, err)
	}
	e := mustBegin(t, s, hooks[0].ID)
	if e.Attempts != 1 || !e.AttemptedAt.Equal(c.now()) || !e.FirstAttemptAt.Equal(c.now()) {
		t.Fatalf("%+v", e)
	}
	later := c.now().Add(time.Minute)
	e = mustEnd(t, s, e, store.AttemptResult{State: ci.OutboxPending, Error: "503", NextAt: later})
	if e.State != ci.OutboxPending || !e.NextAttemptAt.Equal(later) || e.LastError != "503" {
		t.Fatalf("%+v", e)
	}
	if ids, _, next := mustDue(t, s, c.now()); slices.Contains(ids, hooks[1].ID) || slices.Contains(ids, hooks[0].ID) || !next.Equal(later) {
		t.Fatalf("due while the first waits: %v, next %v", ids, next)
	}
	c.add(time.Minute)
	e = mustBegin(t, s, hooks[0].ID)
	if e.Attempts != 2 || e.FirstAttemptAt.Equal(c.now()) {
		t.Fatalf("%+v", e)
	}
	e = mustEnd(t, s, e, store.AttemptResult{State: ci.OutboxSent})
	if e.State != ci.OutboxSent || !e.FinishedAt.Equal(c.now()) || e.LastError != "" {
		t.Fatalf("%+v", e)
	}
	if ids, _, _ := mustDue(t, s, c.now()); !slices.Contains(ids, hooks[1].ID) {
		t.Fatalf("the next is not due: %v", ids)
	}
}

// Ensure that lanes do not wait for each other, and come by time.
func TestOutbox_DueTimes(t *testing.T) {
	s, c := ticking(t)
	var ids []string
	for i := range 4 {
		r := mustPush(t, s, fmt.Sprint("d-", i), i, i+1)
		ids = append(ids, entriesOf(t, s, r.ID, "")[0].ID)
	}
	delay := func(i int, d time.Duration) {
		mustEnd(t, s, mustBegin(t, s, ids[i]), store.AttemptResult{State: ci.OutboxPending, Error: "x", NextAt: c.now().Add(d)})
	}
	delay(0, 3*time.Second)
	delay(1, 2*time.Second)
	if got, _, next := mustDue(t, s, c.now()); !slices.Equal(got, ids[2:]) || !next.Equal(c.now().Add(2*time.Second)) {
		t.Fatalf("%v, next %v", got, next)
	}
	if list, _, err := s.DueEntries(c.now(), 1); err != nil || len(list) != 1 || list[0].ID != ids[2] {
		t.Fatalf("one: %v, %v", list, err)
	}
	c.add(2*time.Second - time.Millisecond)
	if got, _, _ := mustDue(t, s, c.now()); slices.Contains(got, ids[1]) {
		t.Fatal("due a millisecond early")
	}
	c.add(time.Millisecond)
	if got, _, next := mustDue(t, s, c.now()); !slices.Equal(got, []string{ids[2], ids[3], ids[1]}) || !next.Equal(c.now().Add(time.Second)) {
		t.Fatalf("%v, next %v", got, next)
	}
	c.add(time.Second)
	if got, _, next := mustDue(t, s, c.now()); len(got) != 4 || !next.IsZero() {
		t.Fatalf("%v, next %v", got, next)
	}
}

func TestOutbox_HoldsOutlastARestart(t *testing.T) {
	c := newClock()
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	r := mustPush(t, s, "d-1", 0, 1, withSpec(notifying("https://hooks.example.org")))
	status, hook := entriesOf(t, s, r.ID, ci.OutboxGitHubStatus)[0].ID, entriesOf(t, s, r.ID, ci.OutboxWebhook)[0].ID
	until := c.now().Add(time.Minute)
	mustNil(t, s.Hold(t.Context(), "github", until, "rate limit"))
	mustNil(t, s.Hold(t.Context(), "github", c.now().Add(time.Second), "shorter"))
	check := func(want []string, next time.Time) {
		t.Helper()
		if got, _, n := mustDue(t, s, c.now()); !slices.Equal(got, want) || !n.Equal(next) {
			t.Fatalf("due %v, next %v; want %v, %v", got, n, want, next)
		}
	}
	check([]string{hook}, until)
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	check([]string{hook}, until)
	m, err := s.Holds(c.now())
	mustNil(t, err)
	if h := m["github"]; len(m) != 1 || !h.Until.Equal(until) || h.Reason != "rate limit" {
		t.Fatalf("holds %+v", m)
	}
	mustNil(t, s.Hold(t.Context(), "https://hooks.example.org", until.Add(time.Minute), "Retry-After"))
	check(nil, until)
	c.add(time.Minute)
	check([]string{status}, until.Add(time.Minute))
	c.add(time.Minute)
	check([]string{status, hook}, time.Time{})
	if m, err := s.Holds(c.now()); err != nil || len(m) != 0 {
		t.Fatalf("holds %+v, %v", m, err)
	}
}

// Ensure that only the attempt that was counted last can say what came of it.
func TestOutbox_AnOldAttemptsResultChangesNothing(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1)
	id := entriesOf(t, s, r.ID, "")[0].ID
	first := mustBegin(t, s, id)
	second := mustBegin(t, s, id) // the server was killed in between
	for _, attempt := range []int{0, first.Attempts, 3} {
		mustNil(t, s.FinishAttempt(t.Context(), id, attempt, store.AttemptResult{State: ci.OutboxDead, Error: "late"}))
	}
	if e := mustEntry(t, s, id); e.State != ci.OutboxPending || e.LastError != "" || e.Attempts != 2 {
		t.Fatalf("%+v", e)
	}
	mustEnd(t, s, second, store.AttemptResult{State: ci.OutboxSent})
	if e := mustEnd(t, s, second, store.AttemptResult{State: ci.OutboxDead, Error: "twice"}); e.State != ci.OutboxSent {
		t.Fatalf("%+v", e)
	}
	if _, ok, err := s.BeginAttempt(t.Context(), id); ok || err != nil {
		t.Fatalf("what was sent is sent again: %v, %v", ok, err)
	}
	_, _, err := s.BeginAttempt(t.Context(), "msg_0_99")
	mustCode(t, err, ci.CodeNotFound)
	mustCode(t, s.FinishAttempt(t.Context(), "nonsense", 1, store.AttemptResult{}), ci.CodeNotFound)
	_ = c
}

// Ensure that among runs of one commit and context only the newest speaks.
func TestOutbox_OnlyTheNewestRunOfACommitSpeaks(t *testing.T) {
	s, c := ticking(t)
	old := mustPush(t, s, "d-1", 0, 1)
	old = mustClaim(t, s, old.ID)
	newer := mustRequest(t, s, manualRun("k", "main", 1))
	mustFinish(t, s, old, ci.Failed)
	sent := mustSend(t, s, c.now())
	if len(sent) != 1 || sent[0].Run != newer.ID {
		t.Fatalf("sent %+v", sent)
	}
	for _, e := range entriesOf(t, s, old.ID, "") {
		if e.State != ci.OutboxSkipped || e.LastError == "" {
			t.Fatalf("%+v", e)
		}
	}
	if d := mustDecided(t, s, old.ID, ci.DecisionSkipped); d.OtherRun != newer.ID || d.By.Kind != ci.ByDispatcher || d.Entry == "" {
		t.Fatalf("%+v", d)
	}
	// Another context, another commit: others speak for themselves.
	pr := mustAccept(t, s, pushed("d-2", "api", "patch", 0, 1, fromFork(3))).Runs[0]
	other := mustPush(t, s, "d-3", 1, 2)
	sent = mustSend(t, s, c.now())
	if len(sent) != 2 || sent[0].Run != pr.ID || sent[1].Run != other.ID {
		t.Fatalf("sent %+v", sent)
	}
	mustFinish(t, s, mustClaim(t, s, newer.ID), ci.Succeeded)
	if sent = mustSend(t, s, c.now()); len(sent) != 1 || sent[0].Event != "success" {
		t.Fatalf("sent %+v", sent) // "is running" gave way to the end
	}
}

// Ensure that a run which learns its commit late does not take the word from
// a newer one.
func TestOutbox_AnOlderRunThatIsResolvedLateStaysSilent(t *testing.T) {
	s, c := ticking(t)
	old := mustRequest(t, s, manualRun("k", "main", 0))
	newer := mustPush(t, s, "d-1", 0, 1)
	_, err := s.ResolveJob(t.Context(), old.ID, store.Resolution{Commit: sha(1)})
	mustNil(t, err)
	if sent := mustSend(t, s, c.now()); len(sent) != 1 || sent[0].Run != newer.ID {
		t.Fatalf("sent %+v", sent)
	}
}

// Ensure that the end of a run silences what is not yet tried, and that what
// is being tried is not followed by anything that is not final.
func TestOutbox_NothingPendingFollowsTheEnd(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1)
	first := mustBegin(t, s, entriesOf(t, s, r.ID, "")[0].ID)
	r = mustClaim(t, s, r.ID)
	mustFinish(t, s, r, ci.Succeeded)
	e := entriesOf(t, s, r.ID, "")
	if e[0].State != ci.OutboxPending || e[1].State != ci.OutboxSkipped || e[2].State != ci.OutboxPending || !e[2].Final {
		t.Fatalf("%+v", e)
	}
	mustEnd(t, s, first, store.AttemptResult{State: ci.OutboxPending, Error: "503", NextAt: c.now()})
	if _, ok, err := s.BeginAttempt(t.Context(), first.ID); ok || err != nil {
		t.Fatalf("a pending status after the end: %v, %v", ok, err)
	}
	if sent := mustSend(t, s, c.now()); len(sent) != 1 || !sent[0].Final {
		t.Fatalf("sent %+v", sent)
	}
}

func TestOutbox_TheDeadAreListedAndMayBeRetried(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1)
	id := entriesOf(t, s, r.ID, "")[0].ID
	e := mustEnd(t, s, mustBegin(t, s, id), store.AttemptResult{State: ci.OutboxDead, Error: "401: bad credentials"})
	if e.State != ci.OutboxDead || e.FinishedAt.IsZero() {
		t.Fatalf("%+v", e)
	}
	list, _, err := s.Entries(ci.OutboxDead, store.Page{})
	if st, serr := s.Stats(); err != nil || serr != nil || len(list) != 1 || list[0].ID != id || st.OutboxDead != 1 || st.OutboxPending != 0 {
		t.Fatalf("%+v %+v %v", list, st, err)
	}
	c.add(time.Hour)
	again, _, err := s.RetryEntry(t.Context(), store.EntryAction{ID: id, By: operator})
	mustNil(t, err)
	if again.State != ci.OutboxPending || !again.Retried || again.Attempts != 1 || !again.FirstAttemptAt.IsZero() || !again.FinishedAt.IsZero() {
		t.Fatalf("%+v", again)
	}
	mustDecided(t, s, r.ID, ci.DecisionRetried)
	if list, _, _ := s.Entries(ci.OutboxDead, store.Page{}); len(list) != 0 {
		t.Fatalf("still listed: %+v", list)
	}
	if e := mustEnd(t, s, mustBegin(t, s, id), store.AttemptResult{State: ci.OutboxSent}); e.Attempts != 2 || e.ID != id {
		t.Fatalf("%+v", e)
	}
}

// Ensure that a dead entry which is retried goes before what came after it,
// and never after the end was told.
func TestOutbox_ARetriedOneKeepsItsPlace(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1, withSpec(notifying("https://hooks.example.org")))
	mustSend(t, s, c.now().Add(-time.Second)) // nothing is due yet
	hook := func(i int) ci.OutboxEntry { return entriesOf(t, s, r.ID, ci.OutboxWebhook)[i] }
	mustEnd(t, s, mustBegin(t, s, hook(0).ID), store.AttemptResult{State: ci.OutboxDead, Error: "410"})
	r = mustClaim(t, s, r.ID)
	_, _, err := s.RetryEntry(t.Context(), store.EntryAction{ID: hook(0).ID, By: operator})
	mustNil(t, err)
	if ids, _, _ := mustDue(t, s, c.now()); !slices.Contains(ids, hook(0).ID) || slices.Contains(ids, hook(1).ID) {
		t.Fatalf("due %v", ids)
	}
	mustEnd(t, s, mustBegin(t, s, hook(0).ID), store.AttemptResult{State: ci.OutboxDead, Error: "410"})
	mustFinish(t, s, r, ci.Succeeded)
	mustSend(t, s, c.now())
	_, _, err = s.RetryEntry(t.Context(), store.EntryAction{ID: hook(0).ID, By: operator})
	mustNil(t, err)
	if _, ok, err := s.BeginAttempt(t.Context(), hook(0).ID); ok || err != nil {
		t.Fatalf("what is not final follows the end: %v, %v", ok, err)
	}
	if e := hook(0); e.State != ci.OutboxSkipped {
		t.Fatalf("%+v", e)
	}
}

// Ensure that an older run's dead status, retried after a newer run of the
// commit has had its say, stays silent.
func TestOutbox_ADeadStatusOfAnOlderRunNeverSpeaksAgain(t *testing.T) {
	s, c := ticking(t)
	old := mustPush(t, s, "d-1", 0, 1)
	mustFinish(t, s, mustClaim(t, s, old.ID), ci.Failed)
	e := entriesOf(t, s, old.ID, "")
	final := e[len(e)-1]
	mustEnd(t, s, mustBegin(t, s, final.ID), store.AttemptResult{State: ci.OutboxDead, Error: "404"})
	newer := mustRequest(t, s, manualRun("k", "main", 1))
	mustFinish(t, s, mustClaim(t, s, newer.ID), ci.Succeeded)
	mustSend(t, s, c.now())
	_, _, err := s.RetryEntry(t.Context(), store.EntryAction{ID: final.ID, By: operator})
	mustNil(t, err)
	if _, ok, err := s.BeginAttempt(t.Context(), final.ID); ok || err != nil {
		t.Fatalf("the old failure replaced the new success: %v, %v", ok, err)
	}
}

func TestOutbox_DiscardLetsTheNextOneGo(t *testing.T) {
	s, c := ticking(t)
	r := mustPush(t, s, "d-1", 0, 1, withSpec(notifying("https://hooks.example.org")))
	mustClaim(t, s, r.ID)
	hooks := entriesOf(t, s, r.ID, ci.OutboxWebhook)
	woke, stop := s.Watch(store.TopicOutbox)
	defer stop()
	_, _, err := s.DiscardEntry(t.Context(), store.EntryAction{ID: hooks[0].ID, By: operator})
	mustNil(t, err)
	if ids, _, _ := mustDue(t, s, c.now()); !slices.Contains(ids, hooks[1].ID) || !woken(woke) {
		t.Fatalf("due %v", ids)
	}
	dead := mustEnd(t, s, mustBegin(t, s, hooks[1].ID), store.AttemptResult{State: ci.OutboxDead, Error: "410"})
	e, _, err := s.DiscardEntry(t.Context(), store.EntryAction{ID: dead.ID, By: operator})
	mustNil(t, err)
	if e.State != ci.OutboxSkipped {
		t.Fatalf("%+v", e)
	}
	if list, _, _ := s.Entries(ci.OutboxDead, store.Page{}); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	_, _, err = s.DiscardEntry(t.Context(), store.EntryAction{ID: dead.ID, By: operator})
	mustCode(t, err, ci.CodeConflict, "skipped")
}

// Ensure that no receiver takes one store's message for another's.
func TestOutbox_IdsDifferFromStoreToStore(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		s := storetest.MustOpen(t)
		r := mustPush(t, s, "d-1", 0, 1)
		e := entriesOf(t, s, r.ID, "")[0]
		if seen[e.ID] || !strings.HasPrefix(e.ID, "msg_") {
			t.Fatalf("id %s", e.ID)
		}
		seen[e.ID] = true
	}
}

func TestOutbox_PayloadsAreReadyToSend(t *testing.T) {
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{RunURL: func(id string) string { return "https://ci.example.org/runs/" + id }})
	r := mustPush(t, s, "d-1", 0, 1, withSpec(notifying("https://hooks.example.org")))
	r = mustClaim(t, s, r.ID)
	mustNil(t, s.FinishRun(t.Context(), r.ID, 1, store.Result{State: ci.Failed, Reason: "exit code 2 in test"}))
	status := entriesOf(t, s, r.ID, ci.OutboxGitHubStatus)
	var p ci.StatusPayload
	mustNil(t, json.Unmarshal(status[2].Payload, &p))
	if p != (ci.StatusPayload{
		Project: "api", Repository: "acme/api", Commit: sha(1), Context: "docket/api", State: "failure",
		Description: "api-1 failed: exit code 2 in test", TargetURL: "https://ci.example.org/runs/api-1",
		RunState: ci.Failed,
	}) {
		t.Fatalf("%+v", p)
	}
	var events []string
	for _, e := range entriesOf(t, s, r.ID, ci.OutboxWebhook) {
		var n ci.NotificationPayload
		mustNil(t, json.Unmarshal(e.Payload, &n))
		events = append(events, n.Type)
		if n.Data.ID != r.ID || n.Data.URL != "https://ci.example.org/runs/api-1" || n.Data.Internal.Scope != "" || e.Event != n.Type {
			t.Fatalf("%s: %+v", n.Type, n.Data)
		}
	}
	if want := []string{ci.RunQueued, ci.RunStarted, ci.RunFinished, ci.RunFailed}; !slices.Equal(events, want) {
		t.Fatalf("events %v", events)
	}
	// The same on each way to read an entry.
	one := mustEntry(t, s, status[2].ID)
	mustBegin(t, s, status[2].ID)
	began := mustBegin(t, s, status[2].ID)
	if string(one.Payload) != string(status[2].Payload) || string(began.Payload) != string(one.Payload) {
		t.Fatalf("%s\n%s\n%s", one.Payload, status[2].Payload, began.Payload)
	}
}

func TestOutbox_TellsOfRecovery(t *testing.T) {
	s, _ := ticking(t)
	spec := withSpec(notifying("https://hooks.example.org"))
	n := 0
	end := func(to ci.State) []string {
		t.Helper()
		n++
		r := mustPush(t, s, fmt.Sprint("d-", n), n, n+1, spec)
		mustFinish(t, s, mustClaim(t, s, r.ID), to)
		var events []string
		for _, e := range entriesOf(t, s, r.ID, ci.OutboxWebhook) {
			events = append(events, e.Event)
		}
		return events[2:]
	}
	finished := ci.RunFinished
	for i, tc := range []struct {
		to   ci.State
		want []string
	}{
		{ci.Succeeded, []string{finished}},
		{ci.Failed, []string{finished, ci.RunFailed}},
		{ci.Cancelled, []string{finished}},
		{ci.Succeeded, []string{finished, ci.RunRecovered}},
		{ci.Succeeded, []string{finished}},
	} {
		if got := end(tc.to); !slices.Equal(got, tc.want) {
			t.Fatalf("run %d: %v, want %v", i+1, got, tc.want)
		}
	}
}

func TestOutbox_TargetsHearWhatTheyAskedFor(t *testing.T) {
	s, _ := ticking(t)
	spec := reporting()
	spec.Report = false
	spec.Notify = []ci.NotifyTarget{
		{Kind: ci.OutboxSlack, Target: "slack.url", Events: []string{ci.RunFailed}},
		{Kind: ci.OutboxWebhook, Target: "https://a", Events: []string{ci.RunFinished}},
	}
	r := mustPush(t, s, "d-1", 0, 1, withSpec(spec))
	mustFinish(t, s, mustClaim(t, s, r.ID), ci.Failed)
	var got []string
	for _, e := range entriesOf(t, s, r.ID, "") {
		got = append(got, e.Kind+" "+e.Target+" "+e.Event)
	}
	if want := []string{"slack slack.url run.failed", "webhook https://a run.finished"}; !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
}
