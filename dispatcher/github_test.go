package dispatcher_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/dispatcher"
	"docket/dispatcher/forge"
	"docket/store/ci"
)

func githubConfig(api string) *ci.Config {
	return &ci.Config{
		Integrations: []ci.Integration{{Name: "github", Provider: "github", APIURL: api, Token: ci.NewSecret("/etc/docket/github.token", "ghp_verysecret")}},
		Projects:     []ci.Project{{Name: "api", Integration: "github", Repository: "acme/api"}},
	}
}

func statusPayload() ci.StatusPayload {
	return ci.StatusPayload{Project: "api", Repository: "acme/api", Commit: commit, Context: "docket/api", State: "success", Description: "api-42 succeeded", TargetURL: "https://ci.example.org/runs/api-42"}
}

func statusEntry(t *testing.T, p ci.StatusPayload) ci.OutboxEntry {
	t.Helper()
	e := entry(ci.OutboxGitHubStatus, "acme/api")
	e.Integration, e.Payload = "github", mustJSON(t, p)
	return e
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func newGitHub(t *testing.T, c *ci.Config) *dispatcher.GitHub {
	t.Helper()
	return &dispatcher.GitHub{
		Forge:  forge.New(forge.Options{Config: func() *ci.Config { return c }, Client: mustClient(t), Now: at(noon), Version: "test"}),
		Config: func() *ci.Config { return c }, Now: at(noon),
		Repository: func(_ ci.OutboxEntry, p ci.StatusPayload) (string, string, error) { return p.Repository, "", nil },
	}
}

func TestGitHubPutsTheStatusOnTheExactCommit(t *testing.T) {
	r := mustReceive(t, reply{status: http.StatusCreated, body: `{"id": 1}`})
	res := newGitHub(t, githubConfig(r.URL+"/api/v3/")).Send(t.Context(), statusEntry(t, statusPayload()))
	judged{outcome: dispatcher.Sent}.check(t, res)

	seen := r.mustSee(t, 1)[0]
	if seen.method != http.MethodPost || seen.path != "/api/v3/repos/acme/api/statuses/"+commit {
		t.Errorf("%s %s", seen.method, seen.path)
	}
	if a := seen.header.Get("Authorization"); a != "Bearer ghp_verysecret" {
		t.Errorf("authorization %q", a)
	}
	if a := seen.header.Get("User-Agent"); a != "docket/test" {
		t.Errorf("user agent %q", a)
	}
	var body map[string]string
	if err := json.Unmarshal(seen.body, &body); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"state": "success", "context": "docket/api", "description": "api-42 succeeded", "target_url": "https://ci.example.org/runs/api-42"}
	for k, v := range want {
		if body[k] != v {
			t.Errorf("%s is %q, want %q", k, body[k], v)
		}
	}
}

func TestGitHubLeavesOutATargetThatIsNoAddress(t *testing.T) {
	r := mustReceive(t, reply{status: http.StatusCreated, body: `{}`})
	p := statusPayload()
	p.TargetURL = "/runs/api-42"
	newGitHub(t, githubConfig(r.URL+"/")).Send(t.Context(), statusEntry(t, p))
	if body := string(r.mustSee(t, 1)[0].body); contains(body, "target_url") {
		t.Errorf("sent %s", body)
	}
}

func TestGitHubBoundsDescriptionAndContext(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"139 characters stay":             {strings.Repeat("a", 139), strings.Repeat("a", 139)},
		"140 characters stay":             {strings.Repeat("a", 140), strings.Repeat("a", 140)},
		"141 characters are cut":          {strings.Repeat("a", 141), strings.Repeat("a", 139) + "…"},
		"140 four-byte emoji stay":        {strings.Repeat("😀", 140), strings.Repeat("😀", 140)},
		"141 four-byte emoji are cut":     {strings.Repeat("😀", 141), strings.Repeat("😀", 139) + "…"},
		"a newline becomes a blank":       {"one\ntwo", "one two"},
		"a NUL is removed":                {"one\x00two", "onetwo"},
		"an escape sequence is defused":   {"\x1b[31mred", "[31mred"},
		"invalid UTF-8 is removed":        {"one\xff\xfetwo", "onetwo"},
		"half a rune at the end is taken": {"one\xf0\x9f\x98", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dispatcher.Shorten(c.in, 140); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}

	r := mustReceive(t, reply{status: http.StatusCreated, body: `{}`})
	p := statusPayload()
	p.Description, p.Context = strings.Repeat("ü", 300), strings.Repeat("c", 300)
	newGitHub(t, githubConfig(r.URL+"/")).Send(t.Context(), statusEntry(t, p))
	var body struct{ Description, Context string }
	if err := json.Unmarshal(r.mustSee(t, 1)[0].body, &body); err != nil {
		t.Fatal(err)
	}
	if d, c := utf8.RuneCountInString(body.Description), utf8.RuneCountInString(body.Context); d != 140 || c != 255 {
		t.Errorf("sent a description of %d and a context of %d characters", d, c)
	}
}

