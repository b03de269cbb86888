package github_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/server/github"
	"docket/store/ci"
)

// Ensure that what a push changed is the union over its commits, and unknown
// wherever the lists could lack something.
func TestParse_Changed(t *testing.T) {
	push := func(flags, commits string) string {
		return `{"ref":"refs/heads/main","before":"` + sha1b + `","after":"` + sha1a + `",` + flags + `"commits":` + commits + `,` + acme + `}`
	}
	one := `{"id":"x","added":["b","a"],"modified":[],"removed":["c/d"]}`
	many := func(n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	files := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%q", fmt.Sprint(i))
		}
		return `[{"added":[` + strings.Join(names, ",") + `],"modified":[],"removed":[]}]`
	}
	abcd := []string{"a", "b", "c/d"}
	for what, tc := range map[string]struct {
		payload string
		want    []string // nil: unknown
	}{
		"one commit":                            {push("", "["+one+"]"), abcd},
		"two commits, each file once":           {push("", `[`+one+`,{"added":[],"modified":["a","z"],"removed":[]}]`), []string{"a", "b", "c/d", "z"}},
		"a commit that changes nothing":         {push("", `[{"added":[],"modified":[],"removed":[]}]`), []string{}},
		"flags that say no":                     {push(`"created":false,"forced":false,"deleted":false,`, "["+one+"]"), abcd},
		"as many commits as are always listed":  {push("", many(2047)), abcd},
		"names that git would quote":            {push("", `[{"added":["caf\u00e9.txt","a \"b\".txt","x\n::error::y","-rf"],"modified":[],"removed":[]}]`), []string{"-rf", "a \"b\".txt", "café.txt", "x\n::error::y"}},
		"flags behind the commits":              {`{"commits":[` + one + `],"forced":true,"ref":"refs/heads/main","before":"` + sha1b + `","after":"` + sha1a + `",` + acme + `}`, nil},
		"a new branch":                          {push(`"created":true,`, "["+one+"]"), nil},
		"a new branch, by its before alone":     {strings.Replace(push("", "["+one+"]"), sha1b, zero, 1), nil},
		"a forced push":                         {push(`"forced":true,`, "["+one+"]"), nil},
		"a tag":                                 {strings.Replace(push("", "["+one+"]"), "refs/heads/main", "refs/tags/v1", 1), nil},
		"no commits":                            {push("", "[]"), nil},
		"commits of null":                       {push("", "null"), nil},
		"as many commits as GitHub lists":       {push("", many(2048)), nil},
		"a commit without a list":               {push("", `[`+one+`,{"added":[],"modified":[]}]`), nil},
		"a commit whose list is null":           {push("", `[{"added":["a"],"modified":null,"removed":[]}]`), nil},
		"a list that may have been cut":         {push("", files(3000)), nil},
		"a name that was not UTF-8":             {push("", `[{"added":["a\ufffd"],"modified":[],"removed":[]}]`), nil},
		"the last of two lists of commits":      {push(`"commits":[`+one+`],`, `[{"added":["z"],"modified":[],"removed":[]}]`), []string{"z"}},
		"a merge without lists of files at all": {push("", `[{"id":"x"}]`), nil},
	} {
		t.Run(what, func(t *testing.T) {
			e := mustParse(t, "push", tc.payload)
			if e.Problem != "" {
				t.Fatal(e.Problem)
			}
			var got []string
			if e.Changed != nil {
				got = append([]string{}, e.Changed.Paths...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
	e := mustParse(t, "push", push("", `[{"added":"a"}]`))
	if e.Changed != nil || !strings.Contains(e.Problem, "commits is a JSON string") {
		t.Errorf("a list that is none: %+v", e)
	}
}

func TestParse_PullRequestActions(t *testing.T) {
	parse := func(action, top, inside string) *ci.PullRequest {
		e := mustParse(t, "pull_request", `{"action":"`+action+`",`+top+`"pull_request":{"number":3,`+inside+head+`,`+base+`},`+acme+`}`)
		if e.Problem != "" {
			t.Fatal(e.Problem)
		}
		return e.PullRequest
	}
	pr := parse("labeled", `"label":{"id":1,"name":"Skip CI"},`, `"labels":[{"name":"bug"},{"name":"Skip CI"},{"name":null}],`)
	if !slices.Equal(pr.Labels, []string{"bug", "Skip CI"}) || pr.Label != "Skip CI" {
		t.Errorf("labeled: %+v", pr)
	}
	if pr := parse("closed", "", `"merged":true,`); !pr.Merged {
		t.Errorf("merged: %+v", pr)
	}
	if pr := parse("edited", `"changes":{"title":{"from":"x"},"base":{"ref":{"from":"dev"},"sha":{"from":"`+sha1b+`"}}},`, ""); !pr.Rebased || pr.Base != "main" {
		t.Errorf("a new base: %+v", pr)
	}
	if pr := parse("edited", `"changes":{"title":{"from":"x"},"base":null},`, ""); pr.Rebased {
		t.Errorf("a new title: %+v", pr)
	}
	labels := strings.Repeat(`{"name":"`+strings.Repeat("é", 150)+`"},`, 150)
	if pr := parse("opened", "", `"labels":[`+strings.TrimSuffix(labels, ",")+`],`); len(pr.Labels) != 100 || len(pr.Labels[0]) != 200 {
		t.Errorf("%d labels, the first of %d bytes", len(pr.Labels), len(pr.Labels[0]))
	}
}

const queue = "refs/heads/gh-readonly-queue/main/pr-104-x"

func TestParse_OtherKinds(t *testing.T) {
	repo := ci.Repository{ID: 7, FullName: "acme/api"}
	group := func(sha, ref, base string) string {
		return `{"action":"checks_requested","merge_group":{"head_sha":"` + sha + `","head_ref":"` + ref + `","base_ref":"` + base + `","head_commit":{"message":"Merge\n\nx"}},` + acme + `}`
	}
	queued := ci.Event{Action: "checks_requested", Ref: queue, Branch: queue[len("refs/heads/"):], Base: "main", Commit: sha1a, Message: "Merge"}
	with := func(e ci.Event, change func(e *ci.Event)) ci.Event {
		change(&e)
		return e
	}
	check := func(kind, inside string) string {
		return `{"action":"rerequested","` + kind + `":{"head_sha":"` + sha1a + `"` + inside + `},` + acme + `}`
	}
	for what, tc := range map[string]struct {
		event, payload string
		want           ci.Event
	}{
		"a merge group": {"merge_group", group(sha1a, queue, "refs/heads/main"), queued},
		"a merge group of no ref": {"merge_group", group(sha1a, "main", "refs/heads/main"), with(queued, func(e *ci.Event) {
			e.Ref, e.Branch, e.Problem = "", "", `the merge group's head_ref "main" does not begin with refs/`
		})},
		"a merge group's tag": {"merge_group", group(sha1a, "refs/tags/x", "refs/heads/main"), with(queued, func(e *ci.Event) {
			e.Ref, e.Branch, e.Tag, e.Problem = "refs/tags/x", "", "x", `the merge group's head_ref "refs/tags/x" is no branch`
		})},
		"a merge group into nothing": {"merge_group", group(sha1a, queue, "main"), with(queued, func(e *ci.Event) { e.Base, e.Problem = "", `the merge group's base_ref "main" is no branch's full ref` })},
		"a merge group at no commit": {"merge_group", group("HEAD", queue, "refs/heads/main"), with(queued, func(e *ci.Event) {
			e.Commit, e.Problem = "", `the merge group's head_sha "HEAD" is not 40 or 64 lower-case hex digits`
		})},
		"a new tag, whose ref is short":    {"create", `{"ref":"v1","ref_type":"tag",` + acme + `}`, ci.Event{Ref: "refs/tags/v1", Tag: "v1"}},
		"a new branch, whose ref is short": {"create", `{"ref":"a/b","ref_type":"branch",` + acme + `}`, ci.Event{Ref: "refs/heads/a/b", Branch: "a/b"}},
		"a new repository":                 {"create", `{"ref":null,"ref_type":"repository",` + acme + `}`, ci.Event{}},
		"a deletion, which does not count": {"delete", `{"ref":"a/b","ref_type":"branch",` + acme + `}`, ci.Event{Ref: "refs/heads/a/b", Branch: "a/b"}},
		"a delete of nothing":              {"delete", `{"ref":"x",` + acme + `}`, ci.Event{Problem: "the delivery is labelled delete, but its payload names no ref_type"}},
		"a check run": {"check_run", check("check_run", `,"external_id":"api-1","app":{"id":678},"check_suite":{"app":{"id":5}}`),
			ci.Event{Action: "rerequested", Commit: sha1a, Check: &ci.Check{App: 678, ExternalID: "api-1", Commit: sha1a}}},
		"a check run whose App only the suite names": {"check_run", check("check_run", `,"external_id":null,"app":null,"check_suite":{"app":{"id":5}}`),
			ci.Event{Action: "rerequested", Commit: sha1a, Check: &ci.Check{App: 5, Commit: sha1a}}},
		"a check suite": {"check_suite", check("check_suite", `,"app":{"id":678}`),
			ci.Event{Action: "rerequested", Commit: sha1a, Check: &ci.Check{App: 678, Commit: sha1a}}},
		"a suite labelled check run": {"check_run", check("check_suite", ""), ci.Event{Action: "rerequested", Problem: "the delivery is labelled check_run, but its payload has none"}},
		"a dispatch":                 {"repository_dispatch", `{"action":"deploy","branch":"main",` + acme + `}`, ci.Event{Action: "deploy", Ref: "refs/heads/main", Branch: "main", Resolve: true}},
		"a dispatch to nowhere":      {"repository_dispatch", `{"action":"deploy","ref":"refs/heads/main",` + acme + `}`, ci.Event{Action: "deploy", Problem: "the delivery is labelled repository_dispatch, but its payload names no branch"}},
		"a release": {"release", `{"action":"published","release":{"tag_name":"v1","name":"One\nx","draft":false},` + acme + `}`,
			ci.Event{Action: "published", Ref: "refs/tags/v1", Tag: "v1", Resolve: true, Message: "One"}},
		"a draft of a release":          {"release", `{"action":"created","release":{"tag_name":"","draft":true},` + acme + `}`, ci.Event{Action: "created", Draft: true}},
		"a release of a tag that hurts": {"release", `{"action":"published","release":{"tag_name":"a..b"},` + acme + `}`, ci.Event{Action: "published", Problem: `the release's tag "refs/tags/a..b" contains ".."`}},
		"a renamed repository":          {"repository", `{"action":"renamed","changes":{"repository":{"name":{"from":"old"}}},` + acme + `}`, ci.Event{Action: "renamed", RenamedFrom: "acme/old"}},
		"one given to somebody else":    {"repository", `{"action":"transferred","changes":{"owner":{"from":{"user":{"login":"bob"}}}},` + acme + `}`, ci.Event{Action: "transferred", RenamedFrom: "bob/api"}},
		"one given by an organisation":  {"repository", `{"action":"transferred","changes":{"owner":{"from":{"organization":{"login":"org"},"user":null}}},` + acme + `}`, ci.Event{Action: "transferred", RenamedFrom: "org/api"}},
		"an edited one": {"repository", `{"action":"edited","changes":{"default_branch":{"from":"master"},"topics":{"from":[]}},"repository":{"id":7,"full_name":"acme/api","default_branch":"main"}}`,
			ci.Event{Action: "edited", Edited: []string{"default_branch from master to main", "topics"}}},
		"an installation": {"installation", `{"action":"created","installation":{"id":5},"repositories":[{"id":7,"full_name":"acme/api"}]}`,
			ci.Event{Action: "created", Installation: 5, Repositories: []string{"acme/api"}}},
		"an installation's repositories": {"installation_repositories", `{"action":"removed","installation":{"id":5},"repositories_added":[],"repositories_removed":[{"id":7,"full_name":"acme/api"}]}`,
			ci.Event{Action: "removed", Installation: 5, Repositories: []string{"acme/api"}}},
	} {
		t.Run(what, func(t *testing.T) {
			tc.want.Kind = tc.event
			if strings.Contains(tc.payload, `"repository":{`) && !strings.HasPrefix(tc.event, "installation") && strings.Contains(tc.payload, `"id":7,"full_name":"acme/api"`) {
				tc.want.Repository = repo
			}
			if diff := cmp.Diff(tc.want, mustParse(t, tc.event, tc.payload)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// Ensure that no kind of event needs more than JSON to be read without a panic.
func TestParse_EveryKindTakesAnyShape(t *testing.T) {
	kinds := []string{"push", "pull_request", "merge_group", "create", "delete", "check_run", "check_suite", "release", "repository_dispatch", "repository", "installation", "installation_repositories", "ping"}
	keys := []string{"merge_group", "check_run", "check_suite", "release", "changes", "label", "commits", "repositories", "repositories_added", "ref", "ref_type", "branch", "created", "forced", "pull_request"}
	for _, kind := range kinds {
		for _, key := range keys {
			for _, value := range []string{`null`, `5`, `"x"`, `true`, `[]`, `{}`, `[[]]`, `[{}]`, `[null]`, `{"app":5,"head_sha":[],"labels":{},"owner":{"from":{"user":5}},"base":[]}`} {
				e, err := github.Parse(kind, []byte(`{"`+key+`":`+value+`,`+acme+`}`))
				if err != nil || e.Repository.ID != 7 {
					t.Errorf("%s with %s of %s: %+v, %v", kind, key, value, e, err)
				}
			}
		}
	}
}
