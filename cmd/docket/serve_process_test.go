package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/store/ci"
)

// output runs a command line of the binary to its end.
func (d *daemon) output(args ...string) result {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd := d.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Run() // the exit code tells
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Ensure that a second server on the same data directory gives up with the
// reason and harms nothing, and that none is needed to start after a kill.
func TestSecondServerOnOneDirectory(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil, waitStep("work")) })
	d.start()
	d.mustStart("api", "K", obj{"commit": repo.commit("refs/heads/main")})
	d.waitStarted("work", "api-1")

	began := time.Now()
	r := d.output("serve", "-c", d.configPath())
	if took := time.Since(began); r.code != exitFailed || took > 10*time.Second {
		t.Errorf("the second server ended with %d after %s", r.code, took)
	}
	mustContain(t, "the second server's error", r.err, filepath.Join(d.data, storeFile), "in use by another docket process")

	list := d.output("runs", "list", "-c", d.configPath())
	mustContain(t, "the list over the admin socket", list.out, "api-1", "running")
	d.open("api-1")
	d.waitRun("api-1", ci.Succeeded)

	d.kill()
	d.start() // at once, with the old socket and lock file lying there
	if list := d.output("runs", "list", "-c", d.configPath()); list.code != exitDone || !strings.Contains(list.out, "succeeded") {
		t.Errorf("after the kill: %+v", list)
	}
	d.stop()
	if r := d.output("verify", "-c", d.configPath()); r.code != exitDone {
		t.Errorf("verify of the stopped server: %+v", r)
	}
}

// Ensure that SIGHUP puts a good configuration in force as a whole, and a
// broken one not at all.
func TestSIGHUP(t *testing.T) {
	t.Parallel()
	hub, repo := newFakeGitHub(t), newRepository(t, "acme/api", 7)
	web := &repository{t: t, dir: repo.dir, fullName: "acme/web", id: 8}
	d := newDaemon(t, hub, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil) })
	commit := repo.commit("refs/heads/main")
	d.start()
	ofWeb := web.push("refs/heads/main", "", commit)
	if a := d.deliver(delivery{event: ci.EventPush, id: "d-web", body: ofWeb}); a.status != http.StatusForbidden {
		t.Fatalf("a repository without a project: %v", a)
	}

	d.addProject("web", web, nil)
	good := mustMarshal(t, d.config)
	mustWrite(t, d.configPath(), strings.Replace(string(good), `"clone_url"`, `"clone_uhl"`, 1))
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration refused")
	mustContain(t, "the log", d.logText(), "clone_uhl")
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitRun("api-1", ci.Succeeded)
	if a := d.deliver(delivery{event: ci.EventPush, id: "d-web", body: ofWeb}); a.status != http.StatusForbidden {
		t.Errorf("the broken file is in force: %v", a)
	}

	mustWrite(t, d.configPath(), string(good))
	d.signal(syscall.SIGHUP)
	d.waitLog("configuration read again")
	d.mustDeliver(http.StatusAccepted, "d-web", ofWeb)
	d.waitRun("web-1", ci.Succeeded)
	eventually(t, "GitHub is told of both", func() bool {
		told := map[string]bool{}
		for _, s := range hub.on(commit) {
			told[s.Repository+" "+s.Context+" "+s.State] = true
		}
		return told["acme/api docket/api success"] && told["acme/web docket/web success"]
	})
}

// Ensure that nothing slow is waited for while a delivery or a request is
// answered: neither the remote nor the status API ever answers here.
func TestAnswersWaitForNobody(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	remote := &repository{t: t, dir: "http://" + blackHole(t) + "/acme/api.git", fullName: "acme/api", id: 7}
	hub := &fakeGitHub{URL: "http://" + blackHole(t) + "/"}
	d := newDaemon(t, hub, func(d *daemon) {
		d.troubled = true // the remote is lost at the end
		d.addProject("api", remote, obj{"on": obj{"push": obj{"branches": []string{"**"}, "tags": []string{"**"}}}})
	})
	d.start()
	quick := func(what string, a answer, took time.Duration, status int) {
		t.Helper()
		if a.status != status || took > limit {
			t.Errorf("%s: %v after %s", what, a, took)
		}
	}
	commit, tag := strings.Repeat("1a", 20), strings.Repeat("2b", 20)
	began := time.Now()
	a := d.deliver(delivery{event: ci.EventPush, id: "d-1", body: remote.push("refs/heads/main", "", commit)})
	d.kill()
	quick("a push", a, time.Since(began), http.StatusAccepted)
	if id := mustReply(d, a, http.StatusAccepted).Runs[0].ID; id != "api-1" {
		t.Errorf("run %s", id)
	}

	d.start()
	if runs := d.runs(); len(runs) != 1 || runs[0].ID != "api-1" || runs[0].Source.Commit != commit {
		t.Errorf("after the kill there are the runs %+v", runs)
	}
	d.mustDeliver(http.StatusAccepted, "d-2", remote.push("refs/heads/other", "", strings.Repeat("3c", 20)))
	d.waitLog(`"run started" run=api-2`) // the remote is asked now, and so is the API
	began = time.Now()
	a = d.call("POST", apiPrefix+"/projects/api/runs", "K", obj{"branch": "main"})
	quick("a request", a, time.Since(began), http.StatusCreated)
	began = time.Now()
	annotated := bytes.Replace(remote.push("refs/tags/v1", "", tag), []byte(`"head_commit":{"id":"`+tag), []byte(`"head_commit":{"id":"`+commit), 1)
	a = d.deliver(delivery{event: ci.EventPush, id: "d-3", body: annotated})
	quick("an annotated tag", a, time.Since(began), http.StatusAccepted)
	if run := d.run("api-4"); run.State != ci.Preparing {
		t.Errorf("the tag's run is %+v", run)
	}
	if runs := d.runs(); len(runs) != 4 {
		t.Errorf("runs %+v", runs)
	}
	d.kill() // a stop would wait for the attempt at the API
}

var demoRun = regexp.MustCompile(`run +(hello-\d+)`)

// Ensure that the demo shows a run from push to success, and leaves nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := &daemon{t: t, dir: shortDir(t)}
	d.control, d.log = filepath.Join(d.dir, "control"), filepath.Join(d.dir, "log")
	temporary := filepath.Join(d.dir, "tmp")
	for _, dir := range []string{d.control, temporary} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := d.command("serve", "--demo")
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.cmd, d.exited = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(d.exited)
	}()
	defer func() {
		if d.running() {
			_ = cmd.Process.Kill()
			<-d.exited
		}
	}()
	d.waitLog("Ctrl-C ends the demo")
	text := d.logText()
	mustContain(t, "the demo", text, "listening on http://127.0.0.1:", "202", "hello from ", "pushed to main")
	run := demoRun.FindStringSubmatch(text)
	if run == nil || !strings.Contains(text, "Run "+run[1]+" succeeded") {
		t.Errorf("no run succeeded:\n%s", text)
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(text)
	if a := request("GET", address+"/healthz", http.Header{}, nil); a.status != http.StatusOK {
		t.Errorf("%s/healthz: %v", address, a)
	}
	d.signal(syscall.SIGINT)
	d.waitExit()
	if code := cmd.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("it ended with %v:\n%s", cmd.ProcessState, d.logText())
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
