package gitea_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/server/gitea"
	"docket/store/ci"
)

const (
	sha1a = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	sha1b = "3f150d39b92dd50cdd0248f5edea5767c2172584"
	zero  = "0000000000000000000000000000000000000000"
)

const acme = `"repository":{"id":7,"full_name":"acme/api","updated_at":"2022-03-09T16:23:53+09:00"},"sender":{"login":"gopher"}`

const updated = 1646810633

func mustParse(t *testing.T, event, payload string) ci.Event {
	t.Helper()
	e, err := gitea.Parse(event, []byte(payload))
	if err != nil {
		t.Fatalf("Parse(%s, %s): %v", event, payload, err)
	}
	return e
}

// checkEvents holds each payload against the event it is to be read as.
func checkEvents(t *testing.T, kind string, rows map[string]struct {
	payload string
	want    ci.Event
}) {
	t.Helper()
	for what, tc := range rows {
		t.Run(what, func(t *testing.T) {
			tc.want.Kind, tc.want.Repository = kind, ci.Repository{ID: 7, FullName: "acme/api"}
			if tc.want.Actor == "" {
				tc.want.Actor = "gopher"
			}
			if tc.want.PushedAt == 0 {
				tc.want.PushedAt = updated
			}
			if diff := cmp.Diff(tc.want, mustParse(t, kind, tc.payload)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestParse_Push(t *testing.T) {
	checkEvents(t, ci.EventPush, map[string]struct {
		payload string
		want    ci.Event
	}{
		"a branch moves": {
			`{"ref":"refs/heads/a/b","before":"` + sha1b + `","after":"` + sha1a + `","total_commits":9,"commits":[{"id":"` + sha1b + `","added":["x"]}],"head_commit":{"id":"` + sha1a + `","message":"one\n\ntwo"},` + acme + `}`,
			ci.Event{Ref: "refs/heads/a/b", Branch: "a/b", Commit: sha1a, Before: sha1b, Message: "one"},
		},
		"a new branch": {
			`{"ref":"refs/heads/x","before":"` + zero + `","after":"` + sha1a + `","commits":[],"head_commit":null,` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a},
		},
		"a new tag with a null head commit": {
			`{"ref":"refs/tags/v1.1.1","before":"` + zero + `","after":"` + sha1b + `","commits":[],"head_commit":null,` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1.1.1", Tag: "v1.1.1", Commit: sha1b, Peel: true},
		},
		"a lightweight tag needs no peeling": {
			`{"ref":"refs/tags/v1","after":"` + sha1b + `","head_commit":{"id":"` + sha1b + `"},` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Commit: sha1b},
		},
		"a test delivery moves nothing": {
			`{"ref":"refs/heads/main","before":"` + sha1a + `","after":"` + sha1a + `","head_commit":{"id":"` + sha1a + `","message":"one"},` + acme + `}`,
			ci.Event{Ref: "refs/heads/main", Branch: "main", Commit: sha1a, Message: "one"},
		},
		"a deleted tag": {
			`{"ref":"refs/tags/v1","before":"` + sha1a + `","after":"` + zero + `","head_commit":null,` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Before: sha1a, Deleted: true},
		},
		"a deleted key has no say: Gitea does not send one": {
			`{"ref":"refs/heads/x","after":"` + sha1a + `","deleted":true,"forced":true,"installation":{"id":5},` + acme + `}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a},
		},
		"an old version's pusher without a login, a head commit for the time": {
			`{"ref":"refs/heads/x","after":"` + sha1a + `","pusher":{"username":"old","name":"o"},"head_commit":{"timestamp":"2024-02-22T00:18:07+01:00"},"repository":{"id":7,"full_name":"acme/api"}}`,
			ci.Event{Ref: "refs/heads/x", Branch: "x", Commit: sha1a, Actor: "old", PushedAt: 1708557487},
		},
	})
}

func TestParse_RefsThatAreMadeAndGone(t *testing.T) {
	checkEvents(t, ci.EventDelete, map[string]struct {
		payload string
		want    ci.Event
	}{
		"a branch is gone": {
			`{"ref":"a/b","ref_type":"branch","pusher_type":"user",` + acme + `}`,
			ci.Event{Ref: "refs/heads/a/b", Branch: "a/b", Deleted: true},
		},
		"a tag is gone": {
			`{"ref":"v1","ref_type":"tag",` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Deleted: true},
		},
		"something else is gone": {
			`{"ref":"v1","ref_type":"note",` + acme + `}`,
			ci.Event{Problem: `the delivery is labelled delete, but its payload's ref_type "note" is neither branch nor tag`},
		},
		"a name that is none is gone": {
			`{"ref":"a..b","ref_type":"branch",` + acme + `}`,
			ci.Event{Problem: `the delete's ref "refs/heads/a..b" ` + ci.RefFault("refs/heads/a..b")},
		},
	})
	checkEvents(t, ci.EventCreate, map[string]struct {
		payload string
		want    ci.Event
	}{
		"a tag is made": {
			`{"sha":"` + sha1a + `","ref":"v1","ref_type":"tag","secret":"old",` + acme + `}`,
			ci.Event{Ref: "refs/tags/v1", Tag: "v1", Commit: sha1a},
		},
	})
}

func TestParse_Release(t *testing.T) {
	checkEvents(t, ci.EventRelease, map[string]struct {
		payload string
		want    ci.Event
	}{
		"published": {
			`{"action":"published","release":{"tag_name":"v1","name":"One\ntwo","target_commitish":"main","draft":false},` + acme + `}`,
			ci.Event{Action: "published", Ref: "refs/tags/v1", Tag: "v1", Resolve: true, Message: "One"},
		},
		"updated has GitHub's word": {
			`{"action":"updated","release":{"tag_name":"v1"},` + acme + `}`,
			ci.Event{Action: "edited", Ref: "refs/tags/v1", Tag: "v1", Resolve: true},
		},
		"a draft": {
			`{"action":"published","release":{"tag_name":"","draft":true},` + acme + `}`,
			ci.Event{Action: "published", Draft: true},
		},
		"without a tag": {
			`{"action":"published","release":{"name":"One"},` + acme + `}`,
			ci.Event{Action: "published", Message: "One", Problem: "the release names no tag"},
		},
		"without a release": {
			`{"action":"published",` + acme + `}`,
			ci.Event{Action: "published", Problem: "the delivery is labelled release, but its payload has no release"},
		},
	})
}

func TestParse_OtherShapesHaveAProblem(t *testing.T) {
	for what, tc := range map[string]struct{ event, payload, says string }{
		"nothing":                      {"push", `{}`, "names no repository"},
		"null":                         {"push", `null`, "null"},
		"a list":                       {"push", `[]`, "array"},
		"a repository without its id":  {"push", `{"repository":{"full_name":"acme/api"}}`, "without its id"},
		"a push without a ref":         {"push", `{"after":"` + sha1a + `",` + acme + `}`, "names no ref"},
		"a push without a commit":      {"push", `{"ref":"refs/heads/x",` + acme + `}`, "names no commit"},
		"a push of a name":             {"push", `{"ref":"refs/heads/x","after":"main",` + acme + `}`, "hex digits"},
		"a push of upper-case hex":     {"push", `{"ref":"refs/heads/x","after":"` + strings.ToUpper(sha1a) + `",` + acme + `}`, "hex digits"},
		"a pull request called a push": {"push", `{"pull_request":{"number":1},` + acme + `}`, "is a pull request's"},
		"a review":                     {"pull_request", `{"action":"reviewed","review":{"type":"x"},"pull_request":{"number":1},` + acme + `}`, "review's"},
		"a ref of another type":        {"push", `{"ref":7,` + acme + `}`, "never is in Gitea's"},
	} {
		t.Run(what, func(t *testing.T) {
			if e := mustParse(t, tc.event, tc.payload); !strings.Contains(e.Problem, tc.says) {
				t.Errorf("problem %q, want one that says %q", e.Problem, tc.says)
			}
		})
	}
}

func TestParse_Malformed(t *testing.T) {
	for what, payload := range map[string]string{
		"no JSON": `{"a":`, "two values": `{} {}`, "an id that is none": `{"repository":{"id":-1}}`, "bad UTF-8": "{\"a\":\"\xff\"}",
	} {
		if _, err := gitea.Parse("push", []byte(payload)); ci.CodeOf(err) != ci.CodeMalformed {
			t.Errorf("%s: %v", what, err)
		}
	}
}
