package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

var errInjected = errors.New("injected")

// failing is a failpoint that may be switched on.
type failing struct {
	point atomic.Pointer[string]
	hit   atomic.Int64
}

func (f *failing) at(point string) { f.point.Store(&point) }

func (f *failing) off() { f.point.Store(nil) }

func (f *failing) hook(point string) error {
	if p := f.point.Load(); p != nil && *p == point {
		f.hit.Add(1)
		return errInjected
	}
	return nil
}

// Ensure that what fails before its commit never was: nothing to be seen,
// nobody woken, and the next one works.
func TestCommit_FailureBeforeItLeavesNothing(t *testing.T) {
	var f failing
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Failpoint: f.hook})
	runs, stopRuns := s.Watch(store.TopicRuns)
	defer stopRuns()
	outbox, stopOutbox := s.Watch(store.TopicOutbox)
	defer stopOutbox()
	f.at(store.FailBeforeCommit)
	a := pushed("d-1", "api", "main", 0, 1)
	_, err := s.Accept(t.Context(), a)
	mustCode(t, err, ci.CodeUnavailable, "nothing was promised")
	if !errors.Is(err, errInjected) {
		t.Fatalf("the cause is lost: %v", err)
	}
	mustCode(t, s.Health(), ci.CodeUnavailable)
	mustCode(t, s.Probe(t.Context()), ci.CodeUnavailable)
	if _, err := s.Receipt(a.Delivery.ReceiptID()); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a receipt: %v", err)
	}
	if list, _, err := s.Entries("", store.Page{}); err != nil || len(list) != 0 {
		t.Fatalf("entries %v, %v", list, err)
	}
	if len(runs) != 0 || len(outbox) != 0 {
		t.Fatal("somebody was woken for nothing")
	}
	f.off()
	out := mustAccept(t, s, a)
	if out.Duplicate || out.Runs[0].ID != "api-1" {
		t.Fatalf("%+v", out)
	}
	mustNil(t, s.Health())
	if !woken(runs) || !woken(outbox) {
		t.Fatal("nobody was woken")
	}
}

// Ensure that what was committed though nobody was told is there for good:
// the sender comes again and is told that it is a duplicate.
func TestCommit_FailureAfterItIsADuplicateTheNextTime(t *testing.T) {
	var f failing
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{Failpoint: f.hook})
	f.at(store.FailAfterCommit)
	_, err := s.Accept(t.Context(), pushed("d-1", "api", "main", 0, 1))
	mustCode(t, err, ci.CodeUnavailable)
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{})
	out := mustAccept(t, s, pushed("d-1", "api", "main", 0, 1))
	if !out.Duplicate || len(out.Runs) != 1 || out.Runs[0].ID != "api-1" {
		t.Fatalf("%+v", out)
	}
	mustClaim(t, s, "api-1")
}

// Ensure that each of many at once gets its own answer, whoever shares its
// commit: some are new, some conflict, some are refused, one is too big for
// the file.
func TestCommit_OneThatFailsTakesNobodyDown(t *testing.T) {
	gate, waiting := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Failpoint: func(string) error {
		if first.CompareAndSwap(false, true) {
			close(waiting)
			<-gate // the rest queue up and share the next commit
		}
		return nil
	}})
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if _, err := s.Accept(context.Background(), pushed("known", "api", "main", 0, 1)); err != nil {
			t.Error(err)
		}
	}()
	<-waiting
	const n = 60
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch i % 6 {
			case 0:
				_, err := s.Accept(context.Background(), pushed("known", "api", "main", 5, 6+i))
				if ci.CodeOf(err) != ci.CodeConflict {
					t.Errorf("other bytes: %v", err)
				}
			case 1: // its second run cannot be written: the key is longer than bbolt takes
				a := pushed(fmt.Sprint("big-", i), "api", "main", 100+i, 200+i)
				d := a.Drafts[0]
				long := make([]byte, 40_000)
				for j := range long {
					long[j] = 'x'
				}
				d.Source.Branch = string(long)
				a.Drafts = append(a.Drafts, d)
				if _, err := s.Accept(context.Background(), a); err == nil {
					t.Error("a key of 40,000 bytes went in")
				}
			case 2:
				if _, _, err := s.Approve(context.Background(), action("api-1", fmt.Sprint("a-", i))); ci.CodeOf(err) != ci.CodeConflict {
					t.Errorf("approve: %v", err)
				}
			case 3: // a panic inside the transaction
				a := pushed(fmt.Sprint("panic-", i), "api", "main", 0, 1)
				a.Drafts[0].Source.Commit = "not hex at all"
				if _, err := s.Accept(context.Background(), a); ci.CodeOf(err) != ci.CodeInternal {
					t.Errorf("panic: %v", err)
				}
			default:
				out, err := s.Accept(context.Background(), pushed(fmt.Sprint("new-", i), "web", "main", i, i+1))
				if err != nil || out.Duplicate || len(out.Runs) != 1 {
					t.Errorf("new: %+v, %v", out, err)
				}
			}
		})
	}
	close(gate)
	wg.Wait()
	<-ready
	api, _, err := s.Runs(store.RunFilter{Project: "api"}, store.Page{Limit: 200})
	mustNil(t, err)
	web, _, err := s.Runs(store.RunFilter{Project: "web"}, store.Page{Limit: 200})
	mustNil(t, err)
	if len(api) != 1 || len(web) != n/3 || web[0].Number != uint64(n/3) {
		t.Fatalf("%d and %d runs", len(api), len(web))
	}
	if list, _, err := s.Receipts("", store.Page{Limit: 200}); err != nil || len(list) != 1+n/3 {
		t.Fatalf("%d receipts, %v", len(list), err)
	}
}

