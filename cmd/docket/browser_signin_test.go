//go:build browser

package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"docket/store/ci"
)

// Ensure that a password signs in to the page that was asked for, that a wrong
// one does not, and that signing out ends it.
func TestBrowserSignsInByPassword(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil) })
	d.start()
	b := newBrowser(t, d)
	b.docket(goodPassword+"\n", "user", "add", "mona", "--role", "operator")

	b.open("/projects/api")
	b.click("main .btn.primary") // Sign in
	b.waitAt("/login")
	b.fill("#name", "mona")
	b.fill("#password", "not that one at all")
	b.press(kb.Enter)
	b.waitText("#login-error", "name or password is wrong")
	b.fill("#password", goodPassword)
	b.press(kb.Enter)
	b.waitAt("/projects/api")
	b.waitText("#user-menu summary", "mona")

	b.click("#user-menu summary")
	b.click(`form[action="/logout"] button`)
	b.waitAt("/login")
	b.open("/deliveries")
	b.waitText("main", "Sign in")
}

// Ensure that a link signs one browser in, once.
func TestBrowserSignsInByLink(t *testing.T) {
	d := newDaemon(t, nil, func(*daemon) {})
	d.start()
	b := newBrowser(t, d)
	link := b.link()
	b.open(link)
	b.open(link) // looking at it uses nothing up
	b.waitText("main", "This link signs you in as admin")
	b.click("main form button[type=submit]")
	b.waitAt("/")
	b.waitText("#user-menu summary", "admin")
	b.open(link)
	b.wait("the link is used up", `!document.querySelector("main input[name=token]")`)
}

// Ensure that the first visit says what to do, and follows as it is done.
func TestBrowserFirstVisit(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, nil, func(d *daemon) { d.addProject("api", repo, nil, waitStep("work")) })
	b.waitText("main", "Three steps to the first green run")
	b.click(`main a[href="/setup"]`)
	b.waitAt("/setup")
	b.waitText("#live-list", "No delivery has arrived yet.")
	if got := eval[string](b, `document.getElementById("url:github").value`); got != "http://docket.test/hooks/github" {
		t.Errorf("the page says to paste %q at the provider", got)
	}
	b.mark()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", repo.commit("refs/heads/main")))
	b.waitText("#live-list", "Deliveries arrive.")
	b.mustBeMarked()

	b.open("/")
	b.waitText(".steps3", "A delivery has arrived and its signature held.")
	b.waitText(".steps3", "The first run is on record.")
	d.waitStarted("work", "api-1")
	d.open("api-1")
	d.waitRun("api-1", ci.Succeeded)
	b.open("/")
	b.wait("the first steps are gone", `!document.querySelector(".steps3")`)
	b.waitText("#live-projects", "main")
}
