package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// house is a configuration of one App and two projects of acme/api beside one
// of another repository.
func house() *ci.Config {
	cfg, p := config()
	cfg.Integrations[0].App = &ci.App{ID: 678}
	cfg.Integrations[0].Installations = []int64{5}
	p.On = ci.On{Push: &ci.OnPush{Branches: []string{"main"}}, PullRequest: &ci.OnPullRequest{}}
	web, other := *p, *p
	web.Name, web.On = "web", ci.On{Push: &ci.OnPush{Paths: ci.Paths{Only: []string{"web/**"}}}}
	other.Name, other.Repository, other.RepositoryID = "other", "acme/other", 8
	cfg.Projects = append(cfg.Projects, web, other)
	return cfg
}

func installed(e *ci.Event) *ci.Event { e.Installation = 5; return e }

func judge(t *testing.T, cfg *ci.Config, e *ci.Event) (pipeline.Judgement, error) {
	t.Helper()
	return pipeline.Judge(cfg, &cfg.Integrations[0], e, "github/5/d", nil)
}

func TestJudge_EachProjectByItsOwnRule(t *testing.T) {
	j, err := judge(t, house(), installed(with(branchPush("main"), func(e *ci.Event) { e.Changed = &ci.Changed{Paths: []string{"a"}} })))
	want := []ci.Ruling{
		{Project: "api", Matches: true, Reason: `branch "main" matches "main" in on.push.branches`},
		{Project: "web", Reason: `the only changed file, "a", does not match on.push.paths [web/**]`},
	}
	if diff := cmp.Diff(want, j.Rulings); diff != "" || err != nil || j.Reason != "" {
		t.Errorf("%v, %q: want -, got +\n%s", err, j.Reason, diff)
	}
	if len(j.Drafts) != 1 || j.Drafts[0].Project != "api" || j.Drafts[0].Cause.Receipt != "github/5/d" || cmp.Diff([]string{"api", "web"}, j.Pin) != "" {
		t.Errorf("%+v", j)
	}
	j, err = judge(t, house(), installed(branchPush("x")))
	if err != nil || len(j.Drafts) != 1 || !j.Rulings[1].Undecided || j.Drafts[0].Job == nil {
		t.Errorf("what git has to say: %+v, %v", j, err)
	}
	j, _ = judge(t, house(), installed(tagPush("v1")))
	if want := `api: tag "v1" starts nothing: the project has no on.push.tags; web: tag "v1" starts nothing: the project has no on.push.tags`; j.Reason != want {
		t.Errorf("reason %q", j.Reason)
	}
}

// Ensure that what a filter stops becomes a run that says so, where the
// project wants it, and that no other rule does.
func TestJudge_OnSkip(t *testing.T) {
	cfg := house()
	cfg.Projects = cfg.Projects[:1]
	p := &cfg.Projects[0]
	p.OnSkip = ci.OnSkipReport
	p.On.PullRequest = &ci.OnPullRequest{Branches: []string{"main"}, SkipDrafts: true, SkipLabels: []string{"no-ci"}, Paths: ci.Paths{Ignore: []string{"docs/**"}}}
	p.On.MergeGroup = &ci.OnMergeGroup{Branches: []string{"main"}}
	p.On.Push.Tags = []string{"v*"}
	p.On.Push.Paths = ci.Paths{Only: []string{"src/**"}}
	files := func(e *ci.Event) { e.Changed = &ci.Changed{Paths: []string{"docs/a"}} }
	marked := func(e *ci.Event) { e.Message = "[skip ci]" }
	for what, tc := range map[string]struct {
		event *ci.Event
		skip  bool
	}{
		"another branch":           {branchPush("x"), true},
		"a marker":                 {with(branchPush("main"), marked), true},
		"other files":              {with(branchPush("main"), files), true},
		"another base branch":      {pullRequest("opened", "dev"), true},
		"a skip label":             {with(pullRequest("opened", "main"), func(e *ci.Event) { e.PullRequest.Labels = []string{"no-ci"} }), true},
		"a draft":                  {with(pullRequest("opened", "main"), func(e *ci.Event) { e.PullRequest.Draft = true }), true},
		"a pull request's files":   {with(pullRequest("opened", "main"), files), true},
		"another merge group":      {mergeGroup("checks_requested", "dev"), true},
		"another tag":              {tagPush("x"), false},
		"a closed pull request":    {pullRequest("closed", "main"), false},
		"a label put on":           {pullRequest("labeled", "main"), false},
		"a deleted branch":         {with(branchPush("x"), func(e *ci.Event) { e.Deleted, e.Commit = true, "" }), false},
		"a merge queue's branch":   {branchPush("gh-readonly-queue/main/pr-3"), false},
		"an event nobody asks for": {release("published"), false},
		"something with a problem": {with(branchPush("x"), func(e *ci.Event) { e.Problem = "x" }), false},
	} {
		t.Run(what, func(t *testing.T) {
			j, err := judge(t, cfg, installed(tc.event))
			if err != nil || j.Reason == "" || (len(j.Drafts) == 1) != tc.skip {
				t.Fatalf("%+v, %v", j, err)
			}
			if !tc.skip {
				return
			}
			d := j.Drafts[0]
			if !d.Skip || d.State != ci.Cancelled || d.Reason != "skipped: "+j.Reason || d.Job != nil || d.Scope != "" || d.Source.Commit != shaA {
				t.Errorf("%+v", d)
			}
			x := pipeline.Explain(tc.event, "", &j, nil)
			if x.Outcome != ci.Accepted || !x.Projects[0].Run.Skipped || !strings.Contains(x.Projects[0].Lines()[0], "skipped") {
				t.Errorf("%+v", x)
			}
			p.OnSkip = ci.OnSkipSilent
			if j, _ := judge(t, cfg, installed(tc.event)); len(j.Drafts) != 0 || j.Reason == "" {
				t.Errorf("silent: %+v", j)
			}
			p.OnSkip = ci.OnSkipReport
		})
	}
}