// Ensure that closing while many write neither hangs nor forgets: who was told
// yes is on disk, who was told no is not there.
func TestCommit_CloseWhileManyWrite(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	var mu sync.Mutex
	answers := map[string]error{}
	var wg sync.WaitGroup
	var some sync.WaitGroup
	some.Add(20)
	for w := range 16 {
		wg.Go(func() {
			for i := range 1000 {
				id := fmt.Sprintf("d-%d-%d", w, i)
				_, err := s.Accept(context.Background(), pushed(id, "api", "main", 0, 0, ignored("x")))
				mu.Lock()
				answers[id] = err
				if len(answers) <= 20 {
					some.Done()
				}
				mu.Unlock()
				if err != nil {
					if ci.CodeOf(err) != ci.CodeUnavailable {
						t.Errorf("%s: %v", id, err)
					}
					return
				}
			}
		})
	}
	some.Wait()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		mustNil(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("closing hangs")
	}
	wg.Wait()
	s = storetest.MustOpenAt(t, path, store.Options{})
	for id, err := range answers {
		_, found := s.Receipt(ci.NewReceiptID("github", 12345, id))
		if (err == nil) != (found == nil) {
			t.Fatalf("%s was answered %v, and reading it gives %v", id, err, found)
		}
	}
}

// Ensure that a wakeup never comes before what it is about can be read.
func TestWatch_WakesAfterTheCommit(t *testing.T) {
	s := storetest.MustOpen(t)
	c, stop := s.Watch(store.TopicRuns)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 30 {
			if _, err := s.Accept(context.Background(), pushed(fmt.Sprint("d-", i), "api", "main", i, i+1)); err != nil {
				t.Error(err)
			}
		}
	}()
	seen := 0
	for seen < 30 {
		if !woken(c) {
			t.Fatalf("woken no more after %d of 30", seen)
		}
		st, err := s.Stats()
		mustNil(t, err)
		if st.Queued < seen {
			t.Fatalf("%d queued after %d", st.Queued, seen)
		}
		seen = st.Queued
	}
	<-done
	stop()
	for len(c) > 0 {
		<-c
	}
	mustPush(t, s, "last", 30, 31)
	mustNil(t, s.Probe(t.Context()))
	if len(c) != 0 {
		t.Fatal("woken after stop")
	}
}

// Ensure that who waits for one topic is not woken for another.
func TestWatch_TopicsAreApart(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustPush(t, s, "d-1", 0, 1)
	mustNil(t, s.Probe(t.Context())) // the wakeups of the push are over
	c, stop := s.Watch(store.TopicRuns)
	defer stop()
	o, stopO := s.Watch(store.TopicOutbox)
	defer stopO()
	mustEnd(t, s, mustBegin(t, s, entriesOf(t, s, r.ID, "")[0].ID), store.AttemptResult{State: ci.OutboxSent})
	mustNil(t, s.Probe(t.Context()))
	if len(c) != 0 || !woken(o) {
		t.Fatal("the wrong one was woken")
	}
}

// Ensure that a request whose sender has gone is not written.
func TestCommit_AnEndedContextIsNotQueued(t *testing.T) {
	s := storetest.MustOpen(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 50 {
		_, err := s.Accept(ctx, pushed(fmt.Sprint("d-", i), "api", "main", i, i+1))
		mustCode(t, err, ci.CodeUnavailable, "nothing was promised")
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	mustNil(t, s.Probe(t.Context()))
	if list, _, err := s.Runs(store.RunFilter{}, store.Page{}); err != nil || len(list) != 0 {
		t.Fatalf("%d runs, %v", len(list), err)
	}
}
