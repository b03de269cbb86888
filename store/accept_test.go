package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that one acceptance puts everything on record that belongs to it.
func TestAccept_PutsReceiptBodyRunAndStatusOnRecord(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "api", "main", 1, 2)
	out := mustAccept(t, s, a)
	if out.Duplicate || len(out.Runs) != 1 {
		t.Fatalf("accepted %+v", out)
	}
	r := out.Runs[0]
	if r.ID != "api-1" || r.State != ci.Queued || r.Attempt != 0 || r.Source.Commit != sha(2) || r.Spec == "" {
		t.Fatalf("run %+v", r)
	}
	if diff := cmp.Diff(r, mustRun(t, s, "api-1")); diff != "" {
		t.Fatalf("the run on record differs: %s", diff)
	}
	rec, err := s.Receipt(a.Delivery.ReceiptID())
	mustNil(t, err)
	if diff := cmp.Diff(out.Receipt, rec); diff != "" {
		t.Fatalf("the receipt on record differs: %s", diff)
	}
	if rec.ID != "github/12345/d-1" || rec.Outcome != ci.Accepted || !slices.Equal(rec.Runs, []string{"api-1"}) ||
		len(rec.Verdicts) != 1 || rec.Twin != "" || len(rec.BodySHA256) != 64 || rec.BodyBytes != int64(len(a.Delivery.Body)) {
		t.Fatalf("receipt %+v", rec)
	}
	entries := entriesOf(t, s, "api-1", ci.OutboxGitHubStatus)
	if len(entries) != 1 || entries[0].State != ci.OutboxPending || entries[0].Event != "pending" {
		t.Fatalf("entries %+v", entries)
	}
	spec, err := s.Spec(r.Spec)
	mustNil(t, err)
	if diff := cmp.Diff(reporting(), spec); diff != "" {
		t.Fatalf("the frozen spec differs: %s", diff)
	}
}

func TestAccept_OneDeliveryStartsRunsOfSeveralProjects(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "api", "main", 1, 2)
	second := a.Drafts[0]
	second.Project, second.Context = "web", "docket/web"
	a.Drafts = append(a.Drafts, second)
	out := mustAccept(t, s, a)
	if got := out.Receipt.Runs; !slices.Equal(got, []string{"api-1", "web-1"}) || out.Receipt.Twin != "" {
		t.Fatalf("receipt %+v", out.Receipt)
	}
}

func TestAccept_AgainIsADuplicateWithTheSameAnswer(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	a := pushed("d-1", "api", "main", 1, 2)
	first := mustAccept(t, s, a)
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{})
	before := len(entriesOf(t, s, "api-1", ""))
	again := mustAccept(t, s, a)
	if !again.Duplicate {
		t.Fatal("not told that it is a duplicate")
	}
	if diff := cmp.Diff(first.Receipt, again.Receipt) + cmp.Diff(first.Runs, again.Runs); diff != "" {
		t.Fatalf("another answer: %s", diff)
	}
	if got := len(entriesOf(t, s, "api-1", "")); got != before {
		t.Fatalf("%d entries, there were %d", got, before)
	}
}

func TestAccept_SameIdentityWithOtherBytesIsAConflict(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 1, 2)
	b := pushed("d-1", "api", "main", 1, 3)
	_, err := s.Accept(t.Context(), b)
	mustCode(t, err, ci.CodeConflict, "github/12345/d-1", "other bytes")
	if _, body, _ := s.ReceiptBody(b.Delivery.ReceiptID()); bytes.Equal(body, b.Delivery.Body) {
		t.Fatal("the first bytes were replaced")
	}
	if _, err := s.Run("api-2"); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a run was made: %v", err)
	}
}

