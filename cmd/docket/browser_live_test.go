//go:build browser

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that a page follows its run from the queue to the end without being
// loaded again, log and all.
func TestBrowserWatchesARun(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, newFakeGitHub(t), func(d *daemon) {
		d.config["limits"] = obj{"concurrent_runs": 1, "free_space": 1 << 20}
		d.addProject("api", repo, nil, waitStep("work"), step("say", `echo "first line"; echo "built $DOCKET_COMMIT"`))
	})
	one, two := repo.commit("refs/heads/a"), repo.commit("refs/heads/b")
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/a", "", one))
	d.waitStarted("work", "api-1")
	d.mustDeliver(http.StatusAccepted, "d-2", repo.push("refs/heads/b", "", two))
	d.waitRun("api-2", ci.Queued)

	b.open("/runs/api-2")
	b.mark()
	b.waitText("#live-head", "queued")
	b.waitText("#live-head", "limits.concurrent_runs is 1")
	d.open("api-1")
	b.waitText("#live-head", "running")
	b.waitText("#announce", "api-2 running")
	b.waitText("#live-steps", "work")
	d.open("api-2")
	b.waitText("#live-head", "succeeded")
	b.waitText("#log", "built "+two)
	b.waitText("#live-trail", "sent")
	b.waitText("#announce", "api-2 succeeded")
	b.wait("the page says no more that it follows", `document.querySelector("#live-state").hidden`)
	b.waitText(`[id="log:preparation"] summary`, "succeeded:")
	b.mustBeMarked()
	if n := eval[int](b, `[...document.querySelectorAll("#log .l")].filter(l => l.textContent.includes("first line")).length`); n != 1 {
		t.Errorf("the log has the same line %d times", n)
	}
}

// Ensure that the overview shows what begins and ends while it stands open.
func TestBrowserWatchesTheOverview(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, nil, func(d *daemon) { d.addProject("api", repo, nil, waitStep("work")) })
	b.mark()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", repo.commit("refs/heads/main")))
	b.waitText("#live-active", "api-1")
	d.open("api-1")
	b.wait("nothing runs any more", `!document.querySelector("#live-active").textContent.includes("api-1")`)
	b.waitText("#live-projects .heads", "succeeded")
	b.mustBeMarked()
}

// Ensure that a person stops a run, that its page shows it, and that who did
// it and why is on record.
func TestBrowserCancels(t *testing.T) {
	d, b := api(t, nil, waitStep("work"))
	b.startByForm("api")
	b.waitAt("/runs/api-1")
	d.waitStarted("work", "api-1")
	b.waitText("#live-head", "running")
	b.click("#act-cancel-running > summary")
	b.fill("#cancel-reason", "not this one")
	b.click("#act-cancel-running button[type=submit]")
	b.waitText("#live-head", "cancelled")
	b.waitText("#live-trail", "not this one")
	d.waitRun("api-1", ci.Cancelled)
	b.open("/decisions")
	b.waitText("#live-list", "not this one")
	b.waitText("#live-list", "admin")
}

// Ensure that a run of a fork waits until a person approves it, and is then run.
func TestBrowserApproves(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"pull_request": obj{}}}, step("work", "echo the code of a stranger"))
	})
	b.mark()
	d.deliverPull("d-1", repo.pullFromFork(5, "Mend it", "topic", repo.commit("refs/pull/5/head")))
	b.waitText("#live-banners", "1 run waits for approval.")
	b.mustBeMarked()
	b.click("#live-active a.row-main")
	b.waitAt("/runs/api-1")
	b.waitText("#live-head", "waits for approval")
	b.click("#act-approve > summary")
	b.waitText("#act-approve", "stranger/fork")
	b.fill("#approve-reason", "looked at it")
	b.click("#act-approve button[type=submit]")
	b.waitText("#live-head", "succeeded")
	b.waitText("#log", "the code of a stranger")
	b.waitText("#live-trail", "looked at it")
	d.mustDecide("api-1", ci.DecisionApproved)
}

