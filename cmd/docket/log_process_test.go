package main

import (
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"docket/store/ci"
)

// Ensure that the level of the log changes while docket runs, by the command
// and by SIGHUP, and that each line about a delivery or a run names it.
func TestLogOfARunningDocket(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, hub, func(d *daemon) {
		d.addProject("api", repo, nil)
		d.config["log"] = obj{"level": "info"}
	})
	d.start()
	if out := d.output("log-level"); out.out != "info\n" {
		t.Errorf("log-level: %+v", out)
	}
	if out := d.output("log-level", "loud"); out.code != exitUsage {
		t.Errorf("a level that is none: %+v", out)
	}
	if a := d.call("PUT", "/api/v1/log-level", "", obj{"level": "loud"}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a level that is none: %v", a)
	}
	if out := d.output("log-level", "debug"); out.out != "debug\n" {
		t.Errorf("log-level debug: %+v", out)
	}
	commit := repo.commit("refs/heads/main")
	reply := d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitRun("api-1", ci.Succeeded)
	hub.waitFor(t, commit, "api-1", "success", "")
	d.waitLog("notification sent")
	lines := 0
	for line := range strings.Lines(d.logText()) {
		about := regexp.MustCompile(`msg="(delivery accepted|run started|run ended|notification sent)"`).MatchString(line)
		if about && (!strings.Contains(line, "api-1") || !strings.Contains(line, "receipt="+reply.Receipt)) {
			t.Errorf("the line does not name its delivery and run: %s", line)
		}
		if about {
			lines++
		}
	}
	if lines < 4 {
		t.Errorf("only %d lines are about the delivery and its run", lines)
	}

	d.config["log"] = obj{"level": "warn"}
	d.configure()
	d.signal(syscall.SIGHUP)
	eventually(t, "SIGHUP changes the level", func() bool { return d.output("log-level").out == "warn\n" })
}
