package server_test

import (
	"html"
	"net/url"
	"strings"
	"sync"
	"testing"

	"docket/store"
	"docket/store/ci"
)

const runsPath = "/projects/api/runs"

// Ensure that a form sent many times at once, and again later, also to a server
// that has been restarted since, leads to one run.
func TestRunForm_TwiceIsOnce(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	a := b.get("/projects/api")
	if cc := a.header.Get("Cache-Control"); cc != "private, no-cache" {
		t.Errorf("going back would not find the form as it was: Cache-Control %q", cc)
	}
	page := wantPage(t, a, 200)
	key := field(t, page, runsPath, "key")
	form := url.Values{"key": {key}, "kind": {"branch"}, "ref": {"main"}, "commit": {""}, "reason": {"a try"}, "input.target": {"production"}}
	var wg sync.WaitGroup
	got := make([]answer, 50)
	for i := range got {
		one := *b
		wg.Go(func() { got[i] = one.do("POST", runsPath, form) })
	}
	wg.Wait()
	for _, a := range got {
		wantGo(t, a, "/runs/api-1")
	}
	runs := p.runs()
	if len(runs) != 1 || runs[0].Inputs["target"] != "production" || runs[0].Cause.Actor != "operator" || runs[0].Cause.Reason != "a try" || runs[0].Source.Branch != "main" {
		t.Fatalf("runs %+v", runs)
	}
	p.url = p.mustListen(p.newServer().Handler())
	b.base = p.url
	b.mustLoginAgain()
	wantGo(t, b.do("POST", runsPath, form), "/runs/api-1")
	form.Set("commit", " ")
	form.Set("ref", " main ")
	wantGo(t, b.do("POST", runsPath, form), "/runs/api-1")
	if n := len(p.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
	if fresh := field(t, wantPage(t, b.get("/projects/api"), 200), runsPath, "key"); fresh == key {
		t.Errorf("a new form has the old key")
	}
}

// mustLoginAgain keeps the session where a new server knows it: sessions are on record.
func (b *browser) mustLoginAgain() {
	b.rig.t.Helper()
	if a := b.get("/"); a.status != 200 {
		b.rig.t.Fatalf("a session after a restart: %v", a)
	}
}

// Ensure that other values under the same key start nothing and lead to the run
// that has it, and that another run is one press away.
func TestRunForm_ChangedIsRefused(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	key := field(t, wantPage(t, b.get("/projects/api"), 200), runsPath, "key")
	wantGo(t, b.post(runsPath, "key", key, "ref", "main", "reason", "one"), "/runs/api-1")
	page := wantPage(t, b.post(runsPath, "key", key, "ref", "main", "reason", "two", "kind", "branch", "input.target", "production"), 409)
	wantIn(t, page, `href="/runs/api-1"`, `value="two"`, "<option selected>production</option>", "open>")
	if again := field(t, page, runsPath, "key"); again != key {
		t.Errorf("the key became %q", again)
	}
	if n := len(p.runs()); n != 1 {
		t.Fatalf("%d runs", n)
	}
	newKey := newKeyOf(t, page)
	for range 2 {
		wantGo(t, b.post(runsPath, "key", key, "newkey", newKey, "ref", "main", "reason", "two", "input.target", "production"), "/runs/api-2")
	}
	if n := len(p.runs()); n != 2 {
		t.Errorf("%d runs", n)
	}
}

func newKeyOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `name="newkey" value="`)
	key, _, _ := strings.Cut(rest, `"`)
	if !ok || key == "" {
		t.Fatalf("no new key: %s", page)
	}
	return key
}

// Ensure that what is wrong is said at its field, that nothing entered is lost,
// and that the key is kept: mended, the form starts one run.
func TestRunForm_FieldErrors(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	key := field(t, wantPage(t, b.get("/projects/api"), 200), runsPath, "key")
	for what, tt := range map[string]struct {
		fields []string
		want   []string
	}{
		"all at once": {[]string{"kind", "tag", "ref", "-x", "commit", "12", "reason", "a\x01b", "input.target", "moon"},
			[]string{`id="e-ref"`, "begins with a dash", `id="e-commit"`, "is not a full commit id", `id="e-reason"`, "control character", `id="e-in0"`, "choose one of staging, production", `value="-x"`, `value="12"`, `value="tag" checked`}},
		"a hostile branch":      {[]string{"ref", evil + " x"}, []string{`id="e-ref"`, `value="` + html.EscapeString(evil) + ` x"`}},
		"no tag's name":         {[]string{"kind", "tag", "ref", " "}, []string{"name the tag to build"}},
		"an undeclared input":   {[]string{"ref", "main", "input.planet", "mars"}, []string{"planet", "is not declared", `role="alert"`}},
		"an input that is huge": {[]string{"ref", "main", "input.target", strings.Repeat("x", 40<<10)}, []string{"has 40960 bytes"}},
	} {
		page := wantPage(t, b.post(runsPath, append(tt.fields, "key", key)...), 422)
		wantIn(t, strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&quot;", `"`).Replace(page), func() []string {
			for i := range tt.want {
				tt.want[i] = strings.NewReplacer("&#34;", `"`, "&#39;", "'").Replace(tt.want[i])
			}
			return tt.want
		}()...)
		if again := field(t, page, runsPath, "key"); again != key {
			t.Errorf("%s: the key became %q", what, again)
		}
	}
	if n := len(p.runs()); n != 0 {
		t.Fatalf("%d runs", n)
	}
	wantGo(t, b.post(runsPath, "key", key, "kind", "tag", "ref", "v1", "commit", strings.ToUpper(commitA)), "/runs/api-1")
	if r := p.runs()[0]; r.Source.Tag != "v1" || r.Source.Commit != commitA || r.Inputs["target"] != "staging" {
		t.Errorf("run %+v", r)
	}
	for _, bad := range []string{"", " ", "x\n", strings.Repeat("k", 256)} {
		if a := b.post(runsPath, "key", bad, "ref", "main"); a.status != 400 {
			t.Errorf("key %.9q: %v", bad, a)
		}
	}
	if a := b.post("/projects/none/runs", "key", "k"); a.status != 404 {
		t.Errorf("no project: %v", a)
	}
	wantGo(t, b.get(runsPath), "/projects/api")
	// The API and the page share their keys.
	if a := p.start(key, `{"tag":"v1","commit":"`+commitA+`"}`); a.status != 200 {
		t.Errorf("the API under the form's key: %v", a)
	}
}

