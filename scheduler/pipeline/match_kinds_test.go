package pipeline_test

import (
	"testing"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

type matchCase struct {
	on     ci.On
	event  *ci.Event
	ok     bool
	reason string
}

func mustMatch(t *testing.T, cases map[string]matchCase) {
	t.Helper()
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			ok, reason := pipeline.Match(&ci.Project{Name: "api", On: tc.on}, tc.event)
			if ok != tc.ok || reason != tc.reason {
				t.Errorf("Match = %v, %s\nwant    %v, %s", ok, reason, tc.ok, tc.reason)
			}
		})
	}
}

func TestMatch_PullRequestActions(t *testing.T) {
	lax := ci.On{PullRequest: &ci.OnPullRequest{}}
	strict := ci.On{PullRequest: &ci.OnPullRequest{Branches: []string{"main"}, SkipDrafts: true, SkipLabels: []string{"no-ci", "wip"}}}
	pr := func(action string, change func(pr *ci.PullRequest)) *ci.Event {
		return with(pullRequest(action, "main"), func(e *ci.Event) { change(e.PullRequest) })
	}
	as := func(*ci.PullRequest) {}
	draft := func(pr *ci.PullRequest) { pr.Draft = true }
	closed := func(pr *ci.PullRequest) { pr.Closed, pr.Rebased, pr.Label = true, true, "no-ci" }
	const yes = `base branch "main" matches "main" in on.pull_request.branches`
	const wide = `pull request into "main" matches on.pull_request, which takes every base branch`
	mustMatch(t, map[string]matchCase{
		"ready for review where drafts wait":   {strict, pr("ready_for_review", as), true, yes},
		"ready for review where drafts run":    {lax, pr("ready_for_review", as), false, "ready for review starts nothing: drafts run too, so its commits were built already"},
		"a draft where drafts wait":            {strict, pr("opened", draft), false, "a draft waits until it is ready for review: on.pull_request.drafts is false"},
		"new commits of a draft":               {strict, pr("synchronize", draft), false, "a draft waits until it is ready for review: on.pull_request.drafts is false"},
		"a draft again where drafts wait":      {strict, pr("converted_to_draft", draft), false, "a pull request that became a draft starts nothing and ends what waits for it: on.pull_request.drafts is false"},
		"a draft again where drafts run":       {lax, pr("converted_to_draft", draft), false, `pull request action "converted_to_draft" starts nothing (opened, synchronize and reopened do)`},
		"an edit of the title":                 {lax, pr("edited", as), false, "an edit of a pull request starts something only where it changes the base branch"},
		"an edit of the base branch":           {lax, pr("edited", func(pr *ci.PullRequest) { pr.Rebased = true }), true, wide},
		"an edit to a base branch that is out": {strict, with(pr("edited", func(pr *ci.PullRequest) { pr.Rebased, pr.Base = true, "dev" }), func(*ci.Event) {}), false, `base branch "dev" matches none of on.pull_request.branches [main]`},
		"an edit of a closed one":              {lax, pr("edited", closed), false, `pull request action "edited" starts nothing on a closed pull request`},
		"ready for review and closed":          {strict, pr("ready_for_review", closed), false, `pull request action "ready_for_review" starts nothing on a closed pull request`},
		"a label taken from a closed one":      {strict, pr("unlabeled", closed), false, `pull request action "unlabeled" starts nothing on a closed pull request`},
		"a skip label":                         {strict, pr("opened", func(pr *ci.PullRequest) { pr.Labels = []string{"bug", "No-CI"} }), false, `the label "No-CI" is one of on.pull_request.skip.labels [no-ci wip]`},
		"another label":                        {strict, pr("opened", func(pr *ci.PullRequest) { pr.Labels = []string{"bug"} }), true, yes},
		"a skip label where none is one":       {lax, pr("opened", func(pr *ci.PullRequest) { pr.Labels = []string{"no-ci"} }), true, wide},
		"a skip label put on":                  {strict, pr("labeled", func(pr *ci.PullRequest) { pr.Label = "WIP" }), false, `the label "WIP" is one of on.pull_request.skip.labels [no-ci wip], which ends what waits`},
		"another label put on":                 {strict, pr("labeled", func(pr *ci.PullRequest) { pr.Label = "bug" }), false, `pull request action "labeled" starts nothing (opened, synchronize and reopened do)`},
		"a skip label among unknown changes":   {strict, pr("labeled", func(pr *ci.PullRequest) { pr.Labels = []string{"bug", "WIP"} }), false, `the label "WIP" is one of on.pull_request.skip.labels [no-ci wip], which ends what waits`},
		"no skip label among unknown changes":  {strict, pr("labeled", func(pr *ci.PullRequest) { pr.Labels = []string{"bug"} }), false, `pull request action "labeled" starts nothing (opened, synchronize and reopened do)`},
		"unknown labels taken away":            {strict, pr("unlabeled", func(pr *ci.PullRequest) {}), false, "labels were taken away, which starts nothing where the provider does not say which"},
		"the last skip label taken away":       {strict, pr("unlabeled", func(pr *ci.PullRequest) { pr.Label, pr.Labels = "no-ci", []string{"bug"} }), true, yes},
		"one of two skip labels taken away":    {strict, pr("unlabeled", func(pr *ci.PullRequest) { pr.Label, pr.Labels = "no-ci", []string{"WIP"} }), false, `the label "WIP" is one of on.pull_request.skip.labels [no-ci wip]`},
		"the last skip label of a draft":       {strict, pr("unlabeled", func(pr *ci.PullRequest) { pr.Label, pr.Draft = "wip", true }), false, "a draft waits until it is ready for review: on.pull_request.drafts is false"},
		"another label taken away":             {strict, pr("unlabeled", func(pr *ci.PullRequest) { pr.Label = "bug" }), false, `a label taken away starts something only where it is one of on.pull_request.skip.labels [no-ci wip], and "bug" is not`},
		"a merged one":                         {lax, pr("closed", func(pr *ci.PullRequest) { pr.Merged, pr.Closed = true, true }), false, "pull request #3 was merged, which starts nothing and ends what waits for it"},
		"an action of tomorrow":                {lax, pr("enqueued", as), false, `pull request action "enqueued" starts nothing (opened, synchronize and reopened do)`},
		"no pull request in it":                {lax, &ci.Event{Kind: ci.EventPullRequest, Action: "opened"}, false, "the event has no pull request"},
	})
}

