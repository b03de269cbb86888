//go:build browser

package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"docket/store/ci"
)

// dress gives the browser a colour scheme and a width, without movement.
func (b *browser) dress(scheme string, width int64) {
	b.t.Helper()
	b.do("dress the page", chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
}

// fault is one rule of axe-core that a page breaks, and where.
type fault struct {
	Rule, Help string
	At         []string
}

// runAxe looks at all that a page holds, with everything in it unfolded.
const runAxe = `(async () => {
	for (const d of document.querySelectorAll("details:not(#user-menu)")) d.open = true;
	await new Promise(requestAnimationFrame);
	const found = await axe.run(document, { resultTypes: ["violations"] });
	return found.violations.map(v => ({ Rule: v.id, Help: v.help, At: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.any.concat(n.all).map(c => c.message).join("; ").slice(0, 200)) }));
})()`

// Ensure that axe-core finds nothing wrong with any page, dark or light, wide
// or narrow, and that none is wider than the narrow screen.
func TestBrowserPagesAreAccessible(t *testing.T) {
	axe := mustReadAxe(t)
	told, repo := newReceiver(t), newRepository(t, "acme/api", 7)
	told.status = http.StatusGone
	d := newDaemon(t, nil, func(d *daemon) {
		d.troubled = true
		d.addProject("api", repo, obj{
			"public": true, "notify": told.notify(ci.RunFinished), "on": obj{"push": obj{"branches": []string{"main", "long/*"}}, "pull_request": obj{}},
			"inputs": []obj{{"name": "target", "default": "staging", "options": []string{"staging", "production"}}, {"name": "note", "default": "none"}},
		}, step("colours", `for c in 31 32 33 34 35 36 90 91; do printf '\033[%smcolour %s\033[0m\n' $c $c; done; seq 300`), step("maybe", `[ "$DOCKET_BRANCH" = main ] || { echo broken; exit 1; }`))
		d.addProject("slow", repo, obj{"on": obj{"push": obj{"branches": []string{"never"}}}}, waitStep("work"))
	})
	d.start()
	b := newBrowser(t, d)
	look := func(path string) {
		t.Helper()
		b.open(path)
		eval[any](b, axe+"\n;true")
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 1280} {
				b.dress(scheme, width)
				for _, f := range eval[[]fault](b, runAxe) {
					t.Errorf("%s, %s, %d wide: %s: %s: %q", path, scheme, width, f.Rule, f.Help, f.At)
				}
				if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
					t.Errorf("%s is %d wide on a screen of %d", path, got, width)
				}
			}
		}
	}
	look("/login")
	look(b.link())
	b.signIn()
	for _, path := range []string{"/", "/projects/api", "/setup", "/deliveries", "/notifications", "/decisions"} {
		look(path) // with nothing in it yet
	}
	main := repo.commit("refs/heads/main")
	long := "refs/heads/long/name-of-a-branch-that-goes-on-and-on-without-any-place-to-break-it-on-a-narrow-screen"
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", main))
	d.mustDeliver(http.StatusAccepted, "d-2", repo.push(long, "", repo.commit(long)))
	d.deliver(delivery{event: ci.EventPush, id: "d-3", body: repo.push("refs/heads/other", "", main)})
	d.waitRun("api-1", ci.Succeeded)
	d.waitRun("api-2", ci.Failed)
	d.waitSettled()
	d.deliverPull("d-4", repo.pullFromFork(5, "Mend it", "topic", main))
	request("POST", "http://"+d.addresses[0]+"/hooks/github", http.Header{"X-Github-Event": {"push"}, "X-Github-Delivery": {"d-5"}, "Content-Type": {"application/json"}}, []byte("{}"))
	d.mustStart("slow", "K", obj{"branch": "main"})
	d.waitStarted("work", "slow-1")
	for _, path := range []string{
		"/", "/projects/api", "/runs/api-1", "/runs/api-2", "/runs/api-3", "/runs/slow-1", "/deliveries", "/deliveries/github/-/d-1", "/deliveries/github/-/d-3",
		"/notifications", "/decisions", "/setup", "/runs/api-99", "/decisions?run=api-99", "/deliveries?find=nothing",
	} {
		look(path)
	}
	d.open("slow-1")
	d.waitRun("slow-1", ci.Succeeded)

	// A form that was refused.
	b.open("/projects/api")
	b.click("#start > summary")
	b.fill("#f-ref", "no..branch")
	b.click("#start button[type=submit]")
	b.wait("the fault stands at its field", `document.querySelector("#e-ref")`)
	eval[any](b, axe+"\n;true")
	for _, scheme := range []string{"light", "dark"} {
		b.dress(scheme, 360)
		for _, f := range eval[[]fault](b, runAxe) {
			t.Errorf("the refused form, %s: %s: %s: %q", scheme, f.Rule, f.Help, f.At)
		}
	}

	// What everybody sees of a public project.
	b.open("/")
	b.click("#user-menu summary")
	b.click(`form[action="/logout"] button`)
	b.waitAt("/login")
	for _, path := range []string{"/", "/projects/api", "/runs/api-1", "/deliveries"} {
		look(path)
	}
}