// Ensure that each form of a page does what it says once, however often it is sent.
func TestActions(t *testing.T) {
	p := newPages(t, withEverything)
	p.rich()
	b := p.browser().mustLogin("operator")
	twice := func(page, action, to string) {
		t.Helper()
		key := field(t, wantPage(t, b.get(page), 200), action, "key")
		for range 2 {
			wantGo(t, b.post(action, "key", key, "reason", "so said I"), to)
		}
		if a := b.post(action, "reason", "without a key"); a.status != 400 {
			t.Errorf("%s without a key: %v", action, a)
		}
	}
	state := func(id string, want ci.State) {
		t.Helper()
		if r, err := p.store.Run(id); err != nil || r.State != want {
			t.Errorf("%s is %s, %v; want %s", id, r.State, err, want)
		}
	}
	twice("/runs/api-3", "/runs/api-3/approve", "/runs/api-3")
	state("api-3", ci.Queued)
	twice("/runs/api-6", "/runs/api-6/cancel", "/runs/api-6")
	state("api-6", ci.Cancelled)
	twice("/runs/api-1", "/runs/api-1/rerun", "/runs/api-7")
	dead := p.deadEntry()
	twice("/notifications?state=dead", "/notifications/"+dead.ID+"/retry", "/notifications")
	if e, err := p.store.Entry(dead.ID); err != nil || e.State != ci.OutboxPending {
		t.Errorf("retried: %+v %v", e, err)
	}
	twice("/notifications", "/notifications/"+dead.ID+"/discard", "/notifications")
	if e, err := p.store.Entry(dead.ID); err != nil || e.State != ci.OutboxSkipped {
		t.Errorf("discarded: %+v %v", e, err)
	}
	twice("/deliveries/github/-/d%2F2%20%25", "/deliveries/github/-/d%2F2%20%25/replay", "/deliveries/github/-/d%2F2%20%25")
	if n := len(p.runs()); n != 8 {
		t.Errorf("%d runs", n)
	}
	wantIn(t, wantPage(t, b.get("/decisions"), 200), "so said I", "operator", "judged again: accepted")
	// What is not possible any more says so, and where to look.
	page := wantPage(t, b.do("POST", "/runs/api-6/cancel", url.Values{"key": {"k-9"}}, "Accept", "text/html"), 409)
	wantIn(t, page, "nothing to cancel", `href="/runs/api-6"`)
	for _, tooMuch := range []string{strings.Repeat("x", 1001), "\xff"} {
		if a := b.post("/runs/api-5/cancel", "key", "k-10", "reason", tooMuch); a.status != 422 {
			t.Errorf("reason %.9q: %v", tooMuch, a)
		}
	}
}

// Ensure that a delivery is found by the id that its provider shows, and by its
// receipt's.
func TestDeliveries_Find(t *testing.T) {
	p := newPages(t, withEverything)
	p.rich()
	b := p.browser().mustLogin("viewer")
	for find, to := range map[string]string{
		"d-7": "/deliveries/github/-/d-7", " d-7 ": "/deliveries/github/-/d-7", "d/2 %": "/deliveries/github/-/d%2F2%20%25", "github/-/d-7": "/deliveries/github/-/d-7",
	} {
		wantGo(t, b.get("/deliveries?find="+url.QueryEscape(find)), to)
	}
	accepted, err := p.store.Accept(t.Context(), store.Acceptance{
		Delivery: ci.Delivery{Integration: "gitea", ID: "d-7", Event: ci.EventPush, Body: []byte("{}")}, Reason: "elsewhere",
	})
	if err != nil {
		t.Fatal(accepted, err)
	}
	wantIn(t, wantPage(t, b.get("/deliveries?find=d-7"), 200), "/deliveries/github/-/d-7", "/deliveries/gitea/-/d-7", "not:d-6")
}
