package main

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that no secret's value is to be seen anywhere: not in the arguments
// of a process, in what docket writes, in a backup, on a page or in the API.
func TestSecretsAreSeenNowhere(t *testing.T) {
	t.Parallel()
	hub, told, repo := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7)
	const stepSecret, envSecret, slackSecret = "npm-marker-5c1d0a77", "env-marker-77e0b1c2", "slack-marker-0be5c9d1"
	slack := newReceiverOfAnything(t)
	d := newDaemon(t, hub, func(d *daemon) {
		mustWrite(t, filepath.Join(d.dir, "npm.token"), stepSecret)
		mustWrite(t, filepath.Join(d.dir, "slack.url"), slack+"/"+slackSecret)
		d.environ = append(d.environ, "FROM_ENV="+envSecret)
		d.config["log"] = obj{"level": "debug"}
		d.addProject("api", repo, obj{
			"secrets": obj{"NPM_TOKEN": obj{"file": "npm.token"}, "OTHER": obj{"env": "FROM_ENV"}},
			"notify":  append(told.notify(ci.RunFinished), obj{"slack": obj{"file": "slack.url"}, "events": []string{ci.RunFinished}}),
		}, step("say", `echo "npm $NPM_TOKEN, other $OTHER"; [ ${#NPM_TOKEN} = 19 ]`), waitStep("wait"))
	})
	secrets := map[string]string{
		"webhook secret": hookSecret, "notification secret": notifySecret, "status token": statusToken, "admin token": adminToken,
		"step's secret": stepSecret, "secret from the environment": envSecret, "Slack address": slackSecret,
	}
	mustLack := func(where, text string) {
		t.Helper()
		for what, value := range secrets {
			if strings.Contains(text, value) {
				t.Errorf("%s holds the %s", where, what)
			}
		}
	}
	tree := func() {
		t.Helper()
		looked := 0
		for _, dir := range []string{d.data, d.log} {
			_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return nil
				}
				if b, err := os.ReadFile(path); err == nil {
					looked++
					mustLack(path, string(b))
				}
				return nil
			})
		}
		if looked < 3 {
			t.Errorf("only %d files were looked at", looked)
		}
	}
	commit := repo.commit("refs/heads/main")
	d.start()
	reply := d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitStarted("wait", "api-1")
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil {
			mustLack(path, string(b))
		}
	}
	tree() // the workspace is there: .git/config
	d.open("all")
	d.waitRun("api-1", ci.Succeeded)
	hub.waitFor(t, commit, "api-1", "success", "")
	d.waitSettled()
	if out := d.output("backup", filepath.Join(d.data, "copy.db")); out.code != exitDone {
		t.Fatalf("backup: %+v", out)
	}
	tree()
	log := string(d.call("GET", "/api/v1/runs/api-1/logs", "", nil).body)
	if !strings.Contains(log, "npm ***, other ***") {
		t.Errorf("the step said %q", log)
	}
	for _, path := range []string{
		"/api/v1/runs", "/api/v1/runs/api-1", "/api/v1/runs/api-1/logs", "/api/v1/projects", "/api/v1/projects/api", "/api/v1/receipts",
		"/api/v1/receipts/" + reply.Receipt, "/api/v1/receipts/" + reply.Receipt + "/body", "/api/v1/outbox", "/api/v1/decisions", "/api/v1/recoveries",
		"/api/v1/state", "/api/v1/tokens", "/api/v1/refusals", "/metrics", "/readyz",
	} {
		a := d.call("GET", path, "", nil)
		if a.status != http.StatusOK {
			t.Errorf("%s: %v", path, a)
		}
		mustLack(path, string(a.body))
	}
	d.lookAtPages(mustLack, "/", "/setup", "/projects/api", "/runs/api-1", "/runs/api-1/logs", "/deliveries", "/deliveries/"+reply.Receipt, "/notifications", "/decisions")
	mustLack("docket doctor", d.output("doctor").out)
	d.stop()
	tree()
}

// newReceiverOfAnything takes whatever is sent to it.
func newReceiverOfAnything(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// lookAtPages signs in as a browser does and hands each page to look.
func (d *daemon) lookAtPages(look func(where, text string), paths ...string) {
	d.t.Helper()
	link, err := url.Parse(strings.TrimSpace(d.output("login-link").out))
	if err != nil {
		d.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	base := "http://" + d.addresses[0]
	c := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: noRedirect, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.PostForm(base+"/login/link", url.Values{"token": {link.Query().Get("token")}})
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		d.t.Fatalf("the link %s is answered %d", link.Path, resp.StatusCode)
	}
	for _, path := range paths {
		resp, err := c.Get(base + path)
		if err != nil {
			d.t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || len(b) == 0 {
			d.t.Errorf("%s: %d, %v", path, resp.StatusCode, err)
		}
		look("the page "+path, string(b))
	}
}
