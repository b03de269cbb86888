package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// slackTarget is the name of the secret that the address is kept under.
const slackTarget = "/etc/docket/slack.url"

// mustTell queues the end of a run of its own commit for Slack.
func (h *house) mustTell() ci.OutboxEntry {
	h.t.Helper()
	h.requests++
	d := h.draft(commitOf(h.requests), false)
	d.Spec.Notify = []ci.NotifyTarget{{Kind: ci.OutboxSlack, Target: slackTarget, Events: []string{ci.RunFinished}}}
	run, _, err := h.store.Request(h.t.Context(), store.Request{Project: "api", Key: fmt.Sprint("key", h.requests), Digest: fmt.Sprint(h.requests), Draft: d})
	if err != nil {
		h.t.Fatal(err)
	}
	h.mustCancel(run)
	return h.mustFind(run, ci.OutboxSlack)
}

func (h *house) slackTo(r *receiver) {
	h.config.Projects[0].Notify = append(h.config.Projects[0].Notify, ci.Notify{
		Kind: ci.OutboxSlack, Target: slackTarget, URL: ci.NewSecret(slackTarget, r.URL+"/services/x"), Events: []string{ci.RunFinished},
	})
}

// Ensure that a burst of messages which Slack limits arrives whole, each once,
// with the wait that it asked for, and that another receiver is not held up.
func TestSlackLimitsABurstAndNothingIsLost(t *testing.T) {
	h := mustHouse(t)
	const n = 40
	limited := 0
	slack := mustReceive(t)
	slack.answer = func(got) (reply, bool) { // called one at a time
		if limited < 3 {
			limited++
			return reply{status: 429, header: map[string]string{"Retry-After": "30"}, body: "rate_limited"}, true
		}
		return reply{body: "ok"}, true
	}
	h.slackTo(slack)
	var entries []ci.OutboxEntry
	for range n {
		entries = append(entries, h.mustTell())
	}
	h.mustRun(h.options())
	h.eventually("Slack is not held", func() bool {
		holds, err := h.store.Holds(h.clock.now())
		return err == nil && holds[slackTarget].Until.After(h.clock.now())
	})
	h.mustPass() // the webhook is not held up
	h.clock.add(31 * time.Second)
	for _, e := range entries {
		h.eventually(e.ID+" does not arrive", func() bool {
			got, err := h.store.Entry(e.ID)
			if err == nil && got.State == ci.OutboxPending {
				h.clock.add(time.Second)
			}
			return err == nil && got.State == ci.OutboxSent
		})
	}
	took := map[string]int{}
	for _, g := range slack.requests() {
		var m struct{ Text string }
		if err := json.Unmarshal(g.body, &m); err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(m.Text, "message ")
		took[id]++
	}
	extra := 0
	for _, e := range entries {
		if took[e.ID] == 0 {
			t.Errorf("%s never came", e.ID)
		}
		extra += took[e.ID] - 1
	}
	if len(took) != n || extra != limited {
		t.Errorf("%d messages and %d repetitions, want %d and the %d that were refused", len(took), extra, n, limited)
	}
}

// Ensure that a message whose answer never came is sent again under the same
// id, and that the run's result does not depend on it.
func TestSlackIsToldAgainWhereItsAnswerIsLost(t *testing.T) {
	h := mustHouse(t)
	slack := mustReceive(t, reply{hang: true}, reply{body: "ok"})
	h.slackTo(slack)
	e := h.mustTell()
	o := h.options()
	o.Timeout = 100 * time.Millisecond
	h.mustRun(o)
	if got := h.mustWait(e.ID, 1); !contains(got.LastError, "did not answer in time") {
		t.Errorf("recorded %q", got.LastError)
	}
	h.clock.add(time.Minute)
	h.mustState(e.ID, ci.OutboxSent)
	seen := slack.mustSee(t, 2)
	if len(seen) != 2 || string(seen[0].body) != string(seen[1].body) || !contains(string(seen[0].body), e.ID) || !contains(string(seen[0].body), e.Run) {
		t.Errorf("%d requests, of them %s", len(seen), seen[0].body)
	}
	if run, err := h.store.Run(e.Run); err != nil || run.State != ci.Cancelled {
		t.Errorf("the run is %s, %v", run.State, err)
	}
}

// Ensure that a hook that is gone is given up at once.
func TestSlackIsGivenUpWhereItIsGone(t *testing.T) {
	h := mustHouse(t)
	h.slackTo(mustReceive(t, reply{status: 404, body: "no_service"}))
	h.mustRun(h.options())
	if e := h.mustState(h.mustTell().ID, ci.OutboxDead); e.Attempts != 1 || !contains(e.LastError, "no_service") {
		t.Errorf("%+v", e)
	}
}
