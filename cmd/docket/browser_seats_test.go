//go:build browser

package main

import "testing"

// Ensure that a page whose stream is refused says so, shows what has changed
// all the same, and is live again once there is a stream to be had.
func TestBrowserIsRefusedAStream(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	repo.commit("refs/heads/main")
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"public": true}, step("say", "echo the first line"), waitStep("work"), step("end", "echo the last line"))
	})
	d.start()
	d.mustStart("api", "K", obj{"branch": "main"})
	d.waitStarted("work", "api-1")
	leave, _ := d.takeSeats()
	b := newBrowser(t, d)
	b.sever()
	b.open("/runs/api-1")
	b.waitText("#live-state", "not live, read again")
	b.waitText("#log", "the first line")
	b.mark()
	d.open("api-1")
	b.waitText("#live-head", "succeeded") // by itself, and soon
	b.waitText("#log", "the last line")
	b.mustBeMarked()

	b.open("/projects/api")
	b.waitText("#live-state", "not live, read again")
	b.mark()
	d.mustStart("api", "K-2", obj{"branch": "main"})
	b.wait("who comes back to the page sees it as it is", `document.dispatchEvent(new Event("visibilitychange")) && document.querySelector("#live-runs").textContent.includes("api-2")`)
	leave()
	b.wait("the page is live", `document.querySelector("#live-state").textContent === "live"`)
	d.open("all")
	b.wait("no run goes on", `document.querySelectorAll("#live-runs .i-running").length === 0`)
	b.mustBeMarked()
}