// Ensure that who wonders why a push started nothing finds the rule.
func TestBrowserFindsWhyAPushWasIgnored(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"push": obj{"branches": []string{"main"}}}})
	})
	const id = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	if a := d.deliver(delivery{event: ci.EventPush, id: id, body: repo.push("refs/heads/topic", "", repo.commit("refs/heads/topic"))}); a.status/100 != 2 {
		t.Fatalf("answered %v", a)
	}
	b.click(`nav.nav a[href="/deliveries"]`)
	b.waitAt("/deliveries")
	b.fill("#find", id)
	b.click(".find button")
	b.waitAt("/deliveries/github/-/" + id)
	b.waitText("main", "It started nothing:")
	b.waitText(".verdict", "topic")
	b.waitText("main", `"ref": "refs/heads/topic"`)
}

// Ensure that a notification that was given up stands where people see it, and
// that one click sends it again.
func TestBrowserRetriesADeadNotification(t *testing.T) {
	told, repo := newReceiver(t), newRepository(t, "acme/api", 7)
	told.status = http.StatusGone
	d, b := browse(t, nil, func(d *daemon) {
		d.troubled = true
		d.addProject("api", repo, obj{"notify": told.notify(ci.RunFinished)})
	})
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", repo.commit("refs/heads/main")))
	b.waitText("#live-banners", "1 notification was given up.")
	b.click("#live-banners a")
	b.waitAt("/notifications")
	b.waitText("#live-list", "410")
	told.mu.Lock()
	told.status = http.StatusOK
	told.mu.Unlock()
	b.click("#live-list .entry details:first-child > summary")
	b.click("#live-list .entry details[open] button[type=submit]")
	b.wait("nothing needs attention any more", `!document.querySelector("#live-banners").textContent.includes("given up")`)
	if list := d.waitSettled(); len(list) != 1 || list[0].State != ci.OutboxSent {
		t.Errorf("the outbox is %+v", list)
	}
	if list := told.messages(); len(list) != 2 || list[0] != list[1] {
		t.Errorf("the receiver was told %+v", list)
	}
	b.open("/notifications?state=sent")
	b.waitText("#live-list", "api-1")
}

// Ensure that a log of 100,000 lines is shown by its end at once, by any line
// of it, and as a whole.
func TestBrowserShowsALongLog(t *testing.T) {
	const lines = "100000"
	d, b := api(t, nil, step("count", "seq "+lines))
	b.startByForm("api")
	b.waitAt("/runs/api-1")
	d.waitRun("api-1", ci.Succeeded)
	last := `document.getElementById("count-` + lines + `")?.textContent.includes("` + lines + `")`
	b.wait("the last line came while the page stood open", last)

	b.open("/runs/api-1")
	b.wait("the last line is there", last)
	b.waitText(`[id="log:count"] summary`, "100,000 lines")
	if n := eval[int](b, `document.querySelectorAll("#log .l").length`); n > 5000 {
		t.Errorf("the page has %d lines at once", n)
	}
	b.open("/runs/api-1#count-777")
	b.wait("line 777 is marked", `document.getElementById("count-777")?.matches(".on") && document.getElementById("count-777").textContent.endsWith("777")`)
	b.open("/runs/api-1?step=count&all=1")
	b.wait("all lines are there", `document.querySelectorAll("[id='log:count'] .l").length === `+lines)
}

// Ensure that a page that stands open while the server is killed says so, and
// shows what is the case once there is one again.
func TestBrowserOutlivesTheServer(t *testing.T) {
	d, b := api(t, nil, waitStep("work"))
	b.sever()
	d.config["listen"] = []obj{{"address": d.addresses[0]}} // where the page will look for it
	d.configure()
	b.startByForm("api")
	b.waitAt("/runs/api-1")
	d.waitStarted("work", "api-1")
	b.waitText("#live-head", "running")
	b.waitText("#live-state", "live")
	b.mark()
	d.kill()
	b.waitText("#live-state", "connection lost, trying again")
	d.start()
	b.waitText("#live-head", "interrupted")
	b.mustBeMarked()

	b.open("/")
	b.waitText("#live-state", "live")
	b.mark()
	d.kill()
	b.waitText("#live-state", "connection lost, trying again")
	d.start()
	d.open("all")
	d.mustStart("api", "K", obj{"branch": "main"})
	b.waitText("#live-state", "live")
	b.wait("the overview shows the new run", `[...document.querySelectorAll("#live-projects title")].length === 2`)
	b.mustBeMarked()
}

