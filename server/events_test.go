package server_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/store"
	"docket/store/ci"
)

// withApp makes the integration a GitHub App's.
func withApp(c *ci.Config) {
	c.Integrations[0].App = &ci.App{ID: 678, PrivateKey: ci.NewSecret("key", "pem")}
	c.Integrations[0].Report = ci.ReportChecks
}

func checkBody(kind, action string, app int64, externalID, commit string) string {
	return fmt.Sprintf(`{"action":%q,%q:{"head_sha":%q,"external_id":%q,"app":{"id":%d}},"repository":{"id":%d,"full_name":"acme/api"},"sender":{"login":"octocat"}}`,
		action, kind, commit, externalID, app, repoID)
}

// ended claims the next run and ends it.
func (r *rig) ended(state ci.State) ci.Run {
	r.t.Helper()
	run := r.mustClaimNext()
	if err := r.store.FinishRun(r.t.Context(), run.ID, run.Attempt, store.Result{State: state}); err != nil {
		r.t.Fatal(err)
	}
	return run
}

// Ensure that a check that somebody asks for again is its run again, once a
// delivery, and nobody else's check anything.
func TestACheckIsRunAgain(t *testing.T) {
	r := newRig(t, withApp)
	r.deliver("push", "d-1", mainPush())
	r.ended(ci.Failed)
	body := checkBody("check_run", "rerequested", 678, "api-1", commitA)
	a := r.deliver("check_run", "d-2", body)
	got := mustDecode[hookAnswer](t, a)
	if a.status != 202 || got.Outcome != "accepted" || len(got.Runs) != 1 || got.Runs[0].ID != "api-2" || got.Reason != "" {
		t.Fatalf("answer %v", a)
	}
	if a := r.deliver("check_run", "d-2", body); a.status != 200 || !mustDecode[hookAnswer](t, a).Duplicate {
		t.Errorf("again: %v", a)
	}
	run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-2", ""))
	want := ci.Cause{Kind: ci.CauseRerun, Receipt: "github/-/d-2", Event: "check_run", Action: "rerequested", Actor: "octocat", Run: "api-1"}
	if run.Cause != want || run.Source.Commit != commitA || run.State != ci.Queued {
		t.Errorf("%+v", run)
	}
	for id, tt := range map[string]struct{ body, reason string }{
		"d-3": {checkBody("check_run", "rerequested", 678, "api-2", commitA), "wait for its end"},
		"d-4": {checkBody("check_run", "rerequested", 9, "api-1", commitA), "belongs to the App 9"},
		"d-5": {checkBody("check_run", "rerequested", 678, "api-1", commitB), "of another commit"},
		"d-6": {checkBody("check_run", "rerequested", 678, "../api-1", commitA), "no project of this repository"},
		"d-7": {checkBody("check_run", "completed", 678, "api-1", commitA), `action "completed" starts nothing`},
	} {
		a := r.deliver("check_run", id, tt.body)
		if got := mustDecode[hookAnswer](t, a); a.status != 202 || got.Outcome != "ignored" || !strings.Contains(got.Reason, tt.reason) || len(got.Runs) != 0 {
			t.Errorf("%s: %v, want %q", id, a, tt.reason)
		}
	}
	r.ended(ci.Failed)
	a = r.deliver("check_suite", "d-8", checkBody("check_suite", "rerequested", 678, "", commitA))
	if got := mustDecode[hookAnswer](t, a); a.status != 202 || len(got.Runs) != 1 || got.Runs[0].ID != "api-3" {
		t.Errorf("the suite: %v", a)
	}
	// A replay of the receipt asks for it once more.
	r.ended(ci.Failed)
	rec := mustDecode[ci.Receipt](t, r.call(ci.Operator, "POST", "/receipts/github/-/d-8/replay", ""))
	if len(rec.Runs) != 2 || rec.Runs[1] != "api-4" {
		t.Errorf("replayed: %+v", rec)
	}
}

func pullBody(action, extra string) string {
	return fmt.Sprintf(`{"action":%q,"number":7,"pull_request":{"number":7,"title":"x","state":%q,%s"head":{"ref":"patch","sha":%q,"repo":{"id":%d,"full_name":"acme/api"}},"base":{"ref":"main","sha":%q,"repo":{"id":%d,"full_name":"acme/api"}}},"repository":{"id":%d,"full_name":"acme/api"},"sender":{"login":"octocat"}}`,
		action, map[bool]string{true: "closed", false: "open"}[action == "closed"], extra, commitA, repoID, commitB, repoID, repoID)
}

