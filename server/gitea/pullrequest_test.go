package gitea_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store/ci"
)

// ends are the ends of a pull request from another repository to ours.
const (
	head = `"head":{"label":"topic","ref":"topic","sha":"` + sha1a + `","repo_id":9,"repo":{"id":9,"full_name":"fork/api"}}`
	base = `"base":{"label":"main","ref":"main","sha":"` + sha1b + `","repo_id":7,"repo":{"id":7,"full_name":"acme/api"}}`
)

func pulled(action, head, base, rest string) string {
	return `{"action":"` + action + `","number":3,"pull_request":{"number":3,"title":"Add x",` + head + `,` + base + rest + `},"commit_id":"","review":null,` + acme + `}`
}

func TestParse_PullRequest(t *testing.T) {
	ours := strings.NewReplacer(`id":9`, `id":7`, "fork/", "acme/").Replace
	bare := func(end string) string { // as Forgejo may have it
		i := strings.Index(end, `,"repo":`)
		return end[:i] + "}"
	}
	want := func(change func(e *ci.Event, pr *ci.PullRequest)) ci.Event {
		e := ci.Event{
			Action: "opened", Ref: "refs/pull/3/head", Branch: "topic", Commit: sha1a, Message: "Add x",
			PullRequest: &ci.PullRequest{Number: 3, Title: "Add x", Base: "main", Head: "topic", HeadRepo: ci.Repository{ID: 9, FullName: "fork/api"}, Fork: true},
		}
		change(&e, e.PullRequest)
		return e
	}
	same := func(e *ci.Event, pr *ci.PullRequest) {
		pr.Fork, pr.HeadRepo = false, ci.Repository{ID: 7, FullName: "acme/api"}
	}
	headOf := func(repo string) string { return `"head":{"ref":"topic","sha":"` + sha1a + `",` + repo + `}` }
	checkEvents(t, ci.EventPullRequest, map[string]struct {
		payload string
		want    ci.Event
	}{
		"from a fork": {pulled("opened", head, base, ""), want(func(*ci.Event, *ci.PullRequest) {})},
		"from a fork, as ids alone": {
			pulled("opened", bare(head), bare(base), ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.HeadRepo.FullName = "" }),
		},
		"from the same repository": {
			pulled("opened", headOf(`"repo_id":7,"repo":{"id":7,"full_name":"acme/api","fork":true}`), base, ""), want(same),
		},
		"from the same repository, as ids alone": {
			pulled("opened", headOf(`"repo_id":7`), bare(base), ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.Fork, pr.HeadRepo = false, ci.Repository{ID: 7} }),
		},
		"from another id of the same name": {
			pulled("opened", headOf(`"repo_id":9,"repo":{"id":9,"full_name":"acme/api"}`), base, ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.HeadRepo.FullName = "acme/api" }),
		},
		"from two ids that differ": {
			pulled("opened", headOf(`"repo_id":7,"repo":{"id":9,"full_name":"fork/api"}`), base, ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.HeadRepo.ID = 0 }),
		},
		"from a deleted fork": {
			pulled("opened", headOf(`"repo_id":-1,"repo":null`), base, ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.HeadRepo = ci.Repository{} }),
		},
		"from nobody knows where": {
			pulled("opened", headOf(`"label":"x"`), base, ""),
			want(func(_ *ci.Event, pr *ci.PullRequest) { pr.HeadRepo = ci.Repository{} }),
		},
		"pushed to refs/for, which names our own repository": {
			pulled("opened", `"head":{"label":"","ref":"refs/pull/3/head","sha":"`+sha1a+`","repo_id":7,"repo":{"id":7,"full_name":"acme/api"}}`, base, ""),
			want(func(e *ci.Event, pr *ci.PullRequest) {
				same(e, pr)
				pr.Fork, pr.Head, e.Branch = true, "refs/pull/3/head", "refs/pull/3/head"
			}),
		},
		"of the AGit flow by its number": {
			pulled("opened", ours(head), base, `,"flow":1`), want(func(e *ci.Event, pr *ci.PullRequest) { same(e, pr); pr.Fork = true }),
		},
		"of the usual flow by its number": {pulled("opened", ours(head), base, `,"flow":0`), want(same)},
		"new commits": {
			pulled("synchronized", head, base, `,"updated_at":"2024-02-22T01:42:03+01:00"`),
			want(func(e *ci.Event, _ *ci.PullRequest) { e.Action, e.PushedAt = "synchronize", 1708562523 }),
		},
		"merged": {
			pulled("closed", head, base, `,"merged":true,"state":"closed","merge_commit_sha":"`+sha1b+`"`),
			want(func(e *ci.Event, pr *ci.PullRequest) { e.Action, pr.Merged, pr.Closed = "closed", true, true }),
		},
		"labels changed": {
			pulled("label_updated", head, base, `,"labels":[{"id":8,"name":"Kind/Bug"},{"id":9,"name":""}]`),
			want(func(e *ci.Event, pr *ci.PullRequest) { e.Action, pr.Labels = "labeled", []string{"Kind/Bug"} }),
		},
		"labels cleared": {
			pulled("label_cleared", head, base, `,"labels":null`),
			want(func(e *ci.Event, _ *ci.PullRequest) { e.Action = "unlabeled" }),
		},
		"another base branch": {
			strings.Replace(pulled("edited", head, base, ""), `"number":3,`, `"number":3,"changes":{"ref":{"from":"old"}},`, 1),
			want(func(e *ci.Event, pr *ci.PullRequest) { e.Action, pr.Rebased = "edited", true }),
		},
		"a word of Gitea's own stays": {
			pulled("milestoned", head, base, ""), want(func(e *ci.Event, _ *ci.PullRequest) { e.Action = "milestoned" }),
		},
	})
}

