package dispatcher_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/dispatcher"
	"docket/store/ci"
)

func giteaConfig(api string) *ci.Config {
	c := githubConfig(api)
	c.Integrations[0] = ci.Integration{Name: "forge", Provider: ci.ProviderGitea, APIURL: api, Token: ci.NewSecret("/etc/docket/gitea.token", "verysecret")}
	c.Projects[0].Integration = "forge"
	return c
}

func giteaEntry(t *testing.T, p ci.StatusPayload) ci.OutboxEntry {
	t.Helper()
	e := entry(ci.OutboxGiteaStatus, "acme/api")
	e.Integration, e.Payload = "forge", mustJSON(t, p)
	return e
}

func newGitea(t *testing.T, c *ci.Config) *dispatcher.Gitea {
	t.Helper()
	return &dispatcher.Gitea{
		Client: mustClient(t), Config: func() *ci.Config { return c }, Now: at(noon), Agent: "docket/test",
		Repository: func(_ ci.OutboxEntry, p ci.StatusPayload) (string, string, error) { return p.Repository, "", nil },
	}
}

func TestGiteaPutsTheStatusOnTheExactCommit(t *testing.T) {
	r := mustReceive(t, reply{status: http.StatusCreated, body: `{"id": 1}`})
	res := newGitea(t, giteaConfig(r.URL+"/git/api/v1/")).Send(t.Context(), giteaEntry(t, statusPayload()))
	judged{outcome: dispatcher.Sent}.check(t, res)
	seen := r.mustSee(t, 1)[0]
	if seen.method != http.MethodPost || seen.path != "/git/api/v1/repos/acme/api/statuses/"+commit {
		t.Errorf("%s %s", seen.method, seen.path)
	}
	for name, want := range map[string]string{"Authorization": "token verysecret", "User-Agent": "docket/test", "Content-Type": "application/json", "Accept": "application/json"} {
		if got := seen.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	want := `{"state":"success","target_url":"https://ci.example.org/runs/api-42","description":"api-42 succeeded","context":"docket/api"}`
	if string(seen.body) != want {
		t.Errorf("sent %s, want %s", seen.body, want)
	}
}

func TestGiteaBoundsWhatItSends(t *testing.T) {
	r := mustReceive(t, reply{status: http.StatusCreated})
	p := statusPayload()
	p.Description, p.Context, p.TargetURL = "one\ntwo"+strings.Repeat("😀", 300), strings.Repeat("c", 300), "/runs/api-42"
	newGitea(t, giteaConfig(r.URL+"/")).Send(t.Context(), giteaEntry(t, p))
	sent := r.mustSee(t, 1)[0].body
	var body struct{ Description, Context string }
	if err := json.Unmarshal(sent, &body); err != nil {
		t.Fatal(err)
	}
	if d, c := utf8.RuneCountInString(body.Description), utf8.RuneCountInString(body.Context); d != 140 || c != 255 || contains(body.Description, "\n") {
		t.Errorf("sent a description of %d and a context of %d characters", d, c)
	}
	if contains(string(sent), "target_url") {
		t.Errorf("sent a target that is no address: %s", sent)
	}
}

func TestGiteaJudgesEachAnswer(t *testing.T) {
	type h = map[string]string
	const swagger = `,"url":"https://git.example.org/api/swagger"}`
	unknown := `{"message":"GetCommit[` + commit + `]: object does not exist [id: ` + commit + `, rel_path: ]"` + swagger
	for name, c := range map[string]struct {
		reply    reply
		attempts int           // 0: the first
		age      time.Duration // since the first attempt
		want     judged
	}{
		"201 is sent":                        {reply: reply{status: 201, body: `{}`}, want: judged{outcome: dispatcher.Sent}},
		"201 with a broken body is sent":     {reply: reply{status: 201, body: `{"id": `}, want: judged{outcome: dispatcher.Sent}},
		"429 waits as told":                  {reply: reply{status: 429, header: h{"Retry-After": "5"}}, want: judged{dispatcher.Retry, 5 * time.Second, true, "429"}},
		"429 in silence waits a minute":      {reply: reply{status: 429}, want: judged{dispatcher.Retry, time.Minute, true, ""}},
		"Retry-After is 10^9":                {reply: reply{status: 429, header: h{"Retry-After": "1000000000"}}, want: judged{dispatcher.Retry, time.Hour, true, ""}},
		"Retry-After is negative":            {reply: reply{status: 429, header: h{"Retry-After": "-7"}}, want: judged{dispatcher.Retry, time.Second, true, ""}},
		"a proxy's 403 with a rate limit":    {reply: reply{status: 403, body: "rate limit exceeded"}, want: judged{dispatcher.Retry, time.Minute, true, "rate limit"}},
		"503 with Retry-After waits as told": {reply: reply{status: 503, header: h{"Retry-After": "40"}}, want: judged{dispatcher.Retry, 40 * time.Second, true, "503"}},
		"502 with a page is tried again":     {reply: reply{status: 502, body: "<html>\n<b>bad gateway</b>"}, want: judged{dispatcher.Retry, 0, false, "502 Bad Gateway: <html> <b>bad gateway</b>"}},
		"a silent 500 is tried again":        {reply: reply{status: 500, body: `{"message":""` + swagger}, want: judged{dispatcher.Retry, 0, false, "500 Internal Server Error"}},
		"an unknown commit as 500":           {reply: reply{status: 500, body: unknown}, want: judged{dispatcher.Retry, 0, false, "does not know the commit"}},
		"an unknown commit as 404":           {reply: reply{status: 404, body: `{"errors":null,"message":"` + commit + `"` + swagger}, want: judged{dispatcher.Retry, 0, false, "does not know the commit"}},
		"an unknown commit's last try":       {reply: reply{status: 500, body: unknown}, attempts: 5, age: 270 * time.Second, want: judged{dispatcher.Retry, 30 * time.Second, false, ""}},
		"an unknown commit after 5 minutes":  {reply: reply{status: 500, body: unknown}, attempts: 6, age: 5 * time.Minute, want: judged{dispatcher.Dead, 0, false, "gave up after 5 minutes"}},
		"401 names the token's file":         {reply: reply{status: 401, body: `{"message":"invalid username, password or token"` + swagger}, want: judged{dispatcher.Dead, 0, false, "/etc/docket/gitea.token"}},
		"403 names the scope":                {reply: reply{status: 403, body: `{"message":"token does not have at least one of required scope(s): [write:repository]"` + swagger}, want: judged{dispatcher.Dead, 0, false, "scope write:repository"}},
		"404 is dead":                        {reply: reply{status: 404, body: `{"errors":null,"message":"The target couldn't be found."` + swagger}, want: judged{dispatcher.Dead, 0, false, "acme/api"}},
		"404 of a wrong api_url is dead":     {reply: reply{status: 404, body: "404 page not found"}, want: judged{dispatcher.Dead, 0, false, "/api/v1/"}},
		"an archived repository is dead":     {reply: reply{status: 423, body: `{"message":"repo is archived"` + swagger}, want: judged{dispatcher.Dead, 0, false, "archived"}},
		"422 is dead, with its errors":       {reply: reply{status: 422, body: `{"message":"[]: invalid state","errors":["one","two"]` + swagger}, want: judged{dispatcher.Dead, 0, false, "invalid state; one; two"}},
		"400 is dead":                        {reply: reply{status: 400, body: `{"message":"sha not given"` + swagger}, want: judged{dispatcher.Dead, 0, false, "sha not given"}},
		"a redirect is dead":                 {reply: reply{status: 307, header: h{"Location": "https://u:pw@git.example.org/api/v1/repos/new/name?token=abc"}}, want: judged{dispatcher.Dead, 0, false, "https://git.example.org/api/v1/repos/new/name (307)"}},
		"the token in an answer is masked":   {reply: reply{status: 400, body: "bad token verysecret"}, want: judged{dispatcher.Dead, 0, false, "bad token ***"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustReceive(t, c.reply)
			e := giteaEntry(t, statusPayload())
			e.Failures, e.FirstAttemptAt = max(c.attempts, 1)-1, ci.At(noon.Add(-c.age))
			res := newGitea(t, giteaConfig(r.URL+"/")).Send(t.Context(), e)
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

func TestGiteaTellsOnlyWhatIsConfigured(t *testing.T) {
	r := mustReceive(t, reply{status: 201, body: `{}`})
	for name, c := range map[string]struct {
		change func(*ci.Config, *ci.StatusPayload)
		want   string
	}{
		"the integration is another's now":  {func(c *ci.Config, _ *ci.StatusPayload) { c.Integrations[0].Provider = ci.ProviderGitHub }, "no Gitea or Forgejo any more"},
		"the project is gone":               {func(c *ci.Config, _ *ci.StatusPayload) { c.Projects = nil }, "no longer configured"},
		"the token is gone":                 {func(c *ci.Config, _ *ci.StatusPayload) { c.Integrations[0].Token = ci.Secret{} }, "no token"},
		"the repository climbs":             {func(_ *ci.Config, p *ci.StatusPayload) { p.Repository = "../user" }, "owner/name"},
		"the repository carries a query":    {func(_ *ci.Config, p *ci.StatusPayload) { p.Repository = "a/b?c" }, "owner/name"},
		"the commit is the all-zero commit": {func(_ *ci.Config, p *ci.StatusPayload) { p.Commit = strings.Repeat("0", 40) }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, p := giteaConfig(r.URL+"/"), statusPayload()
			c.change(cfg, &p)
			judged{outcome: dispatcher.Dead, text: c.want}.check(t, newGitea(t, cfg).Send(t.Context(), giteaEntry(t, p)))
		})
	}
	if n := len(r.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestGiteaCannotBeReached(t *testing.T) {
	r := mustReceive(t)
	api := r.URL + "/"
	r.Server.Close()
	res := newGitea(t, giteaConfig(api)).Send(t.Context(), giteaEntry(t, statusPayload()))
	judged{outcome: dispatcher.Retry, text: "could not be reached"}.check(t, res)
}
