//go:build browser

package main

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"docket/store/ci"
)

// api starts a docket with one project that has a commit on main, and a
// browser that is signed in to it.
func api(t *testing.T, more obj, steps ...obj) (*daemon, *browser) {
	t.Helper()
	repo := newRepository(t, "acme/api", 7)
	repo.commit("refs/heads/main")
	return browse(t, nil, func(d *daemon) { d.addProject("api", repo, more, steps...) })
}

// mustHaveRuns checks how many runs there are.
func (d *daemon) mustHaveRuns(n int) {
	d.t.Helper()
	if list := d.runs(); len(list) != n {
		d.t.Errorf("there are %d runs, want %d: %+v", len(list), n, list)
	}
}

// Ensure that the form starts a run with what was entered, that a wrong value
// is told at its field, and that a run can be run again.
func TestBrowserStartsByForm(t *testing.T) {
	d, b := api(t, obj{"inputs": []obj{
		{"name": "target", "default": "staging", "options": []string{"staging", "production"}},
		{"name": "note", "default": "none"},
	}}, step("work", `echo "to $TARGET: $NOTE"`))
	b.open("/projects/api")
	b.click("#start > summary")
	b.fill("#f-ref", "no..branch")
	eval[any](b, `document.querySelector("#f-in0").value = "production"`)
	b.fill("#f-in1", "hello there")
	b.fill("#f-reason", "to see it")
	b.click("#start button[type=submit]")
	b.wait("the fault stands at its field", `document.querySelector("#f-ref[aria-invalid=true]") && document.querySelector("#e-ref").textContent`)
	if got := eval[string](b, `document.querySelector("#f-in1").value + document.querySelector("#f-in0").value`); got != "hello thereproduction" {
		t.Errorf("the form came back with %q", got)
	}
	d.mustHaveRuns(0)
	b.fill("#f-ref", "main")
	b.click("#start button[type=submit]")
	b.waitAt("/runs/api-1")
	b.waitText("#live-head", "succeeded")
	b.waitText("#log", "to production: hello there")
	b.waitText("main", "to see it")

	b.click("#act-rerun > summary")
	b.click("#act-rerun button[type=submit]")
	b.waitAt("/runs/api-2")
	b.waitText("#log", "to production: hello there")
	if run := d.waitRun("api-2", ci.Succeeded); run.Cause.Run != "api-1" {
		t.Errorf("the run is %+v", run)
	}
	d.mustHaveRuns(2)
}

// Ensure that a form that is sent twice starts one run, in every way to do so.
func TestBrowserSendsTwice(t *testing.T) {
	d, b := api(t, nil)
	b.open("/projects/api")
	b.click("#start > summary")
	// The second click comes while the first one's answer is awaited.
	eval[any](b, `(button => { button.click(); setTimeout(() => button.click(), 0); return true; })(document.querySelector("#start button[type=submit]"))`)
	b.waitAt("/runs/api-1")
	d.mustHaveRuns(1)

	b.open("/projects/api")
	const sendTwice = `(() => {
		const form = document.querySelector("#start form");
		const send = () => fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).then(r => new URL(r.url).pathname);
		return Promise.all([send(), send()]).then(at => at.join(" "));
	})()`
	if got := eval[string](b, sendTwice); got != "/runs/api-2 /runs/api-2" {
		t.Errorf("sent twice at once it led to %s", got)
	}
	d.mustHaveRuns(2)
}

// Ensure that who goes back and sends the form again comes to the run that it
// started, and is told of it where the values are others.
func TestBrowserGoesBackAndSendsAgain(t *testing.T) {
	d, b := api(t, nil)
	b.startByForm("api")
	b.waitAt("/runs/api-1")
	back := func() {
		eval[any](b, `history.back()`)
		b.waitAt("/projects/api")
		eval[any](b, `document.querySelector("#start").open = true`)
	}
	back()
	b.click("#start button[type=submit]")
	b.waitAt("/runs/api-1")
	d.mustHaveRuns(1)

	back()
	b.fill("#f-reason", "another one")
	b.click("#start button[type=submit]")
	b.waitText("#start [role=alert]", "This form has already started api-1")
	d.mustHaveRuns(1)
	b.click("#start button[name=newkey]")
	b.waitAt("/runs/api-2")
	d.mustHaveRuns(2)
}

// Ensure that the keyboard alone starts a run.
func TestBrowserKeyboardAlone(t *testing.T) {
	d, b := api(t, nil)
	b.open("/projects/api")
	// tab goes on to an element, and checks on the way that each place can be seen.
	tab := func(selector string) {
		t.Helper()
		for range 60 {
			b.press(kb.Tab)
			if at := eval[string](b, `(() => { const at = document.activeElement, s = getComputedStyle(at);
				return at !== document.body && s.outlineStyle === "none" && s.boxShadow === "none" ? at.outerHTML.slice(0, 200) : ""; })()`); at != "" {
				t.Errorf("the focus cannot be seen at %s", at)
			}
			if eval[bool](b, fmt.Sprintf(`document.activeElement.matches(%s)`, quoted(selector))) {
				return
			}
		}
		t.Fatalf("the tab key does not reach %s", selector)
	}
	tab("a.skip")
	tab("#start > summary")
	b.press(kb.Enter)
	tab("#f-ref")
	tab("#f-reason")
	b.press("by hand" + kb.Enter)
	b.waitAt("/runs/api-1")
	if run := d.waitRun("api-1", ci.Succeeded); run.Source.Branch != "main" {
		t.Errorf("the run is %+v", run)
	}
	b.waitSeen("#act-rerun")
	tab("#act-rerun > summary")
	b.press(" ")
	tab("#rerun-reason")
	tab("#act-rerun button[type=submit]")
	b.press(" ")
	b.waitAt("/runs/api-2")
}