// Ensure that a page whose run begins anew loads itself again, so that it does
// not mix the lines of two attempts.
func TestBrowserFollowsTheNextAttempt(t *testing.T) {
	d, b := api(t, obj{"on_interrupt": "requeue"}, step("work", `if [ -e "$ROOM/started" ]; then echo "the second try"; else echo "the first try"; fi; : >"$ROOM/started"; until [ -e "$ROOM/open.all" ]; do sleep 0.02; done; echo "done"`))
	b.sever()
	d.config["listen"] = []obj{{"address": d.addresses[0]}} // where the page will look for it
	d.configure()
	b.startByForm("api")
	b.waitAt("/runs/api-1")
	d.waitRoom("started")
	b.waitText("#log", "the first try")
	b.mark()
	d.kill()
	d.start()
	b.waitText("#live-head", "attempt 2")
	b.wait("the page is loaded again", `window.marked === undefined`)
	b.waitText("#log", "the second try")
	d.open("all")
	b.waitText("#live-head", "succeeded")
	if log := eval[string](b, `document.querySelector("#log").textContent`); strings.Contains(log, "the first try") || !strings.Contains(log, "done") {
		t.Errorf("the log shows %q", log)
	}
}

// Ensure that script in what strangers write stays text, on every page.
func TestBrowserShowsScriptAsText(t *testing.T) {
	const evil = `"><img src=x onerror=window.pwned=1><script>window.pwned=1</script>`
	const branch = `x"><svg/onload=window.pwned=1>`
	repo := newRepository(t, "acme/api", 7)
	d, b := browse(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"push": obj{}, "pull_request": obj{}}, "inputs": []obj{{"name": "note", "default": "none"}}},
			step(`say <script>window.pwned=1</script>`, `cat name; printf '%s\n' '`+evil+`' "$NOTE"; printf '\033]8;;javascript:window.pwned=1\033\\link\033]8;;\033\\\n'; exit 1`))
	})
	ref := "refs/heads/" + branch
	commit := repo.commit(ref)
	var push obj
	if err := json.Unmarshal(repo.push(ref, "", commit), &push); err != nil {
		t.Fatal(err)
	}
	head := push["head_commit"].(obj)
	head["message"], push["sender"], push["pusher"] = evil, obj{"login": evil}, obj{"name": evil}
	d.mustDeliver(http.StatusAccepted, "d-"+evil[:20], mustMarshal(t, push))
	d.waitRun("api-1", ci.Failed)
	b.open("/projects/api")
	b.click("#start > summary")
	b.fill("#f-ref", branch)
	b.fill("#f-in0", evil)
	b.fill("#f-reason", evil)
	b.click("#start button[type=submit]")
	b.waitAt("/runs/api-2")
	b.waitText("#live-head", "failed")
	d.deliverPull("d-2", repo.pullFromFork(5, evil, branch, commit))

	receipt := d.receipts()[1]
	for path, shown := range map[string]string{
		"/": branch, "/projects/api": branch, "/projects/api?branch=" + strings.Repeat("%3Cb%3E", 2): "", "/runs/api-1": evil, "/runs/api-2": evil, "/runs/api-3": evil,
		"/deliveries": branch, "/deliveries/" + receipt.Integration + "/-/" + strings.NewReplacer(`"`, "%22", ">", "%3E", "<", "%3C", " ", "%20").Replace(receipt.Delivery): evil,
		"/notifications": "", "/decisions": "", "/setup": "", "/runs/%3Cimg%20src=x%20onerror=window.pwned=1%3E": "",
		"/deliveries?find=%22%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E": `"><script>window.pwned=1</script>`,
	} {
		b.open(path)
		if shown != "" {
			b.waitText("main", shown)
		}
		// Parts come again by the stream, and go through another parser.
		b.wait("the page of "+path+" is live or stands still", `!document.body.hasAttribute("sse-connect") || document.querySelector("#live-state:not([hidden])")`)
		if eval[bool](b, `"pwned" in window || document.querySelector("main img[onerror], main script, main [onload], main a[href^='javascript:']") !== null`) {
			t.Errorf("on %s script is no text", path)
		}
	}
}