func TestAccept_IdentityHasThreeParts(t *testing.T) {
	s := storetest.MustOpen(t)
	for i, change := range []func(*store.Acceptance){
		func(*store.Acceptance) {},
		func(a *store.Acceptance) { a.Delivery.Installation = 54321 },
		func(a *store.Acceptance) { a.Delivery.Installation = 0 },
		func(a *store.Acceptance) { a.Delivery.Integration = "github2" },
		func(a *store.Acceptance) { a.Delivery.ID = "D" },
	} {
		out := mustAccept(t, s, pushed("d", "api", "main", i, i+1, change, func(a *store.Acceptance) {
			a.Drafts[0].Cause.Receipt = a.Delivery.ReceiptID().String()
		}))
		if out.Duplicate || out.Runs[0].Number != uint64(i+1) {
			t.Fatalf("%s: %+v", out.Receipt.ID, out)
		}
	}
}

func TestAccept_AnIgnoredOneIsJudgedAgain(t *testing.T) {
	s := storetest.MustOpen(t)
	a := pushed("d-1", "api", "dev", 1, 2)
	first := mustAccept(t, s, pushed("d-1", "api", "dev", 1, 2, ignored("no filter matches dev")))
	if first.Duplicate || first.Receipt.Outcome != ci.Ignored || first.Receipt.Reason != "no filter matches dev" {
		t.Fatalf("first %+v", first)
	}
	second := mustAccept(t, s, pushed("d-1", "api", "dev", 1, 2, ignored("still none")))
	if !second.Duplicate || second.Receipt.Reason != "still none" || len(second.Receipt.Verdicts) != 2 {
		t.Fatalf("second %+v", second)
	}
	third := mustAccept(t, s, a)
	if third.Duplicate || len(third.Runs) != 1 || third.Receipt.Outcome != ci.Accepted || third.Receipt.Reason != "" {
		t.Fatalf("third %+v", third)
	}
	rec, err := s.Receipt(a.Delivery.ReceiptID())
	mustNil(t, err)
	if len(rec.Verdicts) != 3 || rec.Verdicts[0].Reason != "no filter matches dev" || rec.Verdicts[2].Outcome != ci.Accepted {
		t.Fatalf("verdicts %+v", rec.Verdicts)
	}
	if fourth := mustAccept(t, s, pushed("d-1", "api", "dev", 1, 2, ignored("x"))); !fourth.Duplicate || len(fourth.Runs) != 1 || len(fourth.Receipt.Verdicts) != 3 {
		t.Fatalf("one that has runs was judged again: %+v", fourth)
	}
	accepted, _, _ := s.Receipts(ci.Accepted, store.Page{})
	none, _, _ := s.Receipts(ci.Ignored, store.Page{})
	if len(accepted) != 1 || len(none) != 0 {
		t.Fatalf("%d accepted, %d ignored", len(accepted), len(none))
	}
}

// Ensure that a receipt does not grow with every redelivery: the first
// judgement and the newest ones stay.
func TestAccept_VerdictsAreBounded(t *testing.T) {
	s := storetest.MustOpen(t)
	var out store.Accepted
	for i := range 60 {
		out = mustAccept(t, s, pushed("d", "api", "main", 1, 2, ignored(fmt.Sprint("reason ", i))))
	}
	v := out.Receipt.Verdicts
	if len(v) != 50 || v[0].Reason != "reason 0" || v[1].Reason != "reason 11" || v[49].Reason != "reason 59" {
		t.Fatalf("%d verdicts: %v", len(v), v)
	}
}