func TestJudge_Refuses(t *testing.T) {
	for what, tc := range map[string]struct {
		event        *ci.Event
		installation bool
		says         string
	}{
		"another installation":        {with(branchPush("main"), func(e *ci.Event) { e.Installation = 6 }), true, "the installation 6 is not one"},
		"no installation":             {branchPush("main"), true, "names no installation"},
		"an id without installation":  {with(branchPush("main"), func(e *ci.Event) { e.Repository.FullName = "" }), true, "names no installation"},
		"another repository":          {installed(with(branchPush("main"), func(e *ci.Event) { e.Repository = ci.Repository{ID: 9, FullName: "acme/x"} })), false, `"acme/x" (id 9) belongs to no project`},
		"a new one under an old name": {installed(with(branchPush("main"), func(e *ci.Event) { e.Repository.ID = 9 })), false, "is configured for id 7"},
		"another App's installation":  {&ci.Event{Kind: ci.EventInstallation, Action: "created", Installation: 9}, true, "the installation 9 is not one"},
	} {
		j, err := judge(t, house(), tc.event)
		if ci.CodeOf(err) != ci.CodeForbidden || !strings.Contains(ci.MessageOf(err), tc.says) || j.Installation != tc.installation || len(j.Drafts)+len(j.Cancels)+len(j.Pin) > 0 {
			t.Errorf("%s: %+v, %v", what, j, err)
		}
		if x := pipeline.Explain(tc.event, "", &j, err); x.Outcome != ci.Refused || x.Reason != ci.MessageOf(err) {
			t.Errorf("%s: %+v", what, x)
		}
	}
}

// Ensure that what names no repository, or only an id that nobody is bound to,
// is told apart from what names one that is not ours.
func TestJudge_Nowhere(t *testing.T) {
	for what, tc := range map[string]struct {
		event  *ci.Event
		reason string
	}{
		"an installation":   {installed(&ci.Event{Kind: ci.EventInstallation, Action: "unsuspend"}), "installation 5 was unsuspended"},
		"a ping":            {&ci.Event{Kind: ci.EventPing}, "ping: GitHub can reach docket"},
		"an unknown event":  {&ci.Event{Kind: "quux"}, "the event quux names no repository, so it starts nothing"},
		"a problem":         {&ci.Event{Kind: ci.EventPush, Problem: "the payload names no repository"}, "the payload names no repository"},
		"an id of nobody's": {installed(with(mergeGroup("destroyed", "main"), func(e *ci.Event) { e.Repository = ci.Repository{ID: 99} })), "the id 99 alone"},
	} {
		j, err := judge(t, house(), tc.event)
		if err != nil || !strings.Contains(j.Reason, tc.reason) || len(j.Rulings)+len(j.Drafts) > 0 {
			t.Errorf("%s: %+v, %v", what, j, err)
		}
	}
	j, err := judge(t, house(), installed(with(mergeGroup("destroyed", "main"), func(e *ci.Event) { e.Repository.FullName = "" })))
	if err != nil || len(j.Cancels) != 2 || len(j.Pin) != 0 || j.Cancels[0].Scope == "" {
		t.Errorf("an id that projects are bound to: %+v, %v", j, err)
	}
}

