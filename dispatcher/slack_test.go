package dispatcher_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/dispatcher"
	"docket/store/ci"
)

func slackNotify(address string) ci.Notify {
	return ci.Notify{Kind: ci.OutboxSlack, Target: "/etc/docket/slack.url", URL: ci.NewSecret("/etc/docket/slack.url", address), Events: []string{ci.RunFailed}}
}

func slackPayload() ci.NotificationPayload {
	return ci.NotificationPayload{Type: ci.RunFailed, Timestamp: ci.At(noon), Data: ci.Run{
		ID: "api-42", Project: "api", Number: 42, State: ci.Failed, URL: "https://ci.example.org/runs/api-42",
		Cause:  ci.Cause{Kind: ci.CauseDelivery, Actor: "octocat"},
		Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main", Commit: commit},
	}}
}

func slackEntry(t *testing.T, p ci.NotificationPayload) ci.OutboxEntry {
	t.Helper()
	e := entry(ci.OutboxSlack, "/etc/docket/slack.url")
	e.Event, e.Payload = p.Type, mustJSON(t, p)
	return e
}

func newSlack(t *testing.T, c *ci.Config) *dispatcher.Slack {
	t.Helper()
	return &dispatcher.Slack{Client: mustClient(t), Config: func() *ci.Config { return c }, Now: at(noon), Agent: "docket/test"}
}

func TestSlackSaysWhatHappenedAndUnderWhichIDs(t *testing.T) {
	r := mustReceive(t, reply{body: "ok"})
	s := newSlack(t, notifyConfig(slackNotify(r.URL+"/services/T0/B0/xyzzy")))
	judged{outcome: dispatcher.Sent}.check(t, s.Send(t.Context(), slackEntry(t, slackPayload())))
	var body struct{ Text string }
	if err := json.Unmarshal(r.mustSee(t, 1)[0].body, &body); err != nil {
		t.Fatal(err)
	}
	want := "*api-42* failed on main at 6dcb09b for octocat\n<https://ci.example.org/runs/api-42|open the run>\nrun api-42 · message ob_1"
	if body.Text != want {
		t.Errorf("got  %q\nwant %q", body.Text, want)
	}
}

func TestSlackTextIsHarmlessAndBounded(t *testing.T) {
	p := slackPayload()
	p.Data.Source.Branch = "x<!channel>&<@U1|you>"
	p.Data.Reason = "<!here> " + strings.Repeat("&", 50<<10)
	p.Data.Source.PullRequest = &ci.PullRequest{Number: 7, Title: strings.Repeat("<😀>", 20<<10)}
	p.Data.Cause.Actor = strings.Repeat("ä", 500)
	text := dispatcher.SlackText(p, "ob_1")
	if n := utf8.RuneCountInString(text); n > 3000 || n < 2900 {
		t.Errorf("%d characters", n)
	}
	plain := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "", "<https://ci.example.org/runs/api-42|open the run>", "").Replace(text)
	if strings.ContainsAny(plain, "<>&") {
		t.Errorf("markup survives in %q", plain)
	}
	for _, want := range []string{"x&lt;!channel&gt;&amp;&lt;@U1|you&gt;", "&lt;!here&gt;", "run api-42 · message ob_1", "|open the run>"} {
		if !contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if !utf8.ValidString(text) {
		t.Error("not UTF-8")
	}
}

func TestSlackJudgesEachAnswer(t *testing.T) {
	type h = map[string]string
	for name, c := range map[string]struct {
		reply reply
		want  judged
	}{
		"200 ok":                          {reply{body: "ok\n"}, judged{outcome: dispatcher.Sent}},
		"200 without a body":              {reply{}, judged{outcome: dispatcher.Sent}},
		"200 as a JSON yes":               {reply{body: `{"success": true}`}, judged{outcome: dispatcher.Sent}},
		"200 as a JSON no":                {reply{body: `{"ok": false, "error": "channel_not_found"}`}, judged{dispatcher.Dead, 0, false, "channel_not_found"}},
		"200 with an error":               {reply{body: "no_service"}, judged{dispatcher.Dead, 0, false, "no_service"}},
		"400 invalid_payload":             {reply{status: 400, body: "invalid_payload"}, judged{dispatcher.Dead, 0, false, "invalid_payload"}},
		"403 action_prohibited":           {reply{status: 403, body: "action_prohibited"}, judged{dispatcher.Dead, 0, false, "action_prohibited"}},
		"404 no_service":                  {reply{status: 404, body: "no_service"}, judged{dispatcher.Dead, 0, false, "no_service"}},
		"410 channel_is_archived":         {reply{status: 410, body: "channel_is_archived"}, judged{dispatcher.Dead, 0, false, "channel_is_archived"}},
		"429 with Retry-After":            {reply{status: 429, header: h{"Retry-After": "30"}, body: "rate_limited"}, judged{dispatcher.Retry, 30 * time.Second, true, "rate_limited"}},
		"429 in silence":                  {reply{status: 429}, judged{dispatcher.Retry, 0, false, "429"}},
		"500":                             {reply{status: 500, body: "rollup_error"}, judged{dispatcher.Retry, 0, false, "rollup_error"}},
		"302 shows no path":               {reply{status: 302, header: h{"Location": "https://hooks.example.org/services/T0/B0/xyzzy"}}, judged{dispatcher.Dead, 0, false, "https://hooks.example.org (302)"}},
		"an answer that repeats the path": {reply{status: 404, body: "nothing at /services/T0/B0/xyzzy"}, judged{dispatcher.Dead, 0, false, "nothing at ***"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustReceive(t, c.reply)
			s := newSlack(t, notifyConfig(slackNotify(r.URL+"/services/T0/B0/xyzzy")))
			res := s.Send(t.Context(), slackEntry(t, slackPayload()))
			c.want.check(t, res)
			if contains(res.Detail, "xyzzy") {
				t.Errorf("the address shows in %q", res.Detail)
			}
		})
	}
}

func TestSlackCannotBeReachedAndSaysNoAddress(t *testing.T) {
	r := mustReceive(t)
	address := r.URL + "/services/T0/B0/xyzzy"
	r.Server.Close()
	res := newSlack(t, notifyConfig(slackNotify(address))).Send(t.Context(), slackEntry(t, slackPayload()))
	judged{outcome: dispatcher.Retry, text: "could not be reached"}.check(t, res)
	if contains(res.Detail, "xyzzy") {
		t.Errorf("the address shows in %q", res.Detail)
	}
}