func TestAccept_PinsAProjectToItsRepository(t *testing.T) {
	s := storetest.MustOpen(t)
	pin := func() ci.Repository {
		t.Helper()
		m, err := s.Pins()
		mustNil(t, err)
		return m["api"]
	}
	from := func(id int64, name string) func(*store.Acceptance) {
		return func(a *store.Acceptance) { a.Event.Repository = ci.Repository{ID: id, FullName: name} }
	}
	mustPush(t, s, "d-1", 0, 1, from(7, "acme/api"))
	if pin() != (ci.Repository{ID: 7, FullName: "acme/api"}) {
		t.Fatalf("pinned to %+v", pin())
	}
	stranger := pushed("d-2", "api", "main", 1, 2, from(8, "acme/api"))
	_, err := s.Accept(t.Context(), stranger)
	mustCode(t, err, ci.CodeForbidden, "7", "8", "docket projects repin api --id 8")
	if _, err := s.Receipt(stranger.Delivery.ReceiptID()); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a refusal left a receipt: %v", err)
	}
	mustPush(t, s, "d-3", 1, 2, from(7, "acme/api2"))
	if pin().FullName != "acme/api2" {
		t.Fatal("a renaming was not followed")
	}
	mustNil(t, s.Repin(t.Context(), "api", 8, operator))
	_, err = s.Accept(t.Context(), pushed("d-4", "api", "main", 2, 3, from(7, "acme/api2")))
	mustCode(t, err, ci.CodeForbidden)
	mustAccept(t, s, stranger)
	if pin() != (ci.Repository{ID: 8, FullName: "acme/api"}) {
		t.Fatalf("after repin: %+v", pin())
	}
	mustNil(t, s.Repin(t.Context(), "api", 0, operator))
	mustPush(t, s, "d-5", 3, 4, from(9, "acme/new"))
	if pin().ID != 9 {
		t.Fatalf("after repin to the next: %+v", pin())
	}
	mustCode(t, s.Repin(t.Context(), "api", -1, operator), ci.CodeInvalid)
	var reasons []string
	for _, d := range decisionsOf(t, s, "") {
		if d.Kind != ci.DecisionPinned || d.Project != "api" {
			t.Fatalf("decision %+v", d)
		}
		if strings.Contains(d.Reason, "repository  is") {
			t.Errorf("a name is missing in %q", d.Reason)
		}
		reasons = append(reasons, d.Reason)
	}
	if len(reasons) != 6 {
		t.Fatalf("decisions: %q", reasons)
	}
}

func TestAccept_MarksTwins(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 1, 2)
	same := pushed("d-1", "api", "main", 1, 2)
	same.Delivery.ID = "d-2"
	same.Drafts[0].Cause.Receipt = same.Delivery.ReceiptID().String()
	out := mustAccept(t, s, same)
	if out.Duplicate || len(out.Runs) != 1 || out.Receipt.Twin != "github/12345/d-1" {
		t.Fatalf("the same bytes under a new id: %+v", out.Receipt)
	}
	move := mustAccept(t, s, pushed("d-3", "api", "main", 1, 2))
	if len(move.Runs) != 1 || move.Receipt.Twin != "github/12345/d-2" {
		t.Fatalf("the same move in other bytes: %+v", move.Receipt)
	}
	rec, err := s.Receipt(move.Receipt.ReceiptID())
	mustNil(t, err)
	if rec.Twin != move.Receipt.Twin {
		t.Fatal("the twin is not on record")
	}
	for what, a := range map[string]store.Acceptance{
		"another commit":  pushed("d-4", "api", "main", 2, 3),
		"another branch":  pushed("d-5", "api", "dev", 1, 2),
		"another project": pushed("d-6", "web", "main", 1, 2),
	} {
		if out := mustAccept(t, s, a); out.Receipt.Twin != "" {
			t.Errorf("%s: twin %q", what, out.Receipt.Twin)
		}
	}
}

// Ensure that a project which refuses replays refuses known bytes and nothing
// else: a branch may go back and forth between two commits.
func TestAccept_RefusesAReplay(t *testing.T) {
	s := storetest.MustOpen(t)
	refuse := func(a *store.Acceptance) { a.RefuseReplay = true }
	mustPush(t, s, "d-1", 1, 2, refuse)
	same := pushed("d-1", "api", "main", 1, 2, refuse)
	same.Delivery.ID = "d-2"
	_, err := s.Accept(t.Context(), same)
	mustCode(t, err, ci.CodeForbidden, "github/12345/d-1", "replays: refuse")
	if _, err := s.Receipt(same.Delivery.ReceiptID()); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a refusal left a receipt: %v", err)
	}
	if again := mustAccept(t, s, pushed("d-1", "api", "main", 1, 2, refuse)); !again.Duplicate {
		t.Fatal("a redelivery is no replay")
	}
	mustPush(t, s, "d-3", 2, 1, refuse)
	out, err := s.Accept(t.Context(), pushed("d-4", "api", "main", 1, 2, refuse))
	mustNil(t, err)
	if out.Receipt.Twin != "github/12345/d-1" {
		t.Fatalf("twin %q", out.Receipt.Twin)
	}
}

