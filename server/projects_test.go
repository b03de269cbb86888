package server_test

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"docket/scheduler/pipeline"
	"docket/server"
	"docket/store"
	"docket/store/ci"
)

func TestProject(t *testing.T) {
	r := newRig(t)
	a := r.call(ci.Viewer, "GET", "/projects/api", "")
	want := `{"name":"api","integration":"github","repository":"acme/api","repository_id":0,"pinned_name":"","default_branch":"main",` +
		`"inputs":[{"name":"target","default":"staging","options":["staging","production"]}],"supersede":"pending","public":false,"latest":{},"schedules":[]}`
	if got := strings.TrimSpace(string(a.body)); got != want {
		t.Errorf("before the first delivery:\n%s\nwant\n%s", got, want)
	}
	r.deliver("push", "d-1", mainPush())
	p := mustDecode[struct {
		ID     int64 `json:"repository_id"`
		Latest map[string]struct{ Run, State, Commit string }
	}](t, r.call(ci.Viewer, "GET", "/projects/api", ""))
	if l := p.Latest["main"]; p.ID != repoID || l.Run != "api-1" || l.State != "queued" || l.Commit != commitA {
		t.Errorf("after it: %+v", p)
	}
	wantProblem(t, r.call(ci.Viewer, "GET", "/projects/other", ""), 404)
	if strings.Contains(string(r.call(ci.Viewer, "GET", "/projects", "").body), hookSecret) {
		t.Error("a secret is shown")
	}
}

// Ensure that the API and the page of a project tell its schedules: when each
// comes next, and which run it started last.
func TestProject_Schedules(t *testing.T) {
	nightly := ci.Schedule{Cron: "30 2 * * *", Timezone: "America/New_York"}
	r := newRig(t, func(c *ci.Config) {
		c.Projects[0].On.Schedule = []ci.Schedule{nightly, {Cron: "@yearly", Branch: "release"}}
	})
	type schedule struct {
		Cron, Timezone, Branch string
		NextAt                 ci.Time `json:"next_at"`
		LastRun                string  `json:"last_run"`
	}
	read := func() []schedule {
		return mustDecode[struct{ Schedules []schedule }](t, r.call(ci.Viewer, "GET", "/projects/api", "")).Schedules
	}
	list := read()
	if len(list) != 2 || list[0].Timezone != "America/New_York" || list[0].Branch != "main" || list[1].Timezone != "UTC" || list[1].Branch != "release" {
		t.Fatalf("%+v", list)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	if next := list[0].NextAt.In(zone); next.Before(time.Now()) || next.Hour() != 2 && next.Hour() != 3 || list[0].LastRun != "" {
		t.Errorf("next at %s, last run %q", next, list[0].LastRun)
	}
	p := r.config().Project("api")
	draft := pipeline.CompileSchedule(r.config(), p, nightly, "2026-01-01 02:30")
	run, done, err := r.store.Settle(t.Context(), store.Settlement{
		SlotKey: store.SlotKey{Project: "api", Key: nightly.Key()}, Draft: &draft,
		After: &ci.SlotRecord{Schedule: nightly, Spans: []ci.SlotSpan{{From: "2026-01-01 02:30", To: "2026-01-01 02:30"}}},
	})
	if err != nil || !done {
		t.Fatalf("%t, %v", done, err)
	}
	if got := read()[0].LastRun; got != run.ID {
		t.Errorf("last run %q, want %s", got, run.ID)
	}
}

// Ensure that the page tells a project's schedules to those who are signed in.
func TestProjectPage_Schedules(t *testing.T) {
	p := newPages(t, isPublic, func(c *ci.Config) {
		c.Projects[0].On.Schedule = []ci.Schedule{{Cron: "30 2 * * *", Timezone: "Asia/Tokyo", Branch: "release"}}
	})
	signedIn, stranger := p.browser().mustLogin("viewer"), p.browser()
	wantIn(t, wantPage(t, signedIn.get("/projects/api"), 200), "Schedules", "30 2 * * *", "Asia/Tokyo", "release", "02:30</span>")
	wantIn(t, wantPage(t, stranger.get("/projects/api"), 200), "not:Schedules", "not:30 2 * * *")
}

func TestBadge(t *testing.T) {
	r := newRig(t, func(c *ci.Config) {
		c.Projects[0].Public = true
		c.Projects = append(c.Projects, mustProject("web", "acme/web"))
	})
	badge := func(path string) answer { return r.do(mustRequest(t, "GET", r.url+"/api/v1/projects/"+path, "")) }
	a := badge("api/badge.svg")
	if a.status != 200 || a.header.Get("Content-Type") != "image/svg+xml; charset=utf-8" || a.header.Get("Cache-Control") != "no-cache" || !strings.Contains(string(a.body), "no runs") {
		t.Errorf("without a run: %v %v", a, a.header)
	}
	r.deliver("push", "d-1", mainPush())
	if a := badge("api/badge.svg"); !strings.Contains(string(a.body), "queued") {
		t.Errorf("queued: %v", a)
	}
	run := r.mustClaimNext()
	r.mustFinish(run, r.mustCreateLog(run))
	for path, want := range map[string]string{"api/badge.svg": "passing", "api/badge.svg?branch=main": "passing", "api/badge.svg?branch=x%3C%26": "no runs"} {
		if a := badge(path); a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %v, want %s", path, a, want)
		}
	}
	wantProblem(t, badge("web/badge.svg"), 401)
	wantProblem(t, badge("none/badge.svg"), 401) // whether it exists is nobody's business
	wantProblem(t, r.call(ci.Viewer, "GET", "/projects/none/badge.svg", ""), 404)
	if a := r.call(ci.Viewer, "GET", "/projects/web/badge.svg", ""); a.status != 200 {
		t.Errorf("with a token: %v", a)
	}
	wantProblem(t, badge("api"), 401)
}

// Ensure that no text can end the badge it stands in.
func TestBadgeEscapes(t *testing.T) {
	for _, text := range []string{`<script>alert(1)</script>`, `"><image href="x"/>`, "a&b", "]]>", "\x00\xff", "日本"} {
		svg := server.DrawBadge(text, text, "#000")
		d := xml.NewDecoder(strings.NewReader(string(svg)))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v in %s", text, err, svg)
			}
			if e, ok := tok.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "image") {
				t.Errorf("%q got out: %s", text, svg)
			}
		}
	}
}
