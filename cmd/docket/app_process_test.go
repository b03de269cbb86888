package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/dispatcher/forge/forgetest"
)

// appRig is a docket that is a GitHub App of a fake GitHub, which has one private
// repository.
type appRig struct {
	*daemon
	hub  *forgetest.GitHub
	repo *repository
}

// newAppRig starts it. change is called with its one project, if it is not nil.
func newAppRig(t *testing.T, change func(project obj), steps ...obj) *appRig {
	t.Helper()
	r := &appRig{hub: forgetest.New(t), repo: newRepository(t, "acme/api", 7)}
	r.hub.AddRepository("acme/api", 7)
	r.hub.Serve("acme/api", r.repo.dir, true)
	r.daemon = newDaemon(t, nil, func(d *daemon) {
		mustWrite(t, filepath.Join(d.dir, "app.pem"), r.hub.PrivateKey())
		d.config["integrations"] = []obj{{
			"name": "github", "webhook_secrets": []obj{{"file": "hook.secret"}}, "api_url": r.hub.API(),
			"installations": []int64{forgetest.Installation}, "report": "checks",
			"app": obj{"id": forgetest.AppID, "private_key": obj{"file": "app.pem"}},
		}}
		d.addProject("api", r.repo, obj{"clone_url": r.hub.CloneURL("acme/api")}, steps...)
		if change != nil {
			change(d.config["projects"].([]obj)[0])
		}
	})
	r.start()
	r.aim()
	return r
}

// aim lets the App's deliveries arrive where docket listens now.
func (r *appRig) aim() {
	r.hub.SetAppHook(forgetest.Hook{
		URL: "http://docket.test/hooks/github", Target: "http://" + r.addresses[0] + "/hooks/github", Secret: hookSecret,
	})
}

// deliver delivers a payload as the App's installation does.
func (r *appRig) deliver(event string, payload []byte) {
	r.t.Helper()
	var p obj
	if err := json.Unmarshal(payload, &p); err != nil {
		r.t.Fatal(err)
	}
	p["installation"] = obj{"id": forgetest.Installation}
	if a := r.hub.Deliver(0, event, mustMarshal(r.t, p)); a.Code != http.StatusAccepted {
		r.t.Fatalf("docket answered %d", a.Code)
	}
}

// waitCheck waits for a conclusion of the newest check run of a commit.
func (r *appRig) waitCheck(commit, conclusion string, runs int) forgetest.CheckRun {
	r.t.Helper()
	var c forgetest.CheckRun
	eventually(r.t, "GitHub shows "+conclusion+" by the last of its check runs", func() bool {
		list := r.hub.CheckRuns(commit)
		if len(list) == 0 {
			return false
		}
		c = list[len(list)-1]
		return len(list) == runs && c.Conclusion == conclusion
	})
	return c
}

// Ensure that as a GitHub App docket fetches a private repository, reports by
// a check run, runs again when GitHub's own button asks for it, and leaves no
// secret anywhere.
func TestAGitHubAppFromThePushToTheCheck(t *testing.T) {
	r := newAppRig(t, nil, step("look", `cat name
env; cat .git/config ../gitconfig 2>/dev/null || true
GIT_TERMINAL_PROMPT=0 git push origin HEAD:refs/heads/mine && echo PUSHED
grep -rl "gh""s_" ../.. && echo FOUND
true`))
	commit := r.repo.commit("refs/heads/main")
	r.deliver("push", r.repo.push("refs/heads/main", "", commit))
	c := r.waitCheck(commit, "success", 1)
	if c.Name != "docket/api" || c.ExternalID != "api-1" || c.DetailsURL != "http://docket.test/runs/api-1" || !strings.Contains(c.Summary, "| look | succeeded |") {
		t.Errorf("%+v", c)
	}
	log := string(r.call("GET", "/api/v1/runs/api-1/logs", "", nil).body)
	if !strings.Contains(log, "commit 1 of acme/api") || strings.Contains(log, "PUSHED") || strings.Contains(log, "FOUND") {
		t.Errorf("the step said %s", log)
	}

	r.deliver("check_run", mustMarshal(t, obj{
		"action": "rerequested", "sender": obj{"login": "octocat"},
		"check_run":  obj{"id": c.ID, "head_sha": commit, "external_id": c.ExternalID, "name": c.Name, "status": "completed", "conclusion": "success", "app": obj{"id": forgetest.AppID}, "check_suite": obj{"id": 1, "head_sha": commit, "head_branch": "main"}},
		"repository": obj{"id": 7, "full_name": "acme/api", "default_branch": "main"},
	}))
	if c = r.waitCheck(commit, "success", 2); c.ExternalID != "api-2" {
		t.Errorf("%+v", c)
	}
	r.stop()
	r.mustHideSecrets()
}

// mustHideSecrets looks for the App's secrets in all that docket wrote.
func (r *appRig) mustHideSecrets() {
	r.t.Helper()
	secrets := append(r.hub.Tokens(), strings.Split(r.hub.PrivateKey(), "\n")[5], "eyJ")
	if len(secrets) < 4 {
		r.t.Fatalf("there are only %d secrets to look for", len(secrets))
	}
	for _, dir := range []string{r.data, r.log} {
		_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			text := mustRead(r.t, path)
			for _, s := range secrets {
				if strings.Contains(text, s) {
					r.t.Errorf("%s holds the secret %.4s...", path, s)
				}
			}
			return nil
		})
	}
}

// Ensure that a kill after GitHub has heard of a run makes no second check run.
func TestAKilledDocketMakesNoSecondCheckRun(t *testing.T) {
	r := newAppRig(t, nil)
	r.arm(pointAfterSend, 1)
	commit := r.repo.commit("refs/heads/main")
	r.deliver("push", r.repo.push("refs/heads/main", "", commit))
	r.waitKilled()
	r.disarm()
	r.start()
	r.aim()
	eventually(t, "GitHub hears of the end", func() bool {
		list := r.hub.CheckRuns(commit)
		return len(list) == 1 && list[0].Status == "completed"
	})
}

// Ensure that a mistake in the pipeline file is shown at its line.
func TestAMistakeInThePipelineFileIsShownOnGitHub(t *testing.T) {
	r := newAppRig(t, func(project obj) {
		delete(project, "steps")
		project["pipeline"] = "name" // which says "commit 1 of acme/api"
	})
	commit := r.repo.commit("refs/heads/main")
	r.deliver("push", r.repo.push("refs/heads/main", "", commit))
	c := r.waitCheck(commit, "failure", 1)
	if len(c.Annotations) != 1 || c.Annotations[0].GetPath() != "name" || c.Annotations[0].GetStartLine() != 1 {
		t.Errorf("%+v", c)
	}
}