// Ensure that what ends a pull request ends what waits for it, and says so on
// its run, and that its next opening runs again.
func TestAPullRequestEndsWhatWaits(t *testing.T) {
	r := newRig(t, func(c *ci.Config) {
		c.Projects[0].On.PullRequest = &ci.OnPullRequest{SkipDrafts: true, SkipLabels: []string{"no-ci"}}
	})
	steps := []struct {
		event, body, starts, ends, reason string
	}{
		{"pull_request", pullBody("opened", ""), "api-1", "", ""},
		{"pull_request", pullBody("closed", `"merged":true,`), "", "api-1", "pull request #7 was merged"},
		{"pull_request", pullBody("reopened", ""), "api-2", "", ""},
		{"pull_request", pullBody("converted_to_draft", `"draft":true,`), "", "api-2", "pull request #7 is a draft again"},
		{"pull_request", pullBody("synchronize", `"draft":true,`), "", "", ""},
		{"pull_request", pullBody("ready_for_review", ""), "api-3", "", ""},
		{"pull_request", strings.Replace(pullBody("labeled", `"labels":[{"name":"No-CI"}],`), `"number":7,`, `"number":7,"label":{"name":"No-CI"},`, 1), "", "api-3", `pull request #7 has the label "No-CI"`},
		{"pull_request", strings.Replace(pullBody("unlabeled", ""), `"number":7,`, `"number":7,"label":{"name":"no-ci"},`, 1), "api-4", "", ""},
		{"repository", fmt.Sprintf(`{"action":"deleted","repository":{"id":%d,"full_name":"acme/api"}}`, repoID), "", "api-4", "the repository acme/api was deleted"},
	}
	for i, step := range steps {
		a := r.deliver(step.event, fmt.Sprintf("d-%d", i), step.body)
		got := mustDecode[hookAnswer](t, a)
		started := ""
		for _, run := range got.Runs {
			started += run.ID
		}
		if a.status != 202 || started != step.starts {
			t.Fatalf("step %d: %v, want it to start %q", i, a, step.starts)
		}
		if step.ends == "" {
			continue
		}
		if run := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/"+step.ends, "")); run.State != ci.Cancelled || run.Reason != step.reason {
			t.Errorf("step %d: %s is %s, %q", i, run.ID, run.State, run.Reason)
		}
	}
}

// Ensure that a renamed repository keeps its project and its pin follows,
// whichever comes first, the event or a push.
func TestARenamedRepositoryIsFollowed(t *testing.T) {
	r := newRig(t)
	r.deliver("push", "d-1", mainPush())
	renamed := fmt.Sprintf(`{"action":"renamed","changes":{"repository":{"name":{"from":"api"}}},"repository":{"id":%d,"full_name":"acme/app"}}`, repoID)
	if got := mustDecode[hookAnswer](t, r.deliver("repository", "d-2", renamed)); got.Outcome != "ignored" || got.Reason != "the repository acme/api was renamed to acme/app, which starts nothing" {
		t.Errorf("%+v", got)
	}
	pins, err := r.store.Pins()
	if err != nil || pins["api"].FullName != "acme/app" || pins["api"].ID != repoID {
		t.Errorf("pinned to %+v, %v", pins["api"], err)
	}
	push := strings.Replace(pushBody("refs/heads/main", commitA, commitB), "acme/api", "acme/other", 1)
	if got := mustDecode[hookAnswer](t, r.deliver("push", "d-3", push)); len(got.Runs) != 1 {
		t.Errorf("%+v", got)
	}
	if pins, _ := r.store.Pins(); pins["api"].FullName != "acme/other" {
		t.Errorf("pinned to %+v", pins["api"])
	}
	first := mustDecode[ci.Run](t, r.call(ci.Viewer, "GET", "/runs/api-1", ""))
	if first.Source.Repository != "acme/api" {
		t.Errorf("the first run is of %s now", first.Source.Repository)
	}
}

// Ensure that a suspended installation ends what waits, with or without a
// repository in its payload, and that nothing comes back by itself.
func TestASuspendedInstallationEndsWhatWaits(t *testing.T) {
	r := newRig(t, withApp, func(c *ci.Config) { c.Integrations[0].Installations = []int64{5} })
	of := func(body string) string { return `{"installation":{"id":5},` + body[1:] }
	r.deliver("push", "d-1", of(mainPush()))
	running := r.mustClaimNext()
	r.deliver("push", "d-2", of(pushBody("refs/heads/main", commitA, commitB)))
	a := r.deliver("installation", "d-3", `{"action":"suspend","installation":{"id":5}}`)
	if got := mustDecode[hookAnswer](t, a); a.status != 202 || got.Outcome != "ignored" || !strings.HasPrefix(got.Reason, "installation 5 was suspended") {
		t.Fatalf("%v", a)
	}
	r.deliver("installation", "d-4", `{"action":"unsuspend","installation":{"id":5}}`)
	states := map[string]ci.State{}
	for _, run := range r.runs() {
		states[run.ID] = run.State
	}
	if len(states) != 2 || states[running.ID] != ci.Running || states["api-2"] != ci.Cancelled {
		t.Errorf("%v", states)
	}
}