func TestJudge_Reruns(t *testing.T) {
	check := func(kind, action string, app int64, run string) *ci.Event {
		return installed(&ci.Event{
			Kind: kind, Action: action, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"}, Commit: shaA,
			Check: &ci.Check{App: app, ExternalID: run, Commit: shaA},
		})
	}
	cause := func(kind string) ci.Cause {
		return ci.Cause{Kind: ci.CauseRerun, Receipt: "github/5/d", Event: kind, Action: "rerequested", Actor: "octocat"}
	}
	for what, tc := range map[string]struct {
		event  *ci.Event
		want   []ci.Rerun
		reason string
	}{
		"a run of ours": {check(ci.EventCheckRun, "rerequested", 678, "web-12"),
			[]ci.Rerun{{Integration: "github", Projects: []string{"web"}, Commit: shaA, Run: "web-12", Cause: cause(ci.EventCheckRun)}}, ""},
		"a suite of ours": {check(ci.EventCheckSuite, "rerequested", 678, ""),
			[]ci.Rerun{{Integration: "github", Projects: []string{"api", "web"}, Commit: shaA, Cause: cause(ci.EventCheckSuite)}}, ""},
		"another App's run":       {check(ci.EventCheckRun, "rerequested", 5, "web-12"), nil, "the check belongs to the App 5, and the integration \"github\" is the App 678's"},
		"another App's suite":     {check(ci.EventCheckSuite, "rerequested", 0, ""), nil, "the check belongs to the App 0"},
		"a name that is no run's": {check(ci.EventCheckRun, "rerequested", 678, "123456"), nil, `the check's external_id "123456" is no run's id`},
		"a run without a name":    {check(ci.EventCheckRun, "rerequested", 678, ""), nil, `the check's external_id "" is no run's id`},
		"a run of elsewhere":      {check(ci.EventCheckRun, "rerequested", 678, "other-3"), nil, `the check is run other-3's, and "other" is no project of this repository`},
		"a suite that is new":     {check(ci.EventCheckSuite, "requested", 678, ""), nil, `check suite action "requested" starts nothing (rerequested does)`},
		"a button of a check":     {check(ci.EventCheckRun, "requested_action", 678, "web-12"), nil, `check run action "requested_action" starts nothing`},
		"a check with a problem":  {with(check(ci.EventCheckRun, "rerequested", 678, "web-12"), func(e *ci.Event) { e.Problem = "x" }), nil, "x"},
	} {
		t.Run(what, func(t *testing.T) {
			j, err := judge(t, house(), tc.event)
			if diff := cmp.Diff(tc.want, j.Reruns); diff != "" || err != nil || len(j.Drafts) > 0 {
				t.Errorf("%v: want -, got +\n%s", err, diff)
			}
			if !strings.Contains(j.Reason, tc.reason) || (tc.reason == "") != (j.Reason == "") {
				t.Errorf("reason %q, want %q", j.Reason, tc.reason)
			}
		})
	}
	cfg := house()
	cfg.Integrations[0].App = nil
	if j, _ := judge(t, cfg, check(ci.EventCheckRun, "rerequested", 678, "web-12")); len(j.Reruns) > 0 || !strings.Contains(j.Reason, "no GitHub App's") {
		t.Errorf("without an App: %+v", j)
	}
}

