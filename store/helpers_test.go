package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// must is for the tests' fatal and rapid's alike.
type must interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sha is a commit; 0 stands for none.
func sha(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%040x", n)
}

const repoID = 186853002

var operator = ci.By{Kind: ci.ByToken, Name: "mona"}

// reporting is a spec of two steps whose runs have a commit status.
func reporting() ci.Spec {
	return ci.Spec{
		Version: 1, CloneURL: "https://github.com/acme/api.git", Timeout: ci.Duration(30 * time.Minute), Report: true,
		Steps: []ci.Step{{Name: "test", Run: "make test"}, {Name: "deploy", Run: "./deploy.sh", Deploy: true}},
	}
}

// notifying is reporting with one webhook for everything.
func notifying(target string) ci.Spec {
	s := reporting()
	s.Notify = []ci.NotifyTarget{{Kind: ci.OutboxWebhook, Target: target, Events: ci.NotificationTypes}}
	return s
}

// pushed is a push of a branch from one commit to another, accepted.
func pushed(id, project, branch string, before, after int, change ...func(*store.Acceptance)) store.Acceptance {
	ref := "refs/heads/" + branch
	d := ci.Delivery{
		Integration: "github", Installation: 12345, ID: id, Event: ci.EventPush, Secret: "github.secret",
		Header: map[string]string{"Content-Type": "application/json"},
		Body:   fmt.Appendf(nil, `{"id":%q,"ref":%q,"before":%q,"after":%q}`, id, ref, sha(before), sha(after)),
	}
	a := store.Acceptance{
		Delivery: d,
		Event: ci.Event{
			Kind: ci.EventPush, Actor: "octocat", Repository: ci.Repository{ID: repoID, FullName: "acme/api"},
			Installation: 12345, Ref: ref, Branch: branch, Commit: sha(after), Before: sha(before),
		},
		Projects: []string{project},
		Drafts: []ci.Draft{{
			Project: project, Integration: "github", State: ci.Queued, Spec: reporting(), Context: "docket/" + project,
			Supersede: ci.SupersedePending, Scope: scopeOf(project, branch),
			Cause: ci.Cause{Kind: ci.CauseDelivery, Receipt: d.ReceiptID().String(), Event: ci.EventPush, Actor: "octocat"},
			Source: ci.Source{
				Repository: "acme/api", RepositoryID: repoID, Ref: ref, Branch: branch,
				Commit: sha(after), Before: sha(before),
			},
		}},
	}
	for _, f := range change {
		f(&a)
	}
	return a
}

func scopeOf(project, branch string) string {
	return fmt.Sprintf("%s push %d refs/heads/%s", project, repoID, branch)
}

// ignored takes an acceptance's runs away.
func ignored(reason string) func(*store.Acceptance) {
	return func(a *store.Acceptance) { a.Drafts, a.Reason = nil, reason }
}

func withSpec(spec ci.Spec) func(*store.Acceptance) {
	return func(a *store.Acceptance) { a.Drafts[0].Spec = spec }
}

func withPolicy(p ci.SupersedePolicy) func(*store.Acceptance) {
	return func(a *store.Acceptance) { a.Drafts[0].Supersede = p }
}

// fromFork makes a push the head of a fork's pull request.
func fromFork(number int) func(*store.Acceptance) {
	return func(a *store.Acceptance) {
		pr := &ci.PullRequest{
			Number: number, Base: "main", Head: a.Event.Branch, Fork: true,
			HeadRepo: ci.Repository{ID: 666, FullName: "mallory/api"},
		}
		a.Delivery.Event, a.Event.Kind, a.Event.Action, a.Event.PullRequest = ci.EventPullRequest, ci.EventPullRequest, "opened", pr
		for i := range a.Drafts {
			d := &a.Drafts[i]
			d.Fork, d.State, d.Context = true, ci.Held, "docket/"+d.Project+"/pr"
			d.Cause.Event, d.Source.PullRequest = ci.EventPullRequest, pr
			d.Source.Ref = fmt.Sprintf("refs/pull/%d/head", number)
			d.Scope = fmt.Sprintf("%s pull_request 666 #%d", d.Project, number)
		}
	}
}

func mustAccept(t must, s *store.Store, a store.Acceptance) store.Accepted {
	t.Helper()
	out, err := s.Accept(context.Background(), a)
	if err != nil {
		t.Fatalf("accept %s: %v", a.Delivery.ID, err)
	}
	return out
}

