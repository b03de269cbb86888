package dispatcher_test

import (
	"net/http"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store"
	"docket/store/ci"
)

func TestARedirectIsNotFollowed(t *testing.T) {
	h := mustHouse(t)
	elsewhere := mustReceive(t)
	h.hook.script = []reply{{status: 307, header: map[string]string{"Location": elsewhere.URL + "/inside"}}}
	run := h.mustRequest(false, hookTarget)
	o := h.options()
	o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	h.mustRun(o)
	e := h.mustState(h.mustFind(run, ci.OutboxWebhook).ID, ci.OutboxDead)
	if !contains(e.LastError, elsewhere.URL+"/inside") {
		t.Errorf("recorded %q", e.LastError)
	}
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}

func TestADiscardedEntryIsNotSent(t *testing.T) {
	h := mustHouse(t)
	busy := mustReceive(t, reply{status: 500})
	h.config.Projects[0].Notify = append(h.config.Projects[0].Notify, h.target("https://busy.example.org/", busy))
	run := h.mustRequest(false, "https://busy.example.org/")
	h.mustRun(h.options())
	id := h.mustFind(run, ci.OutboxWebhook).ID
	h.mustWait(id, 1)
	if _, _, err := h.store.DiscardEntry(t.Context(), store.EntryAction{ID: id, By: ci.By{Kind: ci.ByToken, Name: "ops"}}); err != nil {
		t.Fatal(err)
	}
	h.clock.add(time.Hour)
	h.mustPass()
	if n := len(busy.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestARetriedEntryThatAnotherSpeaksForIsSkipped(t *testing.T) {
	h := mustHouse(t)
	h.github.script = []reply{{status: 404}, {status: 201, body: `{}`}}
	run := h.mustRequest(true)
	d, _ := h.mustRun(h.options())
	id := h.mustFind(run, ci.OutboxGitHubStatus).ID
	h.mustState(id, ci.OutboxDead)
	h.mustCancel(run)
	h.github.mustSee(t, 2)
	h.eventually("the final status is not recorded", func() bool { return d.Stats()[ci.OutboxGitHubStatus].Sent == 1 })
	if _, _, err := h.store.RetryEntry(t.Context(), store.EntryAction{ID: id, By: ci.By{Kind: ci.ByToken, Name: "ops"}}); err != nil {
		t.Fatal(err)
	}
	h.mustState(id, ci.OutboxSkipped)
	h.eventually("the skip is not counted", func() bool {
		return d.Stats()[ci.OutboxGitHubStatus] == dispatcher.Counts{Sent: 1, Dead: 1, Skipped: 1}
	})
	if n := len(h.github.requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestStatusesFollowARenamedRepository(t *testing.T) {
	h := mustHouse(t)
	deliver := func(id, name string, repo int64, drafts ...ci.Draft) {
		t.Helper()
		for i := range drafts {
			drafts[i].Cause = ci.Cause{Kind: ci.CauseDelivery, Event: ci.EventPush, Receipt: ci.NewReceiptID("github", 0, id).String()}
		}
		body := []byte(id)
		_, err := h.store.Accept(t.Context(), store.Acceptance{
			Delivery: ci.Delivery{Integration: "github", ID: id, Event: ci.EventPush, Body: body, ReceivedAt: h.clock.now()},
			Event:    ci.Event{Kind: ci.EventPush, Repository: ci.Repository{ID: repo, FullName: name}, Ref: "refs/heads/main", Branch: "main"},
			Reason:   "a test", Drafts: drafts, Projects: []string{"api"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(n int) ci.Draft {
		d := h.draft(commitOf(n), true)
		d.Source.RepositoryID = 7
		return d
	}
	deliver("one", "acme/api", 7, of(1000))
	deliver("two", "acme/renamed", 7)
	h.mustRun(h.options())
	if seen := h.github.mustSee(t, 1); seen[0].path != "/repos/acme/renamed/statuses/"+commitOf(1000) {
		t.Errorf("the status went to %s", seen[0].path)
	}

	// Another repository under the project: the old one's runs are not told.
	if err := h.store.Repin(t.Context(), "api", 8, ci.By{Kind: ci.ByToken, Name: "ops"}); err != nil {
		t.Fatal(err)
	}
	run, _, err := h.store.Request(t.Context(), store.Request{Project: "api", Key: "k", Digest: "d", Draft: of(1001)})
	if err != nil {
		t.Fatal(err)
	}
	e := h.mustState(h.mustFind(run, ci.OutboxGitHubStatus).ID, ci.OutboxDead)
	if !contains(e.LastError, "pinned to another repository") {
		t.Errorf("recorded %q", e.LastError)
	}
}