func TestExplain(t *testing.T) {
	cfg := house()
	cfg.Projects[0].Concurrency = ci.Concurrency{Group: "eu"}
	fork := installed(with(pullRequest("opened", "main"), func(e *ci.Event) { e.PullRequest.Fork, e.PullRequest.HeadRepo.ID = true, 9 }))
	j, err := judge(t, cfg, fork)
	x := pipeline.Explain(fork, "github/5/d", &j, err)
	want := []string{
		"starts a run of refs/pull/3/head at " + shaA + ", held until a person approves it: its code is a fork's",
		"its status is docket/api/pr", "its steps are test, deploy",
		"it supersedes older runs, also those that run and do not deploy, of api pull_request 9 #3", "it waits while another run of the group eu runs",
	}
	if x.Outcome != ci.Accepted || x.Receipt != "github/5/d" || x.Action != "opened" || len(x.Projects) != 2 || x.Projects[1].Run != nil {
		t.Errorf("%+v", x)
	}
	if diff := cmp.Diff(want, x.Projects[0].Lines()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	cfg.Projects[0].Pipeline, cfg.Projects[0].On.Dispatch = ".docket.yml", &ci.OnDispatch{}
	e := installed(dispatch("deploy"))
	j, err = judge(t, cfg, e)
	x = pipeline.Explain(e, "", &j, err)
	want = []string{
		"starts a run of refs/heads/main at the commit that it points to then, preparing", "its status is docket/api",
		"its steps are read from .docket.yml", "no other run takes its place, and it takes nobody's", "it waits while another run of the group eu runs",
	}
	if diff := cmp.Diff(want, x.Projects[0].Lines()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	e = installed(pullRequest("closed", "main"))
	j, err = judge(t, cfg, e)
	x = pipeline.Explain(e, "", &j, err)
	if diff := cmp.Diff([]string{"ends what events started for pull request #3 and has not begun"}, x.Projects[0].Lines()); diff != "" || x.Outcome != ci.Ignored {
		t.Errorf("%s: want -, got +\n%s", x.Outcome, diff)
	}
}

// Ensure that an installation's end ends what waits in the projects that it
// covered, and in no others.
func TestJudge_OutOfReach(t *testing.T) {
	gone := func(kind, action string, repos ...string) *ci.Event {
		return installed(&ci.Event{Kind: kind, Action: action, Repositories: repos})
	}
	for what, tc := range map[string]struct {
		event *ci.Event
		ends  []string
		why   string
	}{
		"a suspension":                 {gone(ci.EventInstallation, "suspend"), []string{"api", "web", "other"}, "installation 5 was suspended"},
		"a deletion that names some":   {gone(ci.EventInstallation, "deleted", "acme/Other"), []string{"other"}, "installation 5 was deleted"},
		"repositories taken out":       {gone(ci.EventInstallationRepos, "removed", "acme/api", "acme/x"), []string{"api", "web"}, "installation 5 does not cover the repository any more"},
		"a repository by its new name": {gone(ci.EventInstallationRepos, "removed", "acme/new"), []string{"api"}, "installation 5 does not cover the repository any more"},
		"repositories taken in":        {gone(ci.EventInstallationRepos, "added", "acme/api"), nil, ""},
		"nothing taken out":            {gone(ci.EventInstallationRepos, "removed"), nil, ""},
		"a suspension that is over":    {gone(ci.EventInstallation, "unsuspend"), nil, ""},
		"a suspension with a problem":  {with(gone(ci.EventInstallation, "suspend"), func(e *ci.Event) { e.Problem = "x" }), nil, ""},
		"a deleted repository": {installed(&ci.Event{Kind: ci.EventRepository, Action: "deleted", Repository: ci.Repository{ID: 7, FullName: "acme/api"}}),
			[]string{"api", "web"}, "the repository acme/api was deleted"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := house()
			j, err := pipeline.Judge(cfg, &cfg.Integrations[0], tc.event, "", map[string]ci.Repository{"api": {ID: 7, FullName: "acme/new"}})
			var ends []string
			for i, c := range j.Cancels {
				ends = append(ends, c.Project)
				if !c.All || c.Reason != tc.why || j.Rulings[i].Cancels != "every run of the project that has not begun" {
					t.Errorf("%+v, %+v", c, j.Rulings[i])
				}
			}
			if diff := cmp.Diff(tc.ends, ends); diff != "" || err != nil || j.Reason == "" || len(j.Drafts) > 0 {
				t.Errorf("%v, %q: want -, got +\n%s", err, j.Reason, diff)
			}
		})
	}
	cfg := house()
	cfg.Integrations[0].Installations = []int64{5, 6}
	if j, _ := judge(t, cfg, gone(ci.EventInstallation, "suspend")); len(j.Cancels) > 0 {
		t.Errorf("one of two installations, and no names: %+v", j.Cancels)
	}
}