// Ensure that a draft is known by its own key, else by its title, and that a
// new title makes or ends one.
func TestParse_Drafts(t *testing.T) {
	for what, tc := range map[string]struct {
		title, was, key string
		draft           bool
		action          string // of an edit
	}{
		"a prefix":                      {"WIP: x", "", "", true, "edited"},
		"a prefix in small letters":     {" [wip] x", "", "", true, "edited"},
		"no prefix":                     {"x WIP:", "", "", false, "edited"},
		"a key that says no":            {"WIP: x", "", `,"draft":false`, false, "edited"},
		"a key that says yes":           {"Draft: x", "", `,"draft":true`, true, "edited"},
		"a key that is null":            {"WIP: x", "", `,"draft":null`, true, "edited"},
		"a title that ends a draft":     {"x", "WIP: x", "", false, "ready_for_review"},
		"a title that makes a draft":    {"[WIP] x", "x", `,"draft":true`, true, "converted_to_draft"},
		"a title that changes no draft": {"WIP: y", "WIP: x", "", true, "edited"},
		"a title that is another":       {"y", "x", "", false, "edited"},
	} {
		t.Run(what, func(t *testing.T) {
			text := strings.Replace(pulled("edited", head, base, tc.key), "Add x", tc.title, 1)
			if tc.was != "" {
				text = strings.Replace(text, `"number":3,`, `"number":3,"changes":{"title":{"from":"`+tc.was+`"}},`, 1)
			}
			e := mustParse(t, ci.EventPullRequest, text)
			if e.PullRequest.Draft != tc.draft || e.Action != tc.action {
				t.Errorf("draft %t, action %s", e.PullRequest.Draft, e.Action)
			}
		})
	}
}

func TestParse_PullRequestsThatAreNone(t *testing.T) {
	for what, tc := range map[string]struct{ payload, says string }{
		"no pull request":          {`{"action":"opened",` + acme + `}`, "no pull request"},
		"no number":                {strings.Replace(pulled("opened", head, base, ""), `{"number":3`, `{"number":0`, 1), "no number"},
		"another repository's":     {pulled("opened", head, strings.ReplaceAll(base, "7", "8"), ""), "another repository (id 8)"},
		"no head commit":           {pulled("opened", strings.Replace(head, sha1a, "", 1), base, ""), "hex digits"},
		"no base branch":           {pulled("opened", head, strings.Replace(base, `"ref":"main"`, `"ref":""`, 1), ""), "no base branch"},
		"a head that is no name":   {pulled("opened", strings.Replace(head, `"ref":"topic"`, `"ref":"a..b"`, 1), base, ""), `"a..b"`},
		"a review's, by a comment": {strings.Replace(pulled("opened", head, base, ""), `"number":3,`, `"number":3,"comment":{},`, 1), "comment's"},
	} {
		t.Run(what, func(t *testing.T) {
			if e := mustParse(t, ci.EventPullRequest, tc.payload); !strings.Contains(e.Problem, tc.says) {
				t.Errorf("problem %q, want one that says %q (%s)", e.Problem, tc.says, cmp.Diff(ci.Event{}, e))
			}
		})
	}
}
