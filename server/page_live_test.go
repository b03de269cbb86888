package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store/ci"
)

// Ensure that a page's stream brings all of its live parts first, and from then
// on only those that have changed.
func TestLive_StateThenChanges(t *testing.T) {
	p := newPages(t, withEverything)
	run, w := p.rich() // with a carriage return in a notification's answer
	b := p.browser().mustLogin("operator")
	for path, parts := range map[string]string{
		"/": "banners active projects", "/projects/api": "banners missed durations runs", "/runs/api-1": "banners head actions chain steps trail",
		"/deliveries": "banners refusals list", "/notifications": "banners list", "/decisions": "banners list", "/setup": "banners missed list gaps",
	} {
		l := b.live(path, "")
		if l.status != 200 || !strings.HasPrefix(l.header.Get("Content-Type"), "text/event-stream") || l.header.Get("X-Accel-Buffering") != "no" || l.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %v", path, l.status, l.header)
		}
		for _, part := range strings.Fields(parts) {
			ev, ok := l.next()
			if !ok || ev.kind != part || strings.Contains(ev.data, "<script>") {
				t.Errorf("%s: %+v, want the part %s", path, ev, part)
			}
		}
		l.close()
	}
	overview, page := b.live("/", ""), b.live("/runs/api-5", "")
	overview.until("projects", "api-5")
	page.until("trail", "")
	p.mustFinish(run, w)
	if ev := overview.until("active", ""); strings.Contains(ev.data, "api-5") {
		t.Errorf("it still runs: %s", ev.data)
	}
	if ev, _ := overview.next(); ev.kind != "projects" || !strings.Contains(ev.data, "succeeded") {
		t.Errorf("after the part that runs are in came %+v", ev)
	}
	page.until("head", "succeeded")
	if ev, _ := page.next(); ev.kind != "actions" || !strings.Contains(ev.data, "/runs/api-5/rerun") {
		t.Errorf("%+v", ev)
	}
}

// Ensure that a form that stays keeps its key for as long as the stream lasts.
func TestLive_FormsKeepTheirKeys(t *testing.T) {
	p := newPages(t, withEverything)
	p.rich()
	b := p.browser().mustLogin("operator")
	dead := p.deadEntry()
	l := b.live("/notifications", "")
	key := func(ev event) string { return field(t, ev.data, "/notifications/"+dead.ID+"/retry", "key") }
	before := key(l.until("list", "410"))
	if a := p.deliver("push", "d-9", pushBody("refs/heads/y", commitB, commitA)); a.status != 202 {
		t.Fatal(a)
	}
	if after := key(l.until("list", "api-7")); after != before {
		t.Errorf("the key %q became %q", before, after)
	}
}

// shown collects the lines that a stream's log events bring.
func shown(t *testing.T, ev event, lines map[string]string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`id="([^"]+-\d+)"[^>]*><a [^>]*>\d+</a>([^<]*)</div>`).FindAllStringSubmatch(ev.data, -1) {
		if old, ok := lines[m[1]]; ok && !strings.HasPrefix(m[2], old) {
			t.Errorf("line %s was %q and is %q", m[1], old, m[2])
		}
		lines[m[1]] = m[2]
	}
}

// Ensure that the log goes on where the page, or the connection before it,
// ended: nothing is skipped, nothing comes twice, and the end is told once.
func TestLive_LogResumes(t *testing.T) {
	p := newPages(t)
	p.server.SetStreamTimes(time.Minute, time.Second)
	run := p.mustClaim()
	w := p.mustCreateLog(run)
	b := p.browser().mustLogin("viewer")
	p.mustAppend(w, -1, "checkout\n")
	p.mustAppend(w, 0, "line 1\nline 2\nhal")
	page := wantPage(t, b.get("/runs/api-1"), 200)
	wantIn(t, page, `id="test-2"`, "hal")
	m := regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page opens no stream: %s", page)
	}
	path := m[1]
	lines := map[string]string{}
	l := b.live(path, "")
	p.mustAppend(w, 0, "f 3\nline 4\n")
	ev := l.until("log", "")
	if strings.Contains(ev.data, "test-1\"") || strings.Contains(ev.data, "test-2\"") || strings.Contains(ev.data, "checkout") || ev.id == "" {
		t.Errorf("the page has this already: %+v", ev)
	}
	shown(t, ev, lines)
	for lines["test-4"] == "" {
		shown(t, l.until("log", ""), lines)
	}
	last := l.id
	l.close()
	p.mustAppend(w, 0, "line 5\n")
	p.mustAppend(w, 1, "line 1 of deploy\n")
	again := b.live(path, last) // the browser's id goes before what the path says
	for lines["deploy-1"] == "" {
		ev := again.until("log", "")
		if strings.Contains(ev.data, "test-4\"") {
			t.Errorf("this came before: %+v", ev)
		}
		shown(t, ev, lines)
	}
	// A stream without any place brings the log from its start.
	all, got := b.live("/runs/api-1", ""), map[string]string{}
	p.mustFinish(run, w)
	again.until("head", "succeeded")
	again.until("end", "")
	if ev, ok := again.next(); ok {
		t.Errorf("after the end came %+v", ev)
	}
	for {
		ev, ok := all.next()
		if !ok || ev.kind == "end" {
			break
		}
		if ev.kind == "log" {
			shown(t, ev, got)
		}
	}
	want := "map[deploy-1:line 1 of deploy test-3:half 3 test-4:line 4 test-5:line 5]"
	if fmt.Sprint(lines) != want {
		t.Errorf("the page got %v, want %s", lines, want)
	}
	lines["preparation-1"], lines["test-1"], lines["test-2"] = "checkout", "line 1", "line 2"
	if fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("from the start: %v, want %v", got, lines)
	}
	if page := wantPage(t, b.get("/runs/api-1"), 200); strings.Contains(page, "sse-connect") {
		t.Errorf("a page on which nothing will change opens a stream")
	}
}

