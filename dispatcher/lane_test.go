package dispatcher_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store"
	"docket/store/ci"
)

func TestStatusesOfACommitArriveInOrder(t *testing.T) {
	h := mustHouse(t)
	d, _ := h.mustRun(h.options())
	run := h.mustRequest(true, hookTarget)
	h.github.mustSee(t, 1)
	h.hook.mustSee(t, 1)
	h.eventually("the first entries are not recorded", func() bool {
		s := d.Stats()
		return s[ci.OutboxGitHubStatus].Sent == 1 && s[ci.OutboxWebhook].Sent == 1
	})
	h.mustCancel(run)
	seen, hooks := h.github.mustSee(t, 2), h.hook.mustSee(t, 2)
	for i, state := range []string{`"state":"pending"`, `"state":"error"`} {
		if seen[i].path != "/repos/acme/api/statuses/"+run.Source.Commit || !contains(string(seen[i].body), state) || !contains(string(seen[i].body), run.ID) {
			t.Errorf("status %d: %s %s, want %s", i, seen[i].path, seen[i].body, state)
		}
	}
	for i, kind := range []string{`"type":"run.queued"`, `"type":"run.finished"`} {
		if !contains(string(hooks[i].body), kind) {
			t.Errorf("notification %d: %s, want %s", i, hooks[i].body, kind)
		}
	}
	h.eventually("not everything is recorded", func() bool {
		list, _, err := h.store.Entries(ci.OutboxSent, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Attempts != 1 || e.LastError != "" || e.FinishedAt.IsZero() {
				t.Errorf("recorded %+v", e)
			}
		}
		return len(list) == 4
	})
	h.eventually("the counts are wrong", func() bool { return d.Stats()[ci.OutboxGitHubStatus] == dispatcher.Counts{Sent: 2} })
}

func TestALaneThatWaitsHoldsNobodyUp(t *testing.T) {
	h := mustHouse(t)
	stuck := h.mustRequest(true)
	h.github.answer = func(g got) (reply, bool) {
		return reply{hang: true}, strings.HasSuffix(g.path, stuck.Source.Commit)
	}
	o := h.options()
	o.Timeout = 200 * time.Millisecond
	h.mustRun(o)
	h.github.mustSee(t, 1)
	other := h.mustRequest(true, hookTarget)
	h.mustState(h.mustFind(other, ci.OutboxGitHubStatus).ID, ci.OutboxSent)
	h.mustState(h.mustFind(other, ci.OutboxWebhook).ID, ci.OutboxSent)
	e := h.mustWait(h.mustFind(stuck, ci.OutboxGitHubStatus).ID, 1)
	if !contains(e.LastError, "did not answer in time") {
		t.Errorf("recorded %q", e.LastError)
	}
}

func TestAReceiverThatHangsLeavesWorkersForOthers(t *testing.T) {
	h := mustHouse(t)
	hanging := mustReceive(t, reply{hang: true})
	h.config.Projects[0].Notify = append(h.config.Projects[0].Notify, h.target("https://hangs.example.org/", hanging))
	for range 30 {
		h.mustRequest(false, "https://hangs.example.org/")
	}
	o := h.options()
	o.Workers, o.Timeout = 4, 5*time.Second
	began := time.Now()
	o.Now = func() time.Time { return noon.Add(10 * time.Since(began)) }
	h.mustRun(o)
	hanging.mustSee(t, 2)
	for range 3 {
		h.mustPass()
	}
	if n := len(hanging.requests()); n > 2 {
		t.Errorf("%d of 4 workers were given to one receiver", n)
	}
	hanging.release()
}

func TestEverythingIsFoundWithoutWakeups(t *testing.T) {
	h := mustHouse(t)
	o := h.options()
	o.NoWakeups = true
	h.mustRun(o)
	for range 3 {
		h.mustPass()
	}
}

func TestAWakeupIsEnough(t *testing.T) {
	h := mustHouse(t)
	o := h.options()
	o.Scan = time.Hour
	h.mustRun(o)
	for range 3 {
		h.mustPass()
	}
}

func TestARetryComesAtItsTimeWithoutAWakeupOrAScan(t *testing.T) {
	h := mustHouse(t)
	h.hook.script = []reply{{status: 429, header: map[string]string{"Retry-After": "1"}}, {status: 200}}
	run := h.mustRequest(false, hookTarget)
	o := h.options()
	o.NoWakeups, o.Scan = true, time.Hour
	began := time.Now()
	o.Now = func() time.Time { return noon.Add(time.Since(began)) }
	h.mustRun(o)
	e := h.mustState(h.mustFind(run, ci.OutboxWebhook).ID, ci.OutboxSent)
	if e.Attempts != 2 {
		t.Errorf("%d attempts, want 2", e.Attempts)
	}
}

// peak counts what is under way, and what the third request and later ones saw.
type peak struct {
	next         http.RoundTripper
	began, now   atomic.Int32
	seenByLaters atomic.Int32
}

func (p *peak) RoundTrip(req *http.Request) (*http.Response, error) {
	now := p.now.Add(1)
	defer p.now.Add(-1)
	if p.began.Add(1) > 2 && now > p.seenByLaters.Load() {
		p.seenByLaters.Store(now)
	}
	return p.next.RoundTrip(req)
}

func TestAReceiverKnownToHangGetsOneWorker(t *testing.T) {
	h := mustHouse(t)
	h.hook.script = []reply{{hang: true}}
	for range 8 {
		h.mustRequest(false, hookTarget)
	}
	next := &http.Transport{}
	t.Cleanup(next.CloseIdleConnections)
	p := &peak{next: next}
	o := h.options()
	began := time.Now()
	o.Now = func() time.Time { return noon.Add(time.Since(began)) }
	o.Client, o.Workers, o.Timeout = &http.Client{Transport: p}, 4, 60*time.Millisecond
	h.mustRun(o)
	h.hook.mustSee(t, 6)
	if n := p.seenByLaters.Load(); n != 1 {
		t.Errorf("%d at once after it was known to hang, want 1", n)
	}
}

func TestASlackMessageArrives(t *testing.T) {
	h := mustHouse(t)
	h.config.Projects[0].Notify = []ci.Notify{slackNotify(h.hook.URL + "/services/T0/B0/xyzzy")}
	d := h.draft(commitOf(0), false)
	d.Spec.Notify = []ci.NotifyTarget{{Kind: ci.OutboxSlack, Target: "/etc/docket/slack.url", Events: []string{ci.RunQueued}}}
	run, _, err := h.store.Request(t.Context(), store.Request{Project: "api", Key: "k", Digest: "d", Draft: d})
	if err != nil {
		t.Fatal(err)
	}
	h.mustRun(h.options())
	e := h.mustState(h.mustFind(run, ci.OutboxSlack).ID, ci.OutboxSent)
	if body := string(h.hook.mustSee(t, 1)[0].body); !contains(body, "*"+run.ID+"* is queued on main") || !contains(body, e.ID) {
		t.Errorf("sent %s", body)
	}
}
