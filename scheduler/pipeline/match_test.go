package pipeline_test

import (
	"testing"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

const (
	shaA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	shaB = "3f150d39b92dd50cdd0248f5edea5767c2172584"
)

func branchPush(branch string) *ci.Event {
	return &ci.Event{
		Kind: ci.EventPush, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
		Ref: "refs/heads/" + branch, Branch: branch, Commit: shaA, Before: shaB, Message: "Add x",
	}
}

func tagPush(tag string) *ci.Event {
	e := branchPush("")
	e.Ref, e.Branch, e.Tag = "refs/tags/"+tag, "", tag
	return e
}

func pullRequest(action, base string) *ci.Event {
	return &ci.Event{
		Kind: ci.EventPullRequest, Action: action, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
		Ref: "refs/pull/3/head", Branch: "topic", Commit: shaA, Message: "Add x",
		PullRequest: &ci.PullRequest{Number: 3, Title: "Add x", Base: base, Head: "topic", HeadRepo: ci.Repository{ID: 7, FullName: "acme/api"}},
	}
}

func with(e *ci.Event, change func(e *ci.Event)) *ci.Event {
	change(e)
	return e
}

func mergeGroup(action, base string) *ci.Event {
	return &ci.Event{
		Kind: ci.EventMergeGroup, Action: action, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
		Ref: "refs/heads/gh-readonly-queue/" + base + "/pr-3", Branch: "gh-readonly-queue/" + base + "/pr-3", Base: base, Commit: shaA, Message: "Merge #3",
	}
}

func release(action string) *ci.Event {
	return &ci.Event{
		Kind: ci.EventRelease, Action: action, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
		Ref: "refs/tags/v1", Tag: "v1", Resolve: true, Message: "One",
	}
}

func dispatch(action string) *ci.Event {
	return &ci.Event{
		Kind: ci.EventRepositoryDispatch, Action: action, Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
		Ref: "refs/heads/main", Branch: "main", Resolve: true,
	}
}

func TestMatch(t *testing.T) {
	branches := func(p ...string) ci.On { return ci.On{Push: &ci.OnPush{Branches: p}} }
	tags := func(p ...string) ci.On { return ci.On{Push: &ci.OnPush{Tags: p}} }
	into := func(p ...string) ci.On { return ci.On{PullRequest: &ci.OnPullRequest{Branches: p}} }
	every := ci.On{Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{}}
	for what, tc := range map[string]struct {
		on     ci.On
		event  *ci.Event
		ok     bool
		reason string
	}{
		"a named branch":                 {branches("main", "release/**"), branchPush("main"), true, `branch "main" matches "main" in on.push.branches`},
		"a branch under a glob":          {branches("main", "release/**"), branchPush("release/1/x"), true, `branch "release/1/x" matches "release/**" in on.push.branches`},
		"another branch":                 {branches("main", "release/**"), branchPush("wip"), false, `branch "wip" matches none of on.push.branches [main release/**]`},
		"another case of letters":        {branches("main"), branchPush("Main"), false, `branch "Main" matches none of on.push.branches [main]`},
		"a star stops at a slash":        {branches("f/*"), branchPush("f/a/b"), false, `branch "f/a/b" matches none of on.push.branches [f/*]`},
		"a pattern is for the whole":     {branches("main"), branchPush("main2"), false, `branch "main2" matches none of on.push.branches [main]`},
		"every branch by a glob":         {branches("**"), branchPush("a/b/.c"), true, `branch "a/b/.c" matches "**" in on.push.branches`},
		"an excluded branch":             {branches("**", "!wip/**"), branchPush("wip/a"), false, `branch "wip/a" is excluded by "!wip/**" in on.push.branches [** !wip/**]`},
		"excluded, then taken in again":  {branches("**", "!wip/**", "wip/ci"), branchPush("wip/ci"), true, `branch "wip/ci" matches "wip/ci" in on.push.branches`},
		"excluded before a match":        {branches("!main", "main"), branchPush("main"), true, `branch "main" matches "main" in on.push.branches`},
		"exclusions alone take nothing":  {branches("!wip"), branchPush("main"), false, `branch "main" matches none of on.push.branches [!wip]`},
		"an exclusion alone is no match": {branches("!wip"), branchPush("wip"), false, `branch "wip" matches none of on.push.branches [!wip]`},
		"a broken pattern never matches": {branches("[", "ma[in"), branchPush("main"), false, `branch "main" matches none of on.push.branches [[ ma[in]`},
		"an empty list takes none":       {ci.On{Push: &ci.OnPush{Branches: []string{}}}, branchPush("main"), false, `branch "main" matches none of on.push.branches []`},
		"no filter takes every branch":   {every, branchPush("x"), true, `branch "x" matches on.push, which takes every branch`},
		"no filter takes no tag":         {every, tagPush("v1"), false, `tag "v1" starts nothing: the project has no on.push.tags`},
		"tags alone take no branch":      {tags("v*"), branchPush("v1"), false, `branch "v1" starts nothing: on.push names tags alone`},
		"branches alone take no tag":     {branches("**"), tagPush("v1"), false, `tag "v1" starts nothing: the project has no on.push.tags`},
		"a tag":                          {tags("v*"), tagPush("v1"), true, `tag "v1" matches "v*" in on.push.tags`},
		"another tag":                    {tags("v*"), tagPush("x1"), false, `tag "x1" matches none of on.push.tags [v*]`},
		"no push at all":                 {ci.On{}, branchPush("main"), false, "pushes start nothing: the project has no on.push"},
		"a ref of another kind": {every, with(branchPush(""), func(e *ci.Event) { e.Ref, e.Branch = "refs/notes/x", "" }), false,
			`ref "refs/notes/x" is neither a branch nor a tag`},
		"a deleted branch": {every, with(branchPush("x"), func(e *ci.Event) { e.Deleted, e.Commit = true, "" }), false, "refs/heads/x was deleted"},
		"a deleted tag":    {tags("*"), with(tagPush("v1"), func(e *ci.Event) { e.Deleted, e.Commit = true, "" }), false, "refs/tags/v1 was deleted"},

		"skip ci in the first line":          {every, with(branchPush("x"), func(e *ci.Event) { e.Message = "docs [skip ci]" }), false, "[skip ci] in the first line of the head commit"},
		"ci skip in capitals":                {every, with(branchPush("x"), func(e *ci.Event) { e.Message = "[CI SKIP] docs" }), false, "[ci skip] in the first line of the head commit"},
		"skip ci further down":               {every, with(branchPush("x"), func(e *ci.Event) { e.Message = "docs\n\n[skip ci]" }), true, `branch "x" matches on.push, which takes every branch`},
		"skip ci in the branch's name":       {every, branchPush("[skip ci]"), true, `branch "[skip ci]" matches on.push, which takes every branch`},
		"skip ci on a tag's commit":          {tags("v*"), with(tagPush("v1"), func(e *ci.Event) { e.Message = "[skip ci]" }), true, `tag "v1" matches "v*" in on.push.tags`},
		"skip ci in a pull request":          {every, with(pullRequest("opened", "main"), func(e *ci.Event) { e.Message = "[skip ci]" }), true, `pull request into "main" matches on.pull_request, which takes every base branch`},
		"skip ci behind a filter that stops": {branches("main"), with(branchPush("x"), func(e *ci.Event) { e.Message = "[skip ci]" }), false, `branch "x" matches none of on.push.branches [main]`},

		"a pull request":             {into("main"), pullRequest("opened", "main"), true, `base branch "main" matches "main" in on.pull_request.branches`},
		"new commits":                {into("main"), pullRequest("synchronize", "main"), true, `base branch "main" matches "main" in on.pull_request.branches`},
		"a reopened one":             {every, pullRequest("reopened", "main"), true, `pull request into "main" matches on.pull_request, which takes every base branch`},
		"into another branch":        {into("main"), pullRequest("opened", "dev"), false, `base branch "dev" matches none of on.pull_request.branches [main]`},
		"a label":                    {every, pullRequest("labeled", "main"), false, `pull request action "labeled" starts nothing (opened, synchronize and reopened do)`},
		"a closed one":               {every, pullRequest("closed", "main"), false, `pull request #3 was closed, which starts nothing and ends what waits for it`},
		"no pull requests asked for": {branches("**"), pullRequest("opened", "main"), false, "pull requests start nothing: the project has no on.pull_request"},
		"a draft runs, and it says so": {every, with(pullRequest("opened", "main"), func(e *ci.Event) { e.PullRequest.Draft = true }), true,
			`pull request into "main" matches on.pull_request, which takes every base branch (a draft: drafts run too)`},

		"a ping":    {every, &ci.Event{Kind: "ping"}, false, "ping: GitHub can reach docket"},
		"a star":    {every, &ci.Event{Kind: "star", Repository: ci.Repository{ID: 7}}, false, `event "star" starts nothing`},
		"a problem": {every, with(branchPush("x"), func(e *ci.Event) { e.Problem = "the payload names no ref" }), false, "the payload names no ref"},
	} {
		t.Run(what, func(t *testing.T) {
			ok, reason := pipeline.Match(&ci.Project{Name: "api", On: tc.on}, tc.event)
			if ok != tc.ok || reason != tc.reason {
				t.Errorf("Match = %v, %s\nwant    %v, %s", ok, reason, tc.ok, tc.reason)
			}
		})
	}
}

func TestScope(t *testing.T) {
	fork := with(pullRequest("opened", "main"), func(e *ci.Event) { e.PullRequest.HeadRepo.ID = 9 })
	gone := func(e *ci.Event) { e.Deleted = true }
	for what, tc := range map[string]struct {
		event *ci.Event
		scope string
	}{
		"a branch":              {branchPush("a/b"), "api push 7 refs/heads/a/b"},
		"a deleted branch":      {with(branchPush("a/b"), gone), ""},
		"a pull request":        {pullRequest("opened", "main"), "api pull_request 7 #3"},
		"a fork's pull request": {fork, "api pull_request 9 #3"},
		"a merge group":         {mergeGroup("checks_requested", "main"), "api merge_group 7 " + shaA + " refs/heads/gh-readonly-queue/main/pr-3"},
		"a tag":                 {tagPush("v1"), ""},
		"a deleted tag":         {with(tagPush("v1"), gone), ""},
		"a release":             {release("published"), ""},
		"a dispatch":            {dispatch("deploy"), ""},
		"a ref of another kind": {&ci.Event{Kind: "push", Ref: "refs/notes/x"}, ""},
		"another event":         {&ci.Event{Kind: "star", Branch: "main"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			if got := pipeline.Scope("api", tc.event); got != tc.scope {
				t.Errorf("Scope = %q, want %q", got, tc.scope)
			}
		})
	}
}

func TestCancels(t *testing.T) {
	gone := func(e *ci.Event) { e.Deleted = true }
	asDelete := func(e *ci.Event) { e.Kind = ci.EventDelete }
	branch := ci.Cancel{Project: "api", Scope: "api push 7 refs/heads/a/b", Ref: "refs/heads/a/b", Deleted: true, Reason: "the branch a/b was deleted"}
	pull := func(reason string) ci.Cancel {
		return ci.Cancel{Project: "api", Ref: "refs/pull/3/head", PullRequest: 3, Reason: reason}
	}
	strict := ci.On{PullRequest: &ci.OnPullRequest{SkipDrafts: true, SkipLabels: []string{"no-ci"}}}
	lax := ci.On{PullRequest: &ci.OnPullRequest{}}
	label := func(action, name string) *ci.Event {
		return with(pullRequest(action, "main"), func(e *ci.Event) { e.PullRequest.Label = name })
	}
	for what, tc := range map[string]struct {
		on    ci.On
		event *ci.Event
		want  ci.Cancel // zero: nothing
	}{
		"a deleted branch": {lax, with(branchPush("a/b"), gone), branch},
		"a deleted branch, of a provider without pushes of it": {lax, with(with(branchPush("a/b"), gone), asDelete), branch},
		"GitHub's delete":              {lax, with(branchPush("a/b"), asDelete), ci.Cancel{}},
		"a deletion that has problems": {lax, with(branchPush("a"), func(e *ci.Event) { e.Deleted, e.Problem = true, "x" }), ci.Cancel{}},
		"a deleted tag":                {lax, with(tagPush("v1"), gone), ci.Cancel{}},
		"a push":                       {lax, branchPush("a/b"), ci.Cancel{}},
		"a closed pull request":        {lax, pullRequest("closed", "main"), pull("pull request #3 was closed")},
		"a closed one that nobody asked for any more": {ci.On{}, pullRequest("closed", "main"), pull("pull request #3 was closed")},
		"a merged pull request":                       {lax, with(pullRequest("closed", "main"), func(e *ci.Event) { e.PullRequest.Merged = true }), pull("pull request #3 was merged")},
		"a draft again":                               {strict, pullRequest("converted_to_draft", "main"), pull("pull request #3 is a draft again")},
		"a draft again where drafts run":              {lax, pullRequest("converted_to_draft", "main"), ci.Cancel{}},
		"a skip label":                                {strict, label("labeled", "No-CI"), pull(`pull request #3 has the label "No-CI"`)},
		"another label":                               {strict, label("labeled", "bug"), ci.Cancel{}},
		"a skip label among unknown changes":          {strict, with(pullRequest("labeled", "main"), func(e *ci.Event) { e.PullRequest.Labels = []string{"bug", "no-ci"} }), pull(`pull request #3 has the label "no-ci"`)},
		"a skip label taken away":                     {strict, label("unlabeled", "no-ci"), ci.Cancel{}},
		"new commits":                                 {strict, pullRequest("synchronize", "main"), ci.Cancel{}},
		"a destroyed merge group": {lax, mergeGroup("destroyed", "main"), ci.Cancel{
			Project: "api", Ref: "refs/heads/gh-readonly-queue/main/pr-3", Reason: "the merge group was destroyed",
			Scope: "api merge_group 7 " + shaA + " refs/heads/gh-readonly-queue/main/pr-3",
		}},
		"a merge group":              {lax, mergeGroup("checks_requested", "main"), ci.Cancel{}},
		"another event":              {lax, &ci.Event{Kind: "star", Branch: "main"}, ci.Cancel{}},
		"a pull request without one": {lax, &ci.Event{Kind: ci.EventPullRequest, Action: "closed"}, ci.Cancel{}},
	} {
		t.Run(what, func(t *testing.T) {
			got, ok := pipeline.Cancels(&ci.Project{Name: "api", On: tc.on}, tc.event)
			if !ok {
				got = ci.Cancel{}
			}
			if got != tc.want || ok != (tc.want.Reason != "") {
				t.Errorf("Cancels = %+v, %v\nwant %+v", got, ok, tc.want)
			}
		})
	}
}