func TestMatch_OtherKinds(t *testing.T) {
	all := ci.On{Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{}, MergeGroup: &ci.OnMergeGroup{}, Release: &ci.OnRelease{}, Dispatch: &ci.OnDispatch{}}
	into := ci.On{MergeGroup: &ci.OnMergeGroup{Branches: []string{"main", "!main"}}}
	types := ci.On{Release: &ci.OnRelease{Types: []string{"created", "released"}}, Dispatch: &ci.OnDispatch{Types: []string{"deploy-*"}}}
	repo := func(action string, change func(e *ci.Event)) *ci.Event {
		return with(&ci.Event{Kind: ci.EventRepository, Action: action, Repository: ci.Repository{ID: 7, FullName: "acme/api"}}, change)
	}
	installed := func(kind, action string, repos ...string) *ci.Event {
		return &ci.Event{Kind: kind, Action: action, Installation: 5, Repositories: repos}
	}
	mustMatch(t, map[string]matchCase{
		"a merge group":                     {all, mergeGroup("checks_requested", "main"), true, `merge group into "main" matches on.merge_group, which takes every base branch`},
		"a merge group into a named branch": {ci.On{MergeGroup: &ci.OnMergeGroup{Branches: []string{"main"}}}, mergeGroup("checks_requested", "main"), true, `base branch "main" matches "main" in on.merge_group.branches`},
		"a merge group into another":        {into, mergeGroup("checks_requested", "dev"), false, `base branch "dev" matches none of on.merge_group.branches [main !main]`},
		"a merge group that is excluded":    {into, mergeGroup("checks_requested", "main"), false, `base branch "main" is excluded by "!main" in on.merge_group.branches [main !main]`},
		"a destroyed merge group":           {all, mergeGroup("destroyed", "main"), false, "the merge group was destroyed, which starts nothing and ends what waits for it"},
		"a merge group of tomorrow":         {all, mergeGroup("x", "main"), false, `merge group action "x" starts nothing (checks_requested does)`},
		"no merge groups asked for":         {ci.On{Push: &ci.OnPush{}}, mergeGroup("checks_requested", "main"), false, "merge groups start nothing: the project has no on.merge_group"},
		"a push to a merge queue": {all, branchPush("gh-readonly-queue/main/pr-3"), false,
			`branch "gh-readonly-queue/main/pr-3" is a merge queue's: on.merge_group starts its runs, a push never does`},
		"a push to a merge queue that is named": {ci.On{Push: &ci.OnPush{Branches: []string{"gh-readonly-queue/**"}}}, branchPush("gh-readonly-queue/main/pr-3"), false,
			`branch "gh-readonly-queue/main/pr-3" is a merge queue's: on.merge_group starts its runs, a push never does`},
		"a push to a branch that is called so": {all, branchPush("gh-readonly-queue"), true, `branch "gh-readonly-queue" matches on.push, which takes every branch`},

		"a release":                 {all, release("published"), true, `release action "published" is one of on.release.types [published]`},
		"a release that is created": {all, release("created"), false, `release action "created" is none of on.release.types [published]`},
		"created, where asked for":  {types, release("created"), true, `release action "created" is one of on.release.types [created released]`},
		"a draft of a release":      {types, with(release("created"), func(e *ci.Event) { e.Draft = true }), false, "the release is a draft, whose tag need not exist yet"},
		"a release without a tag":   {types, with(release("created"), func(e *ci.Event) { e.Tag, e.Ref, e.Resolve = "", "", false }), false, "the release is a draft, whose tag need not exist yet"},
		"no releases asked for":     {ci.On{}, release("published"), false, "releases start nothing: the project has no on.release"},

		"a dispatch":                {all, dispatch("anything"), true, `type "anything" matches on.dispatch, which takes every type`},
		"a dispatch of a type":      {types, dispatch("deploy-eu"), true, `type "deploy-eu" matches "deploy-*" in on.dispatch.types`},
		"a dispatch of another":     {types, dispatch("deploy/eu"), false, `type "deploy/eu" matches none of on.dispatch.types [deploy-*]`},
		"no dispatches asked for":   {ci.On{}, dispatch("deploy"), false, "dispatches start nothing: the project has no on.dispatch"},
		"GitHub's own workflow run": {all, &ci.Event{Kind: "workflow_dispatch", Repository: ci.Repository{ID: 7}}, false, "workflow_dispatch asks GitHub Actions for a run; ask docket through its API, its page or repository_dispatch"},

		"a new branch": {all, &ci.Event{Kind: ci.EventCreate, Ref: "refs/heads/x", Branch: "x"}, false, "create starts nothing: the push of refs/heads/x does"},
		"a deletion":   {all, &ci.Event{Kind: ci.EventDelete, Ref: "refs/heads/x", Branch: "x"}, false, "delete starts nothing and ends nothing: the push that deleted refs/heads/x does"},
		"a deletion that counts": {all, &ci.Event{Kind: ci.EventDelete, Ref: "refs/heads/x", Branch: "x", Deleted: true}, false,
			"refs/heads/x was deleted"},

		"a renamed repository":    {all, repo("renamed", func(e *ci.Event) { e.RenamedFrom = "acme/old" }), false, "the repository acme/old was renamed to acme/api, which starts nothing"},
		"one that was given away": {all, repo("transferred", func(e *ci.Event) { e.RenamedFrom = "bob/api" }), false, "the repository bob/api was transferred and is acme/api now, which starts nothing"},
		"an edited one":           {all, repo("edited", func(e *ci.Event) { e.Edited = []string{"default_branch from master to main", "topics"} }), false, "the repository acme/api was edited (default_branch from master to main, topics), which starts nothing"},
		"an archived one":         {all, repo("archived", func(*ci.Event) {}), false, `repository action "archived" starts nothing`},

		"a check that ended": {all, &ci.Event{Kind: ci.EventCheckRun, Action: "completed"}, false, `check run action "completed" starts nothing (rerequested does)`},
		"a new installation": {all, installed(ci.EventInstallation, "created", "a/b", "c/d"), false, "installation 5 was created: it covers a/b, c/d"},
		"a suspended installation": {all, installed(ci.EventInstallation, "suspend"), false,
			"installation 5 was suspended: GitHub sends nothing of its repositories and takes no status for them until it is unsuspended"},
		"repositories taken out": {all, installed(ci.EventInstallationRepos, "removed", "a/b"), false, "installation 5 covers fewer repositories: a/b were taken out"},
		"many repositories more": {all, installed(ci.EventInstallationRepos, "added", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"), false,
			"installation 5 covers more repositories: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"},
	})
}