// Ensure that two events that only name a branch are no twins.
func TestAccept_WhatNamesNoCommitHasNoTwin(t *testing.T) {
	s := storetest.MustOpen(t)
	dispatched := func(a *store.Acceptance) {
		d := &a.Drafts[0]
		d.State, d.Job, d.Scope = ci.Preparing, &ci.Job{Resolve: true}, ""
		d.Cause.Event, d.Source.Commit, d.Source.Before = ci.EventRepositoryDispatch, "", ""
	}
	mustAccept(t, s, pushed("d-1", "api", "main", 0, 1, dispatched))
	if out := mustAccept(t, s, pushed("d-2", "api", "main", 0, 1, dispatched)); out.Receipt.Twin != "" || len(out.Runs) != 1 {
		t.Fatalf("%+v", out.Receipt)
	}
}

// deleted is the deletion of a branch of api.
func deleted(id, branch string) store.Acceptance {
	return pushed(id, "api", branch, 0, 0, ignored("branch deleted"), func(a *store.Acceptance) {
		a.Event.Deleted = true
		a.Cancels = []ci.Cancel{{
			Project: "api", Scope: scopeOf("api", branch), Ref: "refs/heads/" + branch, Deleted: true, Reason: "branch " + branch + " was deleted",
		}}
	})
}

func TestAccept_ADeletedBranchEndsWhatWaits(t *testing.T) {
	s := storetest.MustOpen(t)
	running := mustAccept(t, s, pushed("d-1", "api", "dev", 0, 1)).Runs[0]
	mustClaim(t, s, running.ID)
	waits := mustAccept(t, s, pushed("d-2", "api", "dev", 1, 2)).Runs[0]
	other := mustPush(t, s, "d-3", 0, 3)
	manual, _, err := s.Request(t.Context(), manualRun("k", "dev", 2))
	mustNil(t, err)
	mustAccept(t, s, deleted("d-4", "dev"))
	mustState(t, s, running.ID, ci.Running)
	mustState(t, s, other.ID, ci.Queued)
	mustState(t, s, manual.ID, ci.Queued)
	if r := mustState(t, s, waits.ID, ci.Cancelled); r.Reason != "branch dev was deleted" || r.FinishedAt.IsZero() {
		t.Fatalf("run %+v", r)
	}
	if d := mustDecided(t, s, waits.ID, ci.DecisionCancelled); d.Receipt != "github/12345/d-4" || d.By.Kind != ci.ByServer || d.Reason == "" {
		t.Fatalf("decision %+v", d)
	}
	entries := entriesOf(t, s, waits.ID, "")
	last := entries[len(entries)-1]
	if !last.Final || last.Event != "error" || last.State != ci.OutboxPending || entries[0].State != ci.OutboxSkipped {
		t.Fatalf("entries %+v", entries)
	}
}

