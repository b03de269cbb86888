package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/store/ci"
)

func TestAFailureIsTriedAgainUnderTheSameID(t *testing.T) {
	h := mustHouse(t)
	h.hook.script = []reply{{status: 500, body: "oops"}, {status: 502}, {status: 200}}
	run := h.mustRequest(false, hookTarget)
	d, _ := h.mustRun(h.options())
	id := h.mustFind(run, ci.OutboxWebhook).ID
	e := h.mustWait(id, 1)
	if !contains(e.LastError, "oops") || e.NextAttemptAt.Sub(h.clock.now()) != 5*time.Second {
		t.Errorf("recorded %q, next in %s", e.LastError, e.NextAttemptAt.Sub(h.clock.now()))
	}
	h.clock.add(5 * time.Second)
	e = h.mustWait(id, 2)
	if e.NextAttemptAt.Sub(h.clock.now()) != 10*time.Second {
		t.Errorf("next in %s", e.NextAttemptAt.Sub(h.clock.now()))
	}
	h.clock.add(10 * time.Second)
	e = h.mustState(id, ci.OutboxSent)
	for _, g := range h.hook.mustSee(t, 3) {
		if got := g.header.Get("webhook-id"); got != id {
			t.Errorf("webhook-id %q, want %q", got, id)
		}
	}
	if e.Attempts != 3 || e.LastError != "" {
		t.Errorf("recorded %d attempts, %q", e.Attempts, e.LastError)
	}
	h.eventually("the counts are wrong", func() bool { return d.Stats()[ci.OutboxWebhook] == dispatcher.Counts{Sent: 1, Retried: 2} })
}

func TestItGivesUpAfterThreeDays(t *testing.T) {
	h := mustHouse(t)
	h.hook.script = []reply{{status: 500, body: "oops"}}
	run := h.mustRequest(false, hookTarget)
	h.mustRun(h.options())
	id := h.mustFind(run, ci.OutboxWebhook).ID
	h.mustWait(id, 1)
	h.clock.add(72 * time.Hour)
	e := h.mustState(id, ci.OutboxDead)
	if !strings.HasPrefix(e.LastError, "gave up after 3 days: ") || !contains(e.LastError, "oops") {
		t.Errorf("recorded %q", e.LastError)
	}
}

func TestARateLimitHoldsTheIntegrationAcrossARestart(t *testing.T) {
	h := mustHouse(t)
	h.github.script = []reply{{status: 429, header: map[string]string{"Retry-After": "60"}}, {status: 201, body: `{}`}}
	first := h.mustRequest(true)
	_, stop := h.mustRun(h.options())
	h.mustWait(h.mustFind(first, ci.OutboxGitHubStatus).ID, 1)
	stop()
	h.mustReopen()

	second := h.mustRequest(true)
	h.mustRun(h.options())
	h.mustPass()
	h.clock.add(59 * time.Second)
	h.mustPass()
	if n := len(h.github.requests()); n != 1 {
		t.Fatalf("%d requests while the integration was held, want 1", n)
	}
	h.clock.add(2 * time.Second)
	h.mustState(h.mustFind(first, ci.OutboxGitHubStatus).ID, ci.OutboxSent)
	h.mustState(h.mustFind(second, ci.OutboxGitHubStatus).ID, ci.OutboxSent)
}

func TestRetryAfterHoldsOneTargetAlone(t *testing.T) {
	h := mustHouse(t)
	busy := mustReceive(t, reply{status: 503, header: map[string]string{"Retry-After": "60"}}, reply{})
	h.config.Projects[0].Notify = append(h.config.Projects[0].Notify, h.target("https://busy.example.org/", busy))
	h.mustRun(h.options())
	first := h.mustRequest(false, "https://busy.example.org/")
	h.mustWait(h.mustFind(first, ci.OutboxWebhook).ID, 1)
	second := h.mustRequest(true, "https://busy.example.org/")
	h.mustState(h.mustFind(second, ci.OutboxGitHubStatus).ID, ci.OutboxSent)
	h.mustPass()
	if n := len(busy.requests()); n != 1 {
		t.Errorf("%d requests while the target was held, want 1", n)
	}
	h.clock.add(time.Minute)
	h.mustState(h.mustFind(second, ci.OutboxWebhook).ID, ci.OutboxSent)
}
