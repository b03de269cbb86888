package server_test

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// evil is what outsiders would like to run in a page.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// withEverything is a configuration that tells a webhook about every run.
func withEverything(c *ci.Config) {
	p := &c.Projects[0]
	p.On.Push.Branches = []string{"**"}
	p.Notify = []ci.Notify{{
		Kind: ci.OutboxWebhook, Target: "https://hooks.example.org/" + evil, URL: ci.NewSecret("u", "https://hooks.example.org"),
		Events: ci.NotificationTypes,
	}}
	c.Integrations[0].Token = ci.NewSecret("token", "t")
}

// isPublic makes the project one that everybody may see.
func isPublic(c *ci.Config) { c.Projects[0].Public = true }

// hostilePush is a push whose every text is an attack.
func hostilePush(branch, before, after string) string {
	body := pushBody("refs/heads/BRANCH", before, after)
	quote := func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }
	return strings.NewReplacer("BRANCH", quote(branch), "fix …", quote(evil), "octocat", quote("octo"+evil)).Replace(body)
}

// forkBody is a pull request from a fork.
func forkBody(number, head string) string {
	return `{"action":"opened","number":` + number + `,"pull_request":{"number":` + number + `,"title":"` + strings.ReplaceAll(evil, `"`, `\"`) + `",
		"head":{"ref":"patch","sha":"` + head + `","repo":{"id":666,"full_name":"mallory/api"}},
		"base":{"ref":"main","sha":"` + commitB + `","repo":{"id":186853002,"full_name":"acme/api"}}},
		"repository":{"id":186853002,"full_name":"acme/api"},"sender":{"login":"mallory"}}`
}

// rich fills a store with something of everything: api-1 succeeded with a log,
// api-2 failed, api-3 of a fork is held, api-4 was asked for by hand and is
// preparing, api-5 runs, api-6 is queued; a notification is dead.
func (p *pages) rich() (running ci.Run, log *store.LogWriter) {
	p.t.Helper()
	must := func(a answer, status int) {
		p.t.Helper()
		if a.status != status {
			p.t.Fatalf("%v, want %d", a, status)
		}
	}
	at := func(n string) string { return n + commitA[len(n):] }
	must(p.deliver("push", "d-1", mainPush()), 202)
	one := p.mustClaimNext()
	w := p.mustCreateLog(one)
	p.mustAppend(w, -1, "fetching from a secret place\n")
	p.mustAppend(w, 0, "\x1b[31mred\x1b[0m "+evil+"\nprogress 1\rprogress 2\nlast\n")
	p.mustFinish(one, w)

	must(p.deliver("push", "d/2 %", hostilePush("x"+evil[2:10], commitA, at("2"))), 202)
	two := p.mustClaimNext()
	w = p.mustCreateLog(two)
	p.mustAppend(w, 0, "broken\n")
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.store.FinishRun(p.t.Context(), two.ID, two.Attempt, store.Result{State: ci.Failed, Reason: "step test " + evil}); err != nil {
		p.t.Fatal(err)
	}
	must(p.deliver("pull_request", "d-3", forkBody("7", at("3"))), 202)
	must(p.call(ci.Operator, "POST", "/projects/api/runs", `{"branch":"main","reason":"because `+strings.ReplaceAll(evil, `"`, `\"`)+`","inputs":{"target":"production"}}`, "Idempotency-Key", "k-1"), 201)
	must(p.deliver("push", "d-5", pushBody("refs/heads/dev", at("2"), at("5"))), 202)
	five := p.mustClaimNext()
	must(p.deliver("push", "d-6", pushBody("refs/heads/other", at("2"), at("6"))), 202)
	must(p.deliver("push", "d-7", strings.Replace(mainPush(), "fix …", "[skip ci] fix", 1)), 202)
	req := p.delivery(p.url, "push", "d-8", mainPush())
	req.Header.Set("X-Hub-Signature-256", sign("wrong", "x"))
	must(p.do(req), 401)

	entries, _, err := p.store.EntriesOf(one.ID, 50)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind != ci.OutboxWebhook {
			continue
		}
		e, ok, err := p.store.BeginAttempt(p.t.Context(), e.ID)
		if err != nil || !ok {
			p.t.Fatalf("attempt: %t %v", ok, err)
		}
		if err := p.store.FinishAttempt(p.t.Context(), e.ID, e.Attempts, store.AttemptResult{State: ci.OutboxDead, Error: "410\r " + evil}); err != nil {
			p.t.Fatal(err)
		}
		break
	}
	return five, p.mustCreateLog(five)
}