// Ensure that none is forgotten, however many wait.
func TestAccept_ADeletedBranchEndsAllThatWait(t *testing.T) {
	s := storetest.MustOpen(t)
	const n = 150
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := s.Accept(t.Context(), pushed(fmt.Sprint("d-", i), "api", "dev", i, i+1, withPolicy(ci.SupersedeNone))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	mustAccept(t, s, deleted("gone", "dev"))
	st, err := s.Stats()
	mustNil(t, err)
	if st.Queued != 0 {
		t.Fatalf("%d of %d runs of the deleted branch still wait", st.Queued, n)
	}
}

// Ensure that a deletion which is delivered again does not end what came
// after it: the branch may have been made again meanwhile.
func TestAccept_ADeletionDeliveredAgainEndsNothing(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAccept(t, s, pushed("d-1", "api", "dev", 0, 1))
	mustAccept(t, s, deleted("d-2", "dev"))
	anew := mustAccept(t, s, pushed("d-3", "api", "dev", 0, 2)).Runs[0]
	if out := mustAccept(t, s, deleted("d-2", "dev")); !out.Duplicate {
		t.Fatalf("%+v", out)
	}
	mustState(t, s, anew.ID, ci.Queued)
}

// Ensure that concurrent deliveries are all on record and share commits.
func TestAccept_ManyAtOnceShareCommits(t *testing.T) {
	var commits atomic.Int64
	gate := make(chan struct{})
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Failpoint: func(p string) error {
		if p == store.FailBeforeCommit && commits.Add(1) == 1 {
			<-gate // the rest queue up behind the first
		}
		return nil
	}})
	const n = 100
	var wg sync.WaitGroup
	var started sync.WaitGroup
	started.Add(n)
	for i := range n {
		wg.Go(func() {
			a := pushed(fmt.Sprint("d-", i), "api", "main", i, i+1)
			started.Done()
			if out, err := s.Accept(context.Background(), a); err != nil || out.Duplicate || len(out.Runs) != 1 {
				t.Errorf("delivery %d: %+v, %v", i, out, err)
			}
		})
	}
	started.Wait()
	close(gate)
	wg.Wait()
	list, _, err := s.Runs(store.RunFilter{Project: "api"}, store.Page{Limit: 200})
	mustNil(t, err)
	if len(list) != n {
		t.Fatalf("%d runs", len(list))
	}
	for i, r := range list {
		if r.Number != uint64(n-i) {
			t.Fatalf("run %d is number %d", i, r.Number)
		}
	}
	if got := commits.Load(); got > n/2 {
		t.Fatalf("%d commits for %d deliveries", got, n)
	}
}

