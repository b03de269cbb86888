package dispatcher_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docket/dispatcher"
	"docket/store/ci"
)

func notifyConfig(n ...ci.Notify) *ci.Config {
	return &ci.Config{Projects: []ci.Project{{Name: "api", Integration: "github", Notify: n}}}
}

func newWebhook(t *testing.T, c *ci.Config) *dispatcher.Webhook {
	t.Helper()
	return &dispatcher.Webhook{Client: mustClient(t), Config: func() *ci.Config { return c }, Now: at(noon), Agent: "docket/test"}
}

func hookTo(address, secret string) ci.Notify {
	n := ci.Notify{Kind: ci.OutboxWebhook, Target: address, URL: ci.NewSecret("url", address), Events: []string{ci.RunFinished}}
	if secret != "" {
		n.Secret = ci.NewSecret("notify.secret", secret)
	}
	return n
}

func hookEntry(target string) ci.OutboxEntry {
	e := entry(ci.OutboxWebhook, target)
	e.Event, e.Payload = ci.RunFinished, []byte(`{"type":"run.finished","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"api-42","reason":"a & b"}}`)
	return e
}

func TestWebhookIsSignedAsStandardWebhooksHasIt(t *testing.T) {
	key := strings.Repeat("k", 24)
	for name, secret := range map[string]string{
		"whsec_ and base64":     "whsec_" + base64.StdEncoding.EncodeToString([]byte(key)),
		"other text":            key,
		"whsec_ without base64": "whsec_" + key + "!",
	} {
		t.Run(name, func(t *testing.T) {
			r := mustReceive(t, reply{status: 204}, reply{status: 200})
			w := newWebhook(t, notifyConfig(hookTo(r.URL+"/ci?a=b", secret)))
			e := hookEntry(r.URL + "/ci?a=b")
			for range 2 {
				judged{outcome: dispatcher.Sent}.check(t, w.Send(t.Context(), e))
				e.Attempts++
			}
			raw := key
			if strings.HasSuffix(secret, "!") {
				raw = secret
			}
			verify, err := standardwebhooks.NewWebhookRaw([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range r.mustSee(t, 2) {
				if err := verify.VerifyIgnoringTimestamp(g.body, g.header); err != nil {
					t.Error(err)
				}
				if string(g.body) != string(e.Payload) {
					t.Errorf("body %s", g.body)
				}
				for k, v := range map[string]string{"webhook-id": "ob_1", "webhook-timestamp": "1772625600", "Content-Type": "application/json", "User-Agent": "docket/test"} {
					if got := g.header.Get(k); got != v {
						t.Errorf("%s is %q, want %q", k, got, v)
					}
				}
			}
		})
	}
}

func TestWebhookWithoutASecretCarriesNoSignature(t *testing.T) {
	r := mustReceive(t)
	judged{outcome: dispatcher.Sent}.check(t, newWebhook(t, notifyConfig(hookTo(r.URL, ""))).Send(t.Context(), hookEntry(r.URL)))
	if s := r.mustSee(t, 1)[0].header.Values("webhook-signature"); len(s) != 0 {
		t.Errorf("signed %q", s)
	}
}

func TestWebhookJudgesEachAnswer(t *testing.T) {
	type h = map[string]string
	date := noon.Format(http.TimeFormat)
	for name, c := range map[string]struct {
		reply reply
		want  judged
	}{
		"200":                               {reply{status: 200, body: "error, not really"}, judged{outcome: dispatcher.Sent}},
		"202":                               {reply{status: 202}, judged{outcome: dispatcher.Sent}},
		"400 keeps the answer's text":       {reply{status: 400, body: "no such\n field\x00"}, judged{dispatcher.Dead, 0, false, "400 Bad Request: no such field"}},
		"401":                               {reply{status: 401}, judged{dispatcher.Dead, 0, false, "401"}},
		"403":                               {reply{status: 403}, judged{dispatcher.Dead, 0, false, "403"}},
		"403 with Retry-After":              {reply{status: 403, header: h{"Retry-After": "9"}}, judged{dispatcher.Retry, 9 * time.Second, true, "403"}},
		"404":                               {reply{status: 404}, judged{dispatcher.Dead, 0, false, "404"}},
		"410":                               {reply{status: 410}, judged{dispatcher.Dead, 0, false, "410"}},
		"413":                               {reply{status: 413}, judged{dispatcher.Dead, 0, false, "413"}},
		"429 in silence":                    {reply{status: 429}, judged{dispatcher.Retry, 0, false, "429"}},
		"429 with Retry-After":              {reply{status: 429, header: h{"Retry-After": "5"}}, judged{dispatcher.Retry, 5 * time.Second, true, "429"}},
		"429 with a date":                   {reply{status: 429, header: h{"Date": date, "Retry-After": noon.Add(time.Minute).Format(http.TimeFormat)}}, judged{dispatcher.Retry, time.Minute, true, ""}},
		"429 with a negative Retry-After":   {reply{status: 429, header: h{"Retry-After": "-1"}}, judged{dispatcher.Retry, time.Second, true, ""}},
		"429 with an absurd Retry-After":    {reply{status: 429, header: h{"Retry-After": "1000000000"}}, judged{dispatcher.Retry, 24 * time.Hour, true, ""}},
		"429 with an unreadable one":        {reply{status: 429, header: h{"Retry-After": "soon"}}, judged{dispatcher.Retry, 0, false, ""}},
		"500":                               {reply{status: 500, body: "oops"}, judged{dispatcher.Retry, 0, false, "500 Internal Server Error: oops"}},
		"503 with Retry-After":              {reply{status: 503, header: h{"Retry-After": "120"}}, judged{dispatcher.Retry, 2 * time.Minute, true, "503"}},
		"301 is not followed":               {reply{status: 301, header: h{"Location": "/elsewhere?token=abc"}}, judged{dispatcher.Dead, 0, false, "/elsewhere (301)"}},
		"308 is not followed":               {reply{status: 308, header: h{"Location": "http://169.254.169.254/x"}}, judged{dispatcher.Dead, 0, false, "http://169.254.169.254/x"}},
		"an answer that repeats the secret": {reply{status: 400, body: "no: sesame"}, judged{dispatcher.Dead, 0, false, "no: ***"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustReceive(t, c.reply)
			res := newWebhook(t, notifyConfig(hookTo(r.URL, "sesame"))).Send(t.Context(), hookEntry(r.URL))
			c.want.check(t, res)
			if contains(res.Detail, "abc") || contains(res.Detail, "sesame") {
				t.Errorf("a secret shows in %q", res.Detail)
			}
			if n := len(r.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestWebhookKeepsTheBeginningOfALongAnswer(t *testing.T) {
	r := mustReceive(t, reply{status: 400, body: strings.Repeat("é", 1<<20)})
	res := newWebhook(t, notifyConfig(hookTo(r.URL, "x"))).Send(t.Context(), hookEntry(r.URL))
	if !strings.HasSuffix(res.Detail, ": "+strings.Repeat("é", 100)) {
		t.Errorf("detail of %d bytes: %q", len(res.Detail), res.Detail)
	}
}

func TestWebhookTellsOnlyWhatIsConfigured(t *testing.T) {
	r := mustReceive(t)
	slack := hookTo(r.URL, "x")
	slack.Kind = ci.OutboxSlack
	for name, c := range map[string]struct {
		config *ci.Config
		want   string
	}{
		"the project is gone":            {&ci.Config{}, "no longer configured"},
		"the target is gone":             {notifyConfig(hookTo("https://other.example.org/", "x")), "no longer configured"},
		"the target is of another kind":  {notifyConfig(slack), "no longer configured"},
		"the configured address is none": {notifyConfig(ci.Notify{Kind: ci.OutboxWebhook, Target: r.URL, URL: ci.NewSecret("u", "http://a b/\x7f")}), "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			judged{outcome: dispatcher.Dead, text: c.want}.check(t, newWebhook(t, c.config).Send(t.Context(), hookEntry(r.URL)))
		})
	}
	if n := len(r.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestWebhookSignsWithTheSecretOfTheEvent(t *testing.T) {
	r := mustReceive(t)
	other := hookTo(r.URL, "other")
	other.Events = []string{ci.RunQueued}
	w := newWebhook(t, notifyConfig(other, hookTo(r.URL, "right")))
	judged{outcome: dispatcher.Sent}.check(t, w.Send(t.Context(), hookEntry(r.URL)))
	verify, err := standardwebhooks.NewWebhookRaw([]byte("right"))
	if err != nil {
		t.Fatal(err)
	}
	g := r.mustSee(t, 1)[0]
	if err := verify.VerifyIgnoringTimestamp(g.body, g.header); err != nil {
		t.Error(err)
	}
}
