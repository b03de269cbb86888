package github_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/server/github"
	"docket/store/ci"
)

const (
	sha1a = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	sha1b = "3f150d39b92dd50cdd0248f5edea5767c2172584"
	zero  = "0000000000000000000000000000000000000000"
	sha2  = "a10867b14bb761a232cd80139fbd4c0d33264240a10867b14bb761a232cd8013"
)

func mustParse(t *testing.T, event, payload string) ci.Event {
	t.Helper()
	e, err := github.Parse(event, []byte(payload))
	if err != nil {
		t.Fatalf("Parse(%s, %s): %v", event, payload, err)
	}
	return e
}

const acme = `"repository":{"id":7,"full_name":"acme/api","pushed_at":1529601404}`

func TestParse_Push(t *testing.T) {
	repo := ci.Repository{ID: 7, FullName: "acme/api"}
	for what, tc := range map[string]struct {
		payload string
		want    ci.Event
	}{
		"a branch moves": {
			`{"ref":"refs/heads/main","before":"` + sha1b + `","after":"` + sha1a + `","deleted":false,"head_commit":{"id":"` + sha1a + `","message":"one\n\ntwo [skip ci]","timestamp":"2018-06-15T13:01:51-07:00"},"pusher":{"name":"p"},"sender":{"login":"octocat"},"installation":{"id":5},` + acme + `}`,
			ci.Event{Ref: "refs/heads/main", Branch: "main", Commit: sha1a, Before: sha1b, Message: "one", PushedAt: 1529601404, Actor: "octocat", Installation: 5},
		},
		"a new branch has no before": {
			`{"ref":"refs/heads/a/b","before":"` + zero + `","after":"` + sha1a + `",` + acme + `}`,
			ci.Event{Ref: "refs/heads/a/b", Branch: "a/b", Commit: sha1a, PushedAt: 1529601404},
		},
		"a new tag with a null head commit, without a deleted key": {
			`{"ref":"refs/tags/v1.1.1","before":"` + zero + `","after":"` + sha1b + `","commits":[],"head_commit":null,` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1.1.1", Tag: "v1.1.1", Commit: sha1b, Peel: true, PushedAt: 1529601404},
		},
		"a lightweight tag needs no peeling": {
			`{"ref":"refs/tags/v1","after":"` + sha1b + `","head_commit":{"id":"` + sha1b + `"},` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Commit: sha1b, PushedAt: 1529601404},
		},
		"an annotated tag needs peeling": {
			`{"ref":"refs/tags/v1","after":"` + sha1b + `","head_commit":{"id":"` + sha1a + `"},` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Commit: sha1b, Peel: true, PushedAt: 1529601404},
		},
		"a deleted branch": {
			`{"ref":"refs/heads/x","before":"` + sha1b + `","after":"` + zero + `","deleted":true,"head_commit":null,` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Before: sha1b, Deleted: true, PushedAt: 1529601404},
		},
		"an all-zero after alone means deletion": {
			`{"ref":"refs/heads/x","after":"` + zero + `",` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Deleted: true, PushedAt: 1529601404},
		},
		"deleted with an after is a deletion": {
			`{"ref":"refs/tags/x","after":"` + sha1a + `","deleted":true,` + acme + `}`,
			ci.Event{Ref: "refs/tags/x", Tag: "x", Deleted: true, PushedAt: 1529601404},
		},
		"SHA-256 ids": {
			`{"ref":"refs/heads/x","before":"` + strings.Repeat("0", 64) + `","after":"` + sha2 + `",` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha2, PushedAt: 1529601404},
		},
		"the commit is after, whatever the commit list says": {
			`{"ref":"refs/heads/x","after":"` + sha1a + `","commits":[{"id":"` + sha1b + `"}],"head_commit":{"id":"` + sha1b + `"},` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a, PushedAt: 1529601404},
		},
		"the pusher stands in for the sender, the commit's time for the push's": {
			`{"ref":"refs/heads/x","after":"` + sha1a + `","pusher":{"name":"p"},"head_commit":{"timestamp":"2024-02-22T00:18:07+01:00"},"repository":{"id":7,"full_name":"acme/api"}}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a, Actor: "p", PushedAt: 1708557487},
		},
		"a push's time in words, escapes in strings, a key twice, other keys' case": {
			`{"ref":"x","ref":"refs\/heads\/\u00e9","REF":"y","after":"` + sha1a + `","repository":{"id":1},"repository":{"id":7,"full_name":"acme/api","pushed_at":"2019-05-15T15:20:57Z"}}`,
			ci.Event{Ref: "refs/heads/é", Branch: "é", Commit: sha1a, PushedAt: 1557933657},
		},
		"a ref of another kind": {
			`{"ref":"refs/notes/x","after":"` + sha1a + `",` + acme + `}`,
			ci.Event{Ref: "refs/notes/x", Commit: sha1a, PushedAt: 1529601404},
		},
		"legal names that hurt": {
			"{\"ref\":\"refs/heads/a;$(touch${IFS}pwned)`id`x&|\",\"after\":\"" + sha1a + `",` + acme + `}`,
			ci.Event{Ref: "refs/heads/a;$(touch${IFS}pwned)`id`x&|", Branch: "a;$(touch${IFS}pwned)`id`x&|", Commit: sha1a, PushedAt: 1529601404},
		},
		"a before that is no id is unknown": {
			`{"ref":"refs/heads/x","before":"HEAD","after":"` + sha1a + `",` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a, PushedAt: 1529601404},
		},
	} {
		t.Run(what, func(t *testing.T) {
			tc.want.Kind, tc.want.Repository = "push", repo
			if diff := cmp.Diff(tc.want, mustParse(t, "push", tc.payload)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

const head = `"head":{"ref":"topic","sha":"` + sha1a + `","repo":{"id":9,"full_name":"fork/api"}}`
const base = `"base":{"ref":"main","sha":"` + sha1b + `","repo":{"id":7,"full_name":"acme/api"}}`

func TestParse_PullRequest(t *testing.T) {
	pr := func(head, rest string) string {
		return `{"action":"opened","number":3,"pull_request":{"number":3,"title":"Add x",` + head + `,` + base + rest + `},"sender":{"login":"octocat"},` + acme + `}`
	}
	want := func(change func(e *ci.Event)) ci.Event {
		e := ci.Event{
			Kind: "pull_request", Action: "opened", Actor: "octocat", Repository: ci.Repository{ID: 7, FullName: "acme/api"},
			Ref: "refs/pull/3/head", Branch: "topic", Commit: sha1a, Message: "Add x",
			PullRequest: &ci.PullRequest{Number: 3, Title: "Add x", Base: "main", Head: "topic", HeadRepo: ci.Repository{ID: 9, FullName: "fork/api"}, Fork: true},
		}
		change(&e)
		return e
	}
	for what, tc := range map[string]struct {
		payload string
		want    ci.Event
	}{
		"from a fork": {pr(head, ""), want(func(*ci.Event) {})},
		"from the same repository": {
			pr(strings.Replace(head, `"id":9,"full_name":"fork/api"`, `"id":7,"full_name":"acme/api","fork":true`, 1), ""),
			want(func(e *ci.Event) {
				e.PullRequest.Fork, e.PullRequest.HeadRepo = false, ci.Repository{ID: 7, FullName: "acme/api"}
			}),
		},
		"from another id of the same name, said to be no fork": {
			pr(strings.Replace(head, `"fork/api"`, `"acme/api","fork":false`, 1), ""),
			want(func(e *ci.Event) { e.PullRequest.HeadRepo.FullName = "acme/api" }),
		},
		"from a deleted fork": {
			pr(strings.Replace(head, `{"id":9,"full_name":"fork/api"}`, `null`, 1), ""),
			want(func(e *ci.Event) { e.PullRequest.HeadRepo = ci.Repository{} }),
		},
		"from a repository whose id is no integer": {
			pr(strings.Replace(head, `"id":9`, `"id":7.0`, 1), ""),
			want(func(e *ci.Event) { e.PullRequest.HeadRepo.ID = 0 }),
		},
		"a draft with its time": {
			pr(head, `,"draft":true,"updated_at":"2019-05-15T15:20:33Z"`),
			want(func(e *ci.Event) { e.PullRequest.Draft, e.PushedAt = true, 1557933633 }),
		},
		"new commits, as Forgejo has it": {
			strings.Replace(pr(head, ""), `"opened"`, `"synchronized","before":"`+sha1b+`"`, 1),
			want(func(e *ci.Event) { e.Action, e.Before = "synchronize", sha1b }),
		},
		"a null body and a merge commit are not looked at": {
			pr(head, `,"body":null,"merge_commit_sha":"`+sha1b+`"`),
			want(func(*ci.Event) {}),
		},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustParse(t, "pull_request", tc.payload)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
	t.Run("neither repository known is a fork", func(t *testing.T) {
		e := mustParse(t, "pull_request", `{"pull_request":{"number":3,"head":{"ref":"a","sha":"`+sha1a+`"},"base":{"ref":"b"}},`+acme+`}`)
		if e.Problem != "" || !e.PullRequest.Fork {
			t.Errorf("Parse = %+v", e)
		}
	})
}

func TestParse_OtherShapesHaveAProblem(t *testing.T) {
	push := func(ref, after string) string {
		return `{"ref":` + ref + `,"after":` + after + `,` + acme + `}`
	}
	pull := func(inside string) string {
		return `{"action":"opened","pull_request":{` + inside + `},` + acme + `}`
	}
	a := `"` + sha1a + `"`
	for what, tc := range map[string]struct{ event, payload, problem string }{
		"an empty object as a push":         {"push", `{}`, "names no repository"},
		"an empty object as a pull request": {"pull_request", `{}`, "names no repository"},
		"a list":                            {"push", `[]`, "outermost value is a JSON array"},
		"a string":                          {"push", `"x"`, "outermost value is a JSON string"},
		"a number":                          {"ping", `5`, "outermost value is a JSON number"},
		"null":                              {"star", ` null `, "null"},
		"a null repository":                 {"push", `{"ref":"refs/heads/x","repository":null}`, "names no repository"},
		"a repository that is a string":     {"push", `{"repository":"acme/api"}`, "repository is a JSON string"},
		"a repository without id":           {"push", `{"repository":{"full_name":"acme/api"}}`, `"acme/api" without its id`},
		"an object twice, of which the last one counts": {"push", `{"repository":{"id":8},"repository":{"full_name":"b/c"},"ref":"refs/heads/x","after":` + a + `}`, `"b/c" without its id`},
		"a push without ref":                            {"push", `{"after":` + a + `,` + acme + `}`, "names no ref"},
		"a push of a short ref":                         {"push", push(`"main"`, a), `"main" does not begin with refs/`},
		"a push of a ref with a newline":                {"push", push(`"refs/heads/a\nb"`, a), "control character"},
		"a push of a ref with two dots":                 {"push", push(`"refs/heads/../../x"`, a), "contains"},
		"a push of a ref too long":                      {"push", push(`"refs/heads/`+strings.Repeat("x", 1014)+`"`, a), "longer than 1024"},
		"a push of a ref that is a number":              {"push", push(`5`, a), "ref is a JSON number"},
		"a push without after":                          {"push", `{"ref":"refs/heads/x",` + acme + `}`, "names no commit"},
		"a push with a short after":                     {"push", push(`"refs/heads/x"`, `"abc"`), `"abc" is not 40 or 64`},
		"a push with an upper-case after":               {"push", push(`"refs/heads/x"`, `"`+strings.ToUpper(sha1a)+`"`), "lower-case"},
		"a push with an option for after":               {"push", push(`"refs/heads/x"`, `"--upload-pack=x"`), "lower-case"},
		"deleted that is a string":                      {"push", `{"deleted":"no","ref":"refs/heads/x","after":` + a + `,` + acme + `}`, "deleted is a JSON string"},
		"a pull request labelled push":                  {"push", `{"pull_request":{},"ref":"refs/heads/x","after":` + a + `,` + acme + `}`, "is a pull request's"},
		"a push labelled pull request":                  {"pull_request", push(`"refs/heads/x"`, a), "has no pull request"},
		"a review labelled pull request":                {"pull_request", `{"review":{},"pull_request":{"number":3,` + head + `,` + base + `},` + acme + `}`, "review's"},
		"a pull request without number":                 {"pull_request", pull(head + `,` + base), "has no number"},
		"a pull request of number zero":                 {"pull_request", pull(`"number":0,` + head + `,` + base), "has no number"},
		"a pull request without head":                   {"pull_request", pull(`"number":3,` + base), "names no head branch"},
		"a pull request without base":                   {"pull_request", pull(`"number":3,` + head), "names no base branch"},
		"a pull request with a bad head":                {"pull_request", pull(`"number":3,"head":{"ref":"a b","sha":` + a + `},` + base), "contains a space"},
		"a pull request at no commit":                   {"pull_request", pull(`"number":3,"head":{"ref":"a","sha":"` + zero + `"},` + base), "lower-case"},
		"a pull request into elsewhere":                 {"pull_request", pull(`"number":3,` + head + `,` + strings.Replace(base, `"id":7`, `"id":8`, 1)), "another repository"},
		"a sender that is a string":                     {"push", `{"sender":"octocat","ref":"refs/heads/x","after":` + a + `,` + acme + `}`, "sender is a JSON string"},
	} {
		t.Run(what, func(t *testing.T) {
			e := mustParse(t, tc.event, tc.payload)
			if !strings.Contains(e.Problem, tc.problem) || e.Problem == "" {
				t.Errorf("Problem = %q, want one that says %q", e.Problem, tc.problem)
			}
			if strings.Contains(tc.payload, acme) && e.Repository.ID != 7 {
				t.Errorf("Repository = %+v, want it read all the same", e.Repository)
			}
			if !ci.IsCommit(e.Commit) && e.Commit != "" || e.Ref != "" && !ci.ValidRef(e.Ref) {
				t.Errorf("Ref %q, Commit %q", e.Ref, e.Commit)
			}
		})
	}
}

func TestParse_OtherEvents(t *testing.T) {
	for what, tc := range map[string]struct {
		event, payload string
		want           ci.Event
	}{
		"a ping of an organisation":        {"ping", `{"zen":"x","hook_id":1}`, ci.Event{}},
		"an empty object":                  {"star", `{}`, ci.Event{}},
		"a repository of null":             {"star", `{"repository":null,"installation":null}`, ci.Event{}},
		"a star":                           {"star", `{"action":"created","sender":{"login":"o"},"installation":{"id":4},` + acme + `}`, ci.Event{Action: "created", Actor: "o", Installation: 4, Repository: ci.Repository{ID: 7, FullName: "acme/api"}}},
		"an id of null counts as absent":   {"star", `{"repository":{"id":null,"full_name":"a/b"},"installation":{"id":null}}`, ci.Event{Repository: ci.Repository{FullName: "a/b"}}},
		"a long action is cut":             {"quux", `{"action":"` + strings.Repeat("é", 150) + `"}`, ci.Event{Action: strings.Repeat("é", 100)}},
		"an event nobody has heard of yet": {"quux", `{"action":"x"}`, ci.Event{Action: "x"}},
	} {
		t.Run(what, func(t *testing.T) {
			tc.want.Kind = tc.event
			if diff := cmp.Diff(tc.want, mustParse(t, tc.event, tc.payload)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestParse_Malformed(t *testing.T) {
	for what, payload := range map[string]string{
		"nothing":                     "",
		"blanks":                      "  \n",
		"a word":                      "hello",
		"a form":                      "payload=%7B%7D",
		"a cut object":                `{"a":1`,
		"text after the object":       `{} x`,
		"two objects":                 `{}{}`,
		"a NUL after the object":      "{}\x00",
		"a trailing comma":            `{"a":1,}`,
		"a comment":                   `{} // x`,
		"single quotes":               `{'a':1}`,
		"a leading zero":              `{"a":01}`,
		"a bare key":                  `{a:1}`,
		"a control character":         "{\"a\":\"\n\"}",
		"a broken escape":             `{"a":"\x"}`,
		"a short escape":              `{"a":"\u00g0"}`,
		"malformed UTF-8":             "{\"a\":\"\xff\"}",
		"a byte order mark":           "\ufeff{}", // Payload leaves it off
		"too deep":                    strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"too deep and cut":            strings.Repeat(`{"a":`, 1_000_000),
		"a repository id of zero":     `{"repository":{"id":0}}`,
		"a negative repository id":    `{"repository":{"id":-5}}`,
		"a fractional repository id":  `{"repository":{"id":1.5}}`,
		"a whole float":               `{"repository":{"id":1.0}}`,
		"an exponent":                 `{"repository":{"id":1e3}}`,
		"a repository id as a string": `{"repository":{"id":"7"}}`,
		"a repository id as a list":   `{"repository":{"id":[7]}}`,
		"a repository id too big":     `{"repository":{"id":9223372036854775808}}`,
		"an installation id of zero":  `{"installation":{"id":0}}`,
		"an installation as a string": `{"installation":{"id":"1"},` + acme + `}`,
		"a bad id behind another":     `{"sender":5,"repository":{"id":true}}`,
	} {
		for _, event := range []string{"push", "pull_request", "ping", "star"} {
			e, err := github.Parse(event, []byte(payload))
			if ci.CodeOf(err) != ci.CodeMalformed {
				t.Errorf("%s, as %s: Parse = %+v, %v", what, event, e, err)
			}
		}
	}
}