// deadEntry returns a notification that was given up.
func (p *pages) deadEntry() ci.OutboxEntry {
	p.t.Helper()
	list, _, err := p.store.Entries(ci.OutboxDead, store.Page{})
	if err != nil || len(list) == 0 {
		p.t.Fatalf("no dead entry: %v", err)
	}
	return list[0]
}

// wantPage checks what holds for every answer of a page.
func wantPage(t *testing.T, a answer, status int) string {
	t.Helper()
	if a.status != status || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Fatalf("answer %v (%s), want a page of %d", a, a.header.Get("Content-Type"), status)
	}
	h := a.header
	csp := h.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, part) || strings.Contains(csp, "unsafe") {
			t.Errorf("Content-Security-Policy %q lacks %q", csp, part)
		}
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") == "" || h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") == "" {
		t.Errorf("headers %v", h)
	}
	for _, tag := range tags.FindAllString(attribute.ReplaceAllString(string(a.body), `=""`), -1) {
		if active.MatchString(tag) {
			t.Errorf("the page has the tag %q", tag)
		}
	}
	return string(a.body)
}

// What a page must not have: inline scripts, handlers and styles, and elements
// that only outsiders write. Values of attributes are left out before.
var (
	attribute = regexp.MustCompile(`=("[^"]*"|'[^']*')`)
	tags      = regexp.MustCompile(`<[a-zA-Z][^>]*>`)
	active    = regexp.MustCompile(`(?i)^<(img|script)[^>]*=[^"]|\s(on[a-z]+|style)=|^<script>|^<(iframe|object|embed|base)`)
)

// wantIn checks that a page holds every text, and none of those after "not:".
func wantIn(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		bad, not := strings.CutPrefix(s, "not:")
		if not && strings.Contains(page, bad) {
			t.Errorf("the page has %q: …%.400s", bad, page[max(0, strings.Index(page, bad)-200):])
		}
		if !not && !strings.Contains(page, s) {
			t.Errorf("the page lacks %q: %s", s, page)
		}
	}
}

// field returns the value of a hidden field of the form that posts to a path.
func field(t *testing.T, page, action, name string) string {
	t.Helper()
	i := strings.Index(page, `action="`+action+`"`)
	if i < 0 {
		t.Fatalf("no form posts to %s: %s", action, page)
	}
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page[i:])
	if m == nil || m[1] == "" {
		t.Fatalf("the form of %s has no %s", action, name)
	}
	return m[1]
}

// live opens a page's stream.
func (b *browser) live(path, lastEventID string) *liveReader {
	b.rig.t.Helper()
	ctx, cancel := context.WithTimeout(b.rig.t.Context(), 20*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		b.rig.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	if b.cookie != nil {
		req.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.cookie.Value})
	}
	res, err := b.rig.client.Do(req)
	if err != nil {
		b.rig.t.Fatal(err)
	}
	l := &liveReader{t: b.rig.t, header: res.Header, status: res.StatusCode, lines: bufio.NewScanner(res.Body), close: func() { cancel(); res.Body.Close() }}
	l.lines.Buffer(nil, 8<<20)
	b.rig.t.Cleanup(l.close)
	return l
}

// liveReader reads a page's stream as a browser does.
type liveReader struct {
	t      *testing.T
	status int
	header http.Header
	lines  *bufio.Scanner
	close  func()
	id     string // of the last event that had one
	state  map[string]string
}

// next returns the next event or comment; ok is false at the stream's end.
func (l *liveReader) next() (ev event, ok bool) {
	l.t.Helper()
	var data []string
	for l.lines.Scan() {
		line := l.lines.Text()
		if line == "" {
			ev.data = strings.Join(data, "\n")
			if ev.id != "" {
				l.id = ev.id
			}
			return ev, true
		}
		if strings.Contains(line, "\r") {
			l.t.Fatalf("to a browser the line %q ends at its carriage return", line)
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			ev.comment = value
		case "id":
			ev.id = value
		case "event":
			ev.kind = value
		case "data":
			data = append(data, value)
		default:
			l.t.Fatalf("line %q in a stream", line)
		}
	}
	return ev, false
}

// until reads up to the event of a kind whose data holds a text.
func (l *liveReader) until(kind, text string) event {
	l.t.Helper()
	for {
		ev, ok := l.next()
		if !ok {
			l.t.Fatalf("the stream ended before %s with %q: %v", kind, text, l.lines.Err())
		}
		if ev.kind == kind && strings.Contains(ev.data, text) {
			return ev
		}
	}
}
