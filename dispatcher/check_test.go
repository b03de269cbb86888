package dispatcher_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"docket/dispatcher"
	"docket/dispatcher/forge/forgetest"
	"docket/store"
	"docket/store/ci"
)

func one(t *testing.T, list []forgetest.CheckRun) forgetest.CheckRun {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d check runs, want 1: %+v", len(list), list)
	}
	return list[0]
}

func code(n int) *int { return &n }

// Ensure that a run is one check run from its first word to its last.
func TestARunIsOneCheckRun(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	h.mustRun(h.options())
	run := h.mustStart(nil)
	h.mustSettle(run.ID)
	c := one(t, hub.CheckRuns(run.Source.Commit))
	if c.Name != "docket/api" || c.ExternalID != run.ID || c.Status != "queued" || c.DetailsURL != runURL(run.ID) || c.Title != run.ID+" is queued" {
		t.Errorf("%+v", c)
	}
	h.clock.add(time.Second)
	run = h.mustClaim()
	h.mustSettle(run.ID)
	if c = one(t, hub.CheckRuns(run.Source.Commit)); c.Status != "in_progress" || !c.StartedAt.Equal(noon.Add(time.Second)) {
		t.Errorf("%+v", c)
	}
	h.clock.add(3 * time.Second)
	h.mustFinish(run, store.Result{State: ci.Failed, Steps: []ci.StepResult{
		{Name: "te|st <b>@octocat [x](http://evil.example.org)", State: ci.StepFailed, ExitCode: code(3), StartedAt: ci.At(noon), FinishedAt: ci.At(noon.Add(1500 * time.Millisecond))},
		{Name: "deploy", State: ci.StepSkipped},
	}})
	h.mustSettle(run.ID)
	c = one(t, hub.CheckRuns(run.Source.Commit))
	if want := []string{"queued", "in_progress", "completed/failure"}; !slices.Equal(c.History, want) || !c.CompletedAt.Equal(noon.Add(4*time.Second)) {
		t.Errorf("%v, completed at %s", c.History, c.CompletedAt)
	}
	want := run.ID[:3] + `\-1 failed

| step | result | time |
| --- | --- | --- |
| te\|st &lt;b\>&#64;octocat \[x\]\(http\://evil\.example\.org\) | failed, exit code 3 | 1.5s |
| deploy | skipped |  |
`
	if c.Summary != want {
		t.Errorf("%s\nwant\n%s", c.Summary, want)
	}
	if n := len(hub.Calls("GET ")); n != 0 {
		t.Errorf("%d searches although no answer was lost", n)
	}
}