// Ensure that the same delivery many times at once makes one run.
func TestAccept_TheSameManyTimesAtOnceMakesOneRun(t *testing.T) {
	s := storetest.MustOpen(t)
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			out, err := s.Accept(context.Background(), pushed("d-1", "api", "main", 1, 2))
			if err != nil || len(out.Runs) != 1 || out.Runs[0].ID != "api-1" {
				t.Errorf("%+v, %v", out, err)
			}
			if !out.Duplicate {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if fresh.Load() != 1 {
		t.Fatalf("%d were told that theirs was the first", fresh.Load())
	}
}

func TestAccept_KeepsTheExactBytes(t *testing.T) {
	s := storetest.MustOpen(t)
	noise := make([]byte, 300_000)
	rand.Read(noise)
	for i, body := range [][]byte{
		nil, {}, {0}, []byte("{}"), []byte("\xef\xbb\xbf{\"a\": 1}\r\n\x00\xff\xfe"), noise,
		bytes.Repeat([]byte("long and dull "), 100_000), []byte("…😊"),
	} {
		header := map[string]string{"X-Odd": "\xff<>&\"\n", "Content-Type": "application/json"}
		a := pushed(fmt.Sprint("d-", i), "api", "main", i, i+1, func(a *store.Acceptance) {
			a.Delivery.Body = body
			a.Delivery.Header = map[string]string{"Content-Type": header["Content-Type"]}
		})
		rec := mustAccept(t, s, a).Receipt
		h, got, err := s.ReceiptBody(rec.ReceiptID())
		mustNil(t, err)
		if !bytes.Equal(got, body) || rec.BodyBytes != int64(len(body)) {
			t.Errorf("body %d: %d bytes came back of %d", i, len(got), len(body))
		}
		if diff := cmp.Diff(a.Delivery.Header, h); diff != "" {
			t.Errorf("headers: %s", diff)
		}
	}
}

func TestReceipt_UnknownIsNotFound(t *testing.T) {
	s := storetest.MustOpen(t)
	id := ci.NewReceiptID("github", 1, "none")
	_, err := s.Receipt(id)
	mustCode(t, err, ci.CodeNotFound, "github/1/none")
	_, _, err = s.ReceiptBody(id)
	mustCode(t, err, ci.CodeNotFound, "github/1/none")
}

// deliveryIDs draws ids that are near to each other in every way that an
// index key could confuse: UUIDs of several versions and cases, their raw
// bytes, odd characters, prefixes.
func deliveryIDs(t *rapid.T, label string) string {
	hexes := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[1-4][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	uuid := rapid.SampledFrom([]string{
		"72d3162e-cc78-11e3-81ab-4c9367dc0958", "72d3162e-cc78-11e3-81ab-4c9367dc0959", "72d3162e-cc78-41e3-81ab-4c9367dc0958",
		"11e3cc78-72d3-1162-81ab-4c9367dc0958", "72d3162ecc7811e381ab4c9367dc0958", "72d3162e-cc78-11e3-81ab-4c9367dc095g",
		"72d3162e-cc78-11e3-81ab-4c9367dc09 8", "72d3162e-cc78-11e3-81ab+4c9367dc0958", "{72d3162e-cc78-11e3-81ab-4c9367dc0958}",
	})
	odd := rapid.StringMatching(`[ -~]{1,40}`)
	id := rapid.OneOf(hexes, uuid, odd, rapid.SampledFrom([]string{"/", "%2F", "?", "a/b", "-", "0", "\x7f"})).Draw(t, label)
	if rapid.IntRange(0, 3).Draw(t, label+" upper") == 0 {
		id = strings.ToUpper(id)
	}
	return id
}

// Ensure that ids which only look alike are as many deliveries as there are ids.
func TestAccept_IdsThatLookAlike(t *testing.T) {
	s := storetest.MustOpen(t)
	const v1 = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	for _, id := range []string{
		v1, strings.ToUpper(v1), strings.Replace(v1, "a", "A", 1), strings.ReplaceAll(v1, "-", ""), v1[:35], v1 + "0",
		"72d3162e-cc78-41e3-81ab-4c9367dc0958", "11e3cc78-72d3-162e-81ab-4c9367dc0958", "11e3cc7872d3162e81ab4c9367dc0958",
		"cc7872d3-162e-11e3-81ab-4c9367dc0958", "72d3162e-cc78-11e3-81ab+4c9367dc0958",
	} {
		if out := mustAccept(t, s, pushed(id, "api", "main", 0, 0, ignored("x"))); out.Duplicate {
			t.Errorf("%q is taken for another one", id)
		}
		rec, err := s.Receipt(ci.NewReceiptID("github", 12345, id))
		if err != nil || rec.Delivery != id {
			t.Errorf("%q is on record as %q: %v", id, rec.Delivery, err)
		}
	}
}

// Ensure that two deliveries are one exactly when all parts of their identity
// are equal, whatever the ids look like.
func TestAccept_IdentitiesNeverCollide(t *testing.T) {
	s := storetest.MustOpen(t)
	known := map[ci.ReceiptID]string{} // the body each was first accepted with
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		a := pushed(deliveryIDs(rt, "id"), "api", "main", 0, 0, ignored("x"))
		a.Delivery.Integration = rapid.SampledFrom([]string{"g", "g", "g", "g-"}).Draw(rt, "integration")
		a.Delivery.Installation = rapid.SampledFrom([]int64{1, 1, 1, 0, 11}).Draw(rt, "installation")
		a.Delivery.Body = fmt.Append(nil, n)
		id := a.Delivery.ReceiptID()
		first, was := known[id]
		out, err := s.Accept(context.Background(), a)
		if was {
			if ci.CodeOf(err) != ci.CodeConflict {
				rt.Fatalf("%v was known: %+v, %v", id, out, err)
			}
		} else if err != nil || out.Duplicate {
			rt.Fatalf("%v is new: %+v, %v", id, out, err)
		} else {
			first = string(a.Delivery.Body)
			known[id] = first
		}
		_, body, err := s.ReceiptBody(id)
		if err != nil || string(body) != first {
			rt.Fatalf("%v has body %q, want %q: %v", id, body, first, err)
		}
		rec, err := s.Receipt(id)
		if err != nil || rec.ReceiptID() != id {
			rt.Fatalf("%v is on record as %v: %v", id, rec.ReceiptID(), err)
		}
	})
}