// Ensure that much of a log comes in events that a page can show whole.
func TestLive_ALongLog(t *testing.T) {
	p := newPages(t)
	run := p.mustClaim()
	w := p.mustCreateLog(run)
	const n = 5000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	p.mustAppend(w, 0, text.String())
	p.mustFinish(run, w)
	lines := map[string]string{}
	l := p.browser().mustLogin("viewer").live("/runs/api-1", "")
	for {
		ev, ok := l.next()
		if !ok {
			t.Fatal("the stream ended without an end")
		}
		if ev.kind == "end" {
			break
		}
		if ev.kind == "log" {
			before := len(lines)
			if shown(t, ev, lines); len(lines)-before > 1000 || len(lines) == before {
				t.Errorf("an event of %d new lines", len(lines)-before)
			}
		}
	}
	if len(lines) != n || lines["test-5000"] != "line 5000" {
		t.Errorf("%d lines", len(lines))
	}
}

// Ensure that a page of an older attempt is told to load itself again.
func TestLive_AnotherAttempt(t *testing.T) {
	p := newPages(t)
	run := p.mustClaim()
	if _, err := p.store.Lost(t.Context(), run.ID, run.Attempt, true, "lost"); err != nil {
		t.Fatal(err)
	}
	l := p.browser().mustLogin("viewer").live("/runs/api-1?log=1:0", "")
	l.until("trail", "")
	p.mustClaimNext()
	l.until("reload", "")
	if _, ok := l.next(); ok {
		t.Errorf("the stream goes on")
	}
}

// Ensure that a stream says that it lives, and ends with the session that
// opened it, with the role that it had, with what it shows, and with the listener.
func TestLive_Ends(t *testing.T) {
	for what, end := range map[string]func(p *pages, b *browser){
		"signed out":    func(p *pages, b *browser) { b.post("/logout") },
		"everywhere":    func(p *pages, b *browser) { b.post("/logout-everywhere") },
		"another role":  func(p *pages, b *browser) { p.mustNil(p.store.SetRole(p.t.Context(), "operator", ci.Viewer, ci.By{})) },
		"no public one": func(p *pages, b *browser) { p.reconfigure(withEverything) },
		"shut down":     nil,
	} {
		t.Run(what, func(t *testing.T) {
			p := newPages(t, withEverything, isPublic)
			p.server.SetStreamTimes(10*time.Millisecond, 20*time.Millisecond)
			b := p.browser()
			if what != "no public one" {
				b.mustLogin("operator")
			}
			var shutdown func() error
			if end == nil {
				srv := server.NewHTTPServer(p.server.Handler())
				url, done := mustServe(t, srv)
				b.base = url
				shutdown = func() error { err := srv.Shutdown(t.Context()); <-done; return err }
			}
			l := b.live("/projects/api", "")
			l.until("runs", "")
			for {
				ev, ok := l.next()
				if !ok {
					t.Fatal("ended too soon")
				}
				if ev.comment != "" {
					break
				}
			}
			if end != nil {
				one := *b
				end(p, &one)
			} else if err := shutdown(); err != nil {
				t.Error(err)
			}
			for {
				if _, ok := l.next(); !ok {
					break
				}
			}
			if err := l.lines.Err(); err != nil {
				t.Errorf("it was broken off: %v", err)
			}
		})
	}
}

func (r *rig) mustNil(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// Ensure that however much happens, a stream takes a few looks at the store a
// second, and that ages alone are no change.
func TestLive_ComesTogether(t *testing.T) {
	p := newPages(t)
	p.server.SetStreamTimes(time.Minute, 10*time.Millisecond)
	b := p.browser().mustLogin("viewer")
	l := b.live("/", "")
	l.until("projects", "")
	began := time.Now()
	for i := range 40 {
		if a := p.deliver("push", fmt.Sprint("d-", i), mainPush()); a.status != 202 {
			t.Fatal(a)
		}
	}
	n := 0
	for ; ; n++ {
		if ev := l.until("active", ""); strings.Contains(ev.data, "and 20 more waiting") {
			break
		}
	}
	if most := int(time.Since(began)/(250*time.Millisecond)) + 2; n > most {
		t.Errorf("%d events in %v", n, time.Since(began))
	}
	p.clock.add(90 * time.Second)
	if a := p.deliver("push", "d-last", pushBody("refs/heads/nobody", commitB, commitA)); a.status != 202 {
		t.Fatal(a)
	}
	quiet := time.AfterFunc(time.Second, l.close)
	defer quiet.Stop()
	for {
		ev, ok := l.next()
		if !ok {
			break
		}
		if ev.kind == "active" {
			t.Errorf("nothing has changed but the time: %+v", ev)
		}
	}
}