func TestGitHubJudgesEachAnswer(t *testing.T) {
	date := noon.Format(http.TimeFormat)
	unix := func(d time.Duration) string { return strconv.FormatInt(noon.Add(d).Unix(), 10) }
	type h = map[string]string
	for name, c := range map[string]struct {
		reply    reply
		attempts int           // 0: the first
		age      time.Duration // since the first attempt
		want     judged
	}{
		"201 is sent":                          {reply: reply{status: 201, body: `{}`}, want: judged{outcome: dispatcher.Sent}},
		"201 with a broken body is sent":       {reply: reply{status: 201, body: `{"id": `}, want: judged{outcome: dispatcher.Sent}},
		"202 is sent":                          {reply: reply{status: 202}, want: judged{outcome: dispatcher.Sent}},
		"201 with an empty limit is sent":      {reply: reply{status: 201, header: h{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix(time.Minute)}, body: `{}`}, want: judged{outcome: dispatcher.Sent}},
		"a primary limit waits for its reset":  {reply: reply{status: 403, header: h{"Date": date, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix(90 * time.Second)}, body: `{"message":"API rate limit exceeded"}`}, want: judged{dispatcher.Retry, 90 * time.Second, true, "rate limit"}},
		"a limit as 429 waits for its reset":   {reply: reply{status: 429, header: h{"Date": date, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix(90 * time.Second)}}, want: judged{dispatcher.Retry, 90 * time.Second, true, "429"}},
		"a reset in the past waits a second":   {reply: reply{status: 403, header: h{"Date": date, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix(-time.Hour)}}, want: judged{dispatcher.Retry, time.Second, true, ""}},
		"an absurd reset waits an hour":        {reply: reply{status: 403, header: h{"Date": date, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9223372036854775807"}}, want: judged{dispatcher.Retry, time.Hour, true, ""}},
		"a limit without a reset: a minute":    {reply: reply{status: 403, header: h{"X-RateLimit-Remaining": "0"}}, want: judged{dispatcher.Retry, time.Minute, true, ""}},
		"429 waits as told":                    {reply: reply{status: 429, header: h{"Retry-After": "5"}}, want: judged{dispatcher.Retry, 5 * time.Second, true, "429"}},
		"429 in silence waits a minute":        {reply: reply{status: 429}, want: judged{dispatcher.Retry, time.Minute, true, ""}},
		"429 in silence waits longer later":    {reply: reply{status: 429}, attempts: 6, want: judged{dispatcher.Retry, 160 * time.Second, true, ""}},
		"Retry-After is a date":                {reply: reply{status: 429, header: h{"Date": date, "Retry-After": noon.Add(30 * time.Second).Format(http.TimeFormat)}}, want: judged{dispatcher.Retry, 30 * time.Second, true, ""}},
		"a date is taken against its Date":     {reply: reply{status: 429, header: h{"Date": noon.Add(-time.Hour).Format(http.TimeFormat), "Retry-After": noon.Add(30*time.Second - time.Hour).Format(http.TimeFormat)}}, want: judged{dispatcher.Retry, 30 * time.Second, true, ""}},
		"Retry-After is negative":              {reply: reply{status: 429, header: h{"Retry-After": "-7"}}, want: judged{dispatcher.Retry, time.Second, true, ""}},
		"Retry-After is 0":                     {reply: reply{status: 429, header: h{"Retry-After": "0"}}, want: judged{dispatcher.Retry, time.Second, true, ""}},
		"Retry-After is 10^9":                  {reply: reply{status: 429, header: h{"Retry-After": "1000000000"}}, want: judged{dispatcher.Retry, time.Hour, true, ""}},
		"Retry-After is 10^30":                 {reply: reply{status: 429, header: h{"Retry-After": "1000000000000000000000000000000"}}, want: judged{dispatcher.Retry, time.Hour, true, ""}},
		"Retry-After is no time":               {reply: reply{status: 429, header: h{"Retry-After": "soon"}}, want: judged{dispatcher.Retry, time.Minute, true, ""}},
		"a secondary limit without any header": {reply: reply{status: 403, body: `{"message":"You have exceeded a secondary rate limit"}`}, want: judged{dispatcher.Retry, time.Minute, true, "secondary"}},
		"a secondary limit by its docs alone":  {reply: reply{status: 403, body: `{"message":"Slow down","documentation_url":"https://docs.github.com/x#about-secondary-rate-limits"}`}, want: judged{dispatcher.Retry, time.Minute, true, "Slow down"}},
		"a secondary limit with Retry-After":   {reply: reply{status: 403, header: h{"Retry-After": "75"}, body: `{"message":"You have exceeded a secondary rate limit"}`}, want: judged{dispatcher.Retry, 75 * time.Second, true, ""}},
		"500 is tried again":                   {reply: reply{status: 500}, want: judged{dispatcher.Retry, 0, false, "500"}},
		"502 with a page is tried again":       {reply: reply{status: 502, body: "<html>\n<b>bad gateway</b>"}, want: judged{dispatcher.Retry, 0, false, "502 Bad Gateway: <html> <b>bad gateway</b>"}},
		"503 with Retry-After waits as told":   {reply: reply{status: 503, header: h{"Retry-After": "40"}}, want: judged{dispatcher.Retry, 40 * time.Second, true, "503"}},
		"401 names the token's file":           {reply: reply{status: 401, body: `{"message":"Bad credentials"}`}, want: judged{dispatcher.Dead, 0, false, "/etc/docket/github.token"}},
		"403 without a limit is dead":          {reply: reply{status: 403, header: h{"X-RateLimit-Remaining": "4999"}, body: `{"message":"Resource not accessible by integration"}`}, want: judged{dispatcher.Dead, 0, false, "Resource not accessible by integration"}},
		"a suspended installation is dead":     {reply: reply{status: 403, body: `{"message":"This installation has been suspended"}`}, want: judged{dispatcher.Dead, 0, false, "suspended"}},
		"404 is dead":                          {reply: reply{status: 404, body: `{"message":"Not Found"}`}, want: judged{dispatcher.Dead, 0, false, "acme/api"}},
		"409 is dead":                          {reply: reply{status: 409, body: `{"message":"Conflict"}`}, want: judged{dispatcher.Dead, 0, false, "Conflict"}},
		"an unknown commit is tried again":     {reply: reply{status: 422, body: `{"message":"No commit found for SHA: 6dcb09b"}`}, want: judged{dispatcher.Retry, 0, false, "No commit found"}},
		"an unknown commit's last try":         {reply: reply{status: 422, body: `{"message":"No commit found for SHA: 6dcb09b"}`}, attempts: 5, age: 270 * time.Second, want: judged{dispatcher.Retry, 30 * time.Second, false, ""}},
		"an unknown commit after 5 minutes":    {reply: reply{status: 422, body: `{"message":"No commit found for SHA: 6dcb09b"}`}, attempts: 6, age: 5 * time.Minute, want: judged{dispatcher.Dead, 0, false, "gave up after 5 minutes"}},
		"too many statuses":                    {reply: reply{status: 422, body: `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}]}`}, want: judged{dispatcher.Dead, 0, false, "1000"}},
		"another 422 is dead at once":          {reply: reply{status: 422, body: `{"message":"Validation Failed","errors":["description is too long (maximum is 140 characters)"]}`}, want: judged{dispatcher.Dead, 0, false, "description is too long"}},
		"422 by field and code":                {reply: reply{status: 422, body: `{"message":"Validation Failed","errors":[{"field":"state","code":"invalid"}]}`}, want: judged{dispatcher.Dead, 0, false, "state invalid"}},
		"a redirect is dead, query left out":   {reply: reply{status: 307, header: h{"Location": "https://u:pw@api.github.example/repositories/7/statuses?token=abc"}}, want: judged{dispatcher.Dead, 0, false, "https://api.github.example/repositories/7/statuses (307)"}},
		"a redirect to nowhere is dead":        {reply: reply{status: 301}, want: judged{dispatcher.Dead, 0, false, "nowhere"}},
		"the token in an answer is masked":     {reply: reply{status: 400, body: "bad token ghp_verysecret"}, want: judged{dispatcher.Dead, 0, false, "bad token ***"}},
		"no answer at all":                     {reply: reply{hang: true}, want: judged{dispatcher.Retry, 0, false, "did not answer in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustReceive(t, c.reply)
			e := statusEntry(t, statusPayload())
			e.Failures, e.FirstAttemptAt = max(c.attempts, 1)-1, ci.At(noon.Add(-c.age))
			ctx := t.Context()
			if c.reply.hang {
				short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				ctx = short
			}
			res := newGitHub(t, githubConfig(r.URL+"/")).Send(ctx, e)
			c.want.check(t, res)
			if contains(res.Detail, "verysecret") || contains(res.Detail, "pw@") || contains(res.Detail, "abc") {
				t.Errorf("a secret shows in %q", res.Detail)
			}
			if n := len(r.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// Ensure that what the library remembers of a limit does not answer for GitHub.
func TestGitHubAsksAgainAfterALimit(t *testing.T) {
	far := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	r := mustReceive(t,
		reply{status: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": far}, body: `{"message":"API rate limit exceeded"}`},
		reply{status: 403, header: map[string]string{"Retry-After": "3000"}, body: `{"message":"secondary","documentation_url":"https://docs.github.com/x#secondary-rate-limits"}`},
		reply{status: 201, body: `{}`})
	g := newGitHub(t, githubConfig(r.URL+"/"))
	for _, want := range []dispatcher.Outcome{dispatcher.Retry, dispatcher.Retry, dispatcher.Sent} {
		if res := g.Send(t.Context(), statusEntry(t, statusPayload())); res.Outcome != want {
			t.Errorf("outcome %s, want %s: %s", res.Outcome, want, res.Detail)
		}
	}
	r.mustSee(t, 3)
}

func TestGitHubTellsOnlyWhatIsConfigured(t *testing.T) {
	r := mustReceive(t, reply{status: 201, body: `{}`})
	for name, c := range map[string]struct {
		change func(*ci.Config, *ci.StatusPayload)
		want   string
	}{
		"the project is gone":               {func(c *ci.Config, _ *ci.StatusPayload) { c.Projects = nil }, "no longer configured"},
		"the integration is gone":           {func(c *ci.Config, _ *ci.StatusPayload) { c.Integrations = nil }, "no longer configured"},
		"the project moved":                 {func(c *ci.Config, _ *ci.StatusPayload) { c.Projects[0].Integration = "other" }, "belongs to the integration other"},
		"the token is gone":                 {func(c *ci.Config, _ *ci.StatusPayload) { c.Integrations[0].Token = ci.Secret{} }, "no token"},
		"the api_url is no URL":             {func(c *ci.Config, _ *ci.StatusPayload) { c.Integrations[0].APIURL = "api" }, "api_url"},
		"the repository climbs":             {func(_ *ci.Config, p *ci.StatusPayload) { p.Repository = "../user" }, "owner/name"},
		"the repository has a third part":   {func(_ *ci.Config, p *ci.StatusPayload) { p.Repository = "a/b/c" }, "owner/name"},
		"the repository carries a query":    {func(_ *ci.Config, p *ci.StatusPayload) { p.Repository = "a/b?c" }, "owner/name"},
		"the commit is not one":             {func(_ *ci.Config, p *ci.StatusPayload) { p.Commit = "main" }, "cannot be read"},
		"the commit is the all-zero commit": {func(_ *ci.Config, p *ci.StatusPayload) { p.Commit = strings.Repeat("0", 40) }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, p := githubConfig(r.URL+"/"), statusPayload()
			c.change(cfg, &p)
			judged{outcome: dispatcher.Dead, text: c.want}.check(t, newGitHub(t, cfg).Send(t.Context(), statusEntry(t, p)))
		})
	}
	if n := len(r.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestGitHubCannotBeReached(t *testing.T) {
	r := mustReceive(t)
	api := r.URL + "/"
	r.Server.Close()
	res := newGitHub(t, githubConfig(api)).Send(t.Context(), statusEntry(t, statusPayload()))
	judged{outcome: dispatcher.Retry, text: "could not be reached"}.check(t, res)
}