// mustPush accepts a push to api's main and returns its run.
func mustPush(t must, s *store.Store, id string, before, after int, change ...func(*store.Acceptance)) ci.Run {
	t.Helper()
	out := mustAccept(t, s, pushed(id, "api", "main", before, after, change...))
	if len(out.Runs) != 1 {
		t.Fatalf("accept %s: %d runs", id, len(out.Runs))
	}
	return out.Runs[0]
}

func mustRun(t must, s *store.Store, id string) ci.Run {
	t.Helper()
	r, err := s.Run(id)
	if err != nil {
		t.Fatalf("run %s: %v", id, err)
	}
	return r
}

func mustState(t must, s *store.Store, id string, want ci.State) ci.Run {
	t.Helper()
	r := mustRun(t, s, id)
	if r.State != want {
		t.Fatalf("run %s is %s, want %s", id, r.State, want)
	}
	return r
}

const boot = "boot-1"

// mustClaim claims the next run; want "" stands for none.
func mustClaim(t must, s *store.Store, want string) ci.Run {
	t.Helper()
	r, ok, err := s.ClaimAny(context.Background(), boot, 1000)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	if ok != (want != "") || ok && r.ID != want {
		t.Fatalf("claimed %q (%v), want %q", r.ID, ok, want)
	}
	return r
}

func mustFinish(t must, s *store.Store, r ci.Run, to ci.State) {
	t.Helper()
	if err := s.FinishRun(context.Background(), r.ID, r.Attempt, store.Result{State: to}); err != nil {
		t.Fatalf("finish %s: %v", r.ID, err)
	}
}

// mustCode fails unless err has the code and its sentence holds each part.
func mustCode(t must, err error, want ci.Code, parts ...string) {
	t.Helper()
	if got := ci.CodeOf(err); got != want {
		t.Fatalf("error %v has code %q, want %q", err, got, want)
	}
	for _, p := range parts {
		if !strings.Contains(ci.MessageOf(err), p) {
			t.Fatalf("message %q does not say %q", ci.MessageOf(err), p)
		}
	}
}

func mustNil(t must, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// entriesOf returns a run's entries of a kind, oldest first.
func entriesOf(t must, s *store.Store, run, kind string) []ci.OutboxEntry {
	t.Helper()
	var out []ci.OutboxEntry
	for page := (store.Page{Limit: store.MaxLimit}); ; {
		list, next, err := s.Entries("", page)
		if err != nil {
			t.Fatalf("entries: %v", err)
		}
		for _, e := range list {
			if e.Run == run && (kind == "" || e.Kind == kind) {
				out = append([]ci.OutboxEntry{e}, out...)
			}
		}
		if next == "" {
			return out
		}
		page.Cursor = next
	}
}

func decisionsOf(t must, s *store.Store, run string) []ci.Decision {
	t.Helper()
	list, _, err := s.Decisions(run, store.Page{Limit: store.MaxLimit})
	if err != nil {
		t.Fatalf("decisions: %v", err)
	}
	return list
}

// mustDecided returns the newest decision of a kind on a run.
func mustDecided(t must, s *store.Store, run, kind string) ci.Decision {
	t.Helper()
	for _, d := range decisionsOf(t, s, run) {
		if d.Kind == kind {
			return d
		}
	}
	t.Fatalf("no decision %q on run %s", kind, run)
	return ci.Decision{}
}

// woken waits for a wakeup; it may come a moment after the answer.
func woken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(5 * time.Second):
		return false
	}
}

// clock is a time that only moves when it is told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	return c.t
}

func dbPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "docket.db")
}

// mustFile makes a store of n runs and returns its closed file.
func mustFile(t testing.TB, n int) string {
	t.Helper()
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	for i := range n {
		mustPush(t, s, fmt.Sprint("file-", i), i, i+1)
	}
	mustNil(t, s.Close())
	return path
}

// surgery changes a closed store's file from below.
func surgery(t testing.TB, path string, fn func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	mustNil(t, err)
	mustNil(t, db.Update(fn))
	mustNil(t, db.Close())
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	mustNil(t, err)
	return b
}

// copyFile copies a store's file as a crash at this moment would leave it:
// nothing is flushed or closed first.
func copyFile(t must, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	mustNil(t, err)
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	mustNil(t, err)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatalf("copy %s: %v", from, err)
	}
	mustNil(t, w.Close())
}