// Ensure that each way to end has its conclusion.
func TestEachEndHasItsConclusion(t *testing.T) {
	for name, c := range map[string]struct {
		res  store.Result
		want string
	}{
		"success":     {store.Result{State: ci.Succeeded}, "success"},
		"failure":     {store.Result{State: ci.Failed}, "failure"},
		"timed out":   {store.Result{State: ci.Failed, Reason: ci.ReasonTimedOut}, "timed_out"},
		"cancelled":   {store.Result{State: ci.Cancelled, Reason: "by ops"}, "cancelled"},
		"superseded":  {store.Result{State: ci.Superseded, Reason: "superseded by api-2"}, "cancelled"},
		"interrupted": {store.Result{State: ci.Interrupted, Reason: "the server stopped"}, "failure"},
	} {
		t.Run(name, func(t *testing.T) {
			h, hub := mustApp(t, ci.ReportChecks)
			h.mustStart(nil)
			run := h.mustClaim()
			h.mustFinish(run, c.res)
			h.mustRun(h.options())
			h.mustSettle(run.ID)
			if got := one(t, hub.CheckRuns(run.Source.Commit)); got.Conclusion != c.want || !strings.Contains(got.Title+strings.ReplaceAll(got.Summary, `\`, ""), c.res.Reason) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Ensure that what a filter keeps from running is a check run that says so,
// and lets a merge go on.
func TestASkippedRunIsASkippedCheckRun(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	h.mustRun(h.options())
	run := h.mustStart(func(d *ci.Draft) { d.State, d.Skip, d.Reason = ci.Cancelled, true, "skipped: no file of interest" })
	h.mustSettle(run.ID)
	if c := one(t, hub.CheckRuns(run.Source.Commit)); c.Conclusion != "skipped" || !strings.Contains(c.Title, "no file of interest") {
		t.Errorf("%+v", c)
	}
}

// Ensure that a lost answer makes no twin, whichever call it was.
func TestALostAnswerMakesNoSecondCheckRun(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	hub.Script("POST /repos/acme/api/check-runs", forgetest.Answer{Lose: true})
	hub.Script("PATCH /repos/acme/api/check-runs", forgetest.Answer{Lose: true})
	h.mustRun(h.options())
	run := h.mustStart(nil)
	e := h.mustWait(h.mustFind(run, ci.OutboxGitHubCheck).ID, 1)
	h.clock.add(10 * time.Second)
	h.mustWait(e.ID, 2) // the first was found, and the answer to the second call is lost, too
	h.clock.add(20 * time.Second)
	h.mustState(e.ID, ci.OutboxSent)
	one(t, hub.CheckRuns(run.Source.Commit))
	run = h.mustClaim()
	h.mustSettle(run.ID)
	h.mustFinish(run, store.Result{State: ci.Succeeded})
	h.mustSettle(run.ID)
	if c := one(t, hub.CheckRuns(run.Source.Commit)); c.Conclusion != "success" {
		t.Errorf("%+v", c)
	}
}

// Ensure that a run whose first words were never heard ends as one check run.
func TestARunThatEndedUnheardIsOneCheckRun(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	hub.Script("POST /repos/acme/api/check-runs", forgetest.Answer{Lose: true})
	_, stop := h.mustRun(h.options())
	run := h.mustStart(nil)
	e := h.mustWait(h.mustFind(run, ci.OutboxGitHubCheck).ID, 1)
	stop()
	if _, _, err := h.store.DiscardEntry(t.Context(), store.EntryAction{ID: e.ID, By: ci.By{Kind: ci.ByToken, Name: "ops"}}); err != nil {
		t.Fatal(err)
	}
	h.mustFinish(h.mustClaim(), store.Result{State: ci.Succeeded})
	h.mustRun(h.options())
	h.mustSettle(run.ID)
	if c := one(t, hub.CheckRuns(run.Source.Commit)); c.Conclusion != "success" {
		t.Errorf("%+v", c)
	}
}

// Ensure that a run that waited for approval goes on in a check run that can.
func TestAnApprovedRunGetsACheckRunThatGoesOn(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	h.mustRun(h.options())
	run := h.mustStart(func(d *ci.Draft) { d.State, d.Fork = ci.Held, true })
	h.mustSettle(run.ID)
	if c := one(t, hub.CheckRuns(run.Source.Commit)); c.Conclusion != "action_required" {
		t.Fatalf("%+v", c)
	}
	if _, _, err := h.store.Approve(t.Context(), store.Action{Run: run.ID, Key: "a", By: ci.By{Kind: ci.ByToken, Name: "ops"}}); err != nil {
		t.Fatal(err)
	}
	hub.Script("POST /repos/acme/api/check-runs", forgetest.Answer{Lose: true})
	h.eventually("the approval is not told", func() bool {
		h.clock.add(10 * time.Second)
		return !slices.ContainsFunc(h.entries(run.ID), func(e ci.OutboxEntry) bool { return e.State == ci.OutboxPending })
	})
	h.mustFinish(h.mustClaim(), store.Result{State: ci.Succeeded})
	h.mustSettle(run.ID)
	list := hub.CheckRuns(run.Source.Commit)
	if len(list) != 2 || list[1].Name != list[0].Name || list[1].Conclusion != "success" {
		t.Errorf("%+v", list)
	}
}

// Ensure that a rerun is a check run of its own, the newest, and that the one
// before is not left running for ever.
func TestARerunIsANewCheckRun(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	h.mustRun(h.options())
	same := func(d *ci.Draft) { d.Source.Commit = commitOf(77) }
	first := h.mustStart(same)
	h.mustSettle(first.ID)
	first = h.mustClaim()
	h.mustSettle(first.ID)
	second := h.mustStart(same)
	h.mustSettle(second.ID)
	h.mustFinish(first, store.Result{State: ci.Failed})
	h.mustSettle(first.ID)
	h.mustFinish(h.mustClaim(), store.Result{State: ci.Succeeded})
	h.mustSettle(second.ID)
	list := hub.CheckRuns(commitOf(77))
	if len(list) != 2 || list[0].ExternalID != first.ID || list[0].Conclusion != "failure" || list[1].ExternalID != second.ID || list[1].Conclusion != "success" {
		t.Errorf("%+v", list)
	}
}

// Ensure that an older run that never had a check run does not make one above
// a newer run's.
func TestAnOlderRunMakesNoCheckRunLate(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	same := func(d *ci.Draft) { d.Source.Commit = commitOf(77) }
	first, second := h.mustStart(same), h.mustStart(same)
	h.mustFinish(h.mustClaim(), store.Result{State: ci.Failed})
	h.mustRun(h.options())
	h.mustSettle(second.ID)
	h.mustSettle(first.ID)
	if c := one(t, hub.CheckRuns(commitOf(77))); c.ExternalID != second.ID {
		t.Errorf("%+v", c)
	}
}

// Ensure that a mistake in the pipeline file is shown at its line.
func TestAMistakeInThePipelineFileIsAnnotated(t *testing.T) {
	h, hub := mustApp(t, ci.ReportChecks)
	h.config.Projects[0].Pipeline = ".docket.yml"
	h.mustStart(nil)
	run := h.mustClaim()
	h.mustFinish(run, store.Result{State: ci.Failed, Reason: "the pipeline file cannot be used: .docket.yml:3:5: unknown key \"stepz\"; use steps\n  3 | stepz:\n.docket.yml:9:1: a step needs a run\n.docket.yml:x:1: no line"})
	h.mustRun(h.options())
	h.mustSettle(run.ID)
	c := one(t, hub.CheckRuns(run.Source.Commit))
	if len(c.Annotations) != 2 {
		t.Fatalf("%+v", c.Annotations)
	}
	if want := "\n    .docket.yml:9:1: a step needs a run\n"; !strings.Contains(c.Summary, want) {
		t.Errorf("%s", c.Summary)
	}
	a := c.Annotations[0]
	if a.GetPath() != ".docket.yml" || a.GetStartLine() != 3 || a.GetEndLine() != 3 || a.GetAnnotationLevel() != "failure" || a.GetMessage() != `unknown key "stepz"; use steps` {
		t.Errorf("%+v", a)
	}
}

func TestOnlyAnAppWritesChecks(t *testing.T) {
	h, _ := mustApp(t, ci.ReportChecks)
	h.config.Integrations[0].App, h.config.Integrations[0].Token = nil, ci.NewSecret("t", "ghp_x")
	h.mustRun(h.options())
	e := h.mustState(h.mustFind(h.mustStart(nil), ci.OutboxGitHubCheck).ID, ci.OutboxDead)
	if !strings.Contains(e.LastError, "only a GitHub App") {
		t.Errorf("%q", e.LastError)
	}
}

// Ensure that however long a text is, GitHub takes the summary.
func TestASummaryIsBounded(t *testing.T) {
	run := ci.Run{ID: "api-1", State: ci.Failed, Reason: strings.Repeat("<&@", 100_000)}
	for range 5000 {
		run.Steps = append(run.Steps, ci.StepResult{Name: strings.Repeat("@", 500), State: ci.StepSkipped})
	}
	s := dispatcher.CheckSummary(ci.StatusPayload{Description: strings.Repeat("&", 10_000), RunState: ci.Failed}, run)
	if len(s) > 65535*2 || len([]rune(s)) > 65535 || !strings.Contains(s, "and 4900 more steps") {
		t.Errorf("%d characters", len([]rune(s)))
	}
}
