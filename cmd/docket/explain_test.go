package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"docket/store/ci"
)

const explainConfig = `data_dir: d
integrations:
  - {name: gh, webhook_secrets: [{file: s}]}
  - {name: tea, provider: gitea, api_url: 'https://gitea.example.org/api/v1/', webhook_secrets: [{file: s}]}
projects:
  - name: api
    integration: gh
    repository: acme/api
    clone_url: https://example.org/acme/api.git
    default_branch: main
    on: {push: {branches: [main], paths: ["src/**"]}, pull_request: {}}
    steps: [{name: test, run: 'true'}, {name: ship, run: 'true'}]
  - name: docs
    integration: gh
    repository: acme/api
    clone_url: https://example.org/acme/api.git
    on: {push: {paths: ["docs/**"]}}
    pipeline: .docket.yml
`

func explainWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write("s", "secret\n")
	w.write("docket.yaml", explainConfig)
	return w
}

const explainedPush = `{"ref":"refs/heads/main","before":"3f150d39b92dd50cdd0248f5edea5767c2172584","after":"6dcb09b5b57875f334f61aebed695e2e4193db5e",
 "commits":[{"added":["src/a.go"],"modified":[],"removed":[]}],"repository":{"id":7,"full_name":"acme/api"},"sender":{"login":"octocat"}}`

// Ensure that a dry run says for each project what would start or the exact
// rule that stops it, writes nothing, and needs no server.
func TestExplain(t *testing.T) {
	w := explainWorld(t)
	w.stdin = explainedPush
	explain := func(args ...string) string {
		t.Helper()
		return w.must(append([]string{"explain", "-c", w.path("docket.yaml"), "--integration", "gh", "--event", "push", "-"}, args...)...)
	}
	mustContain(t, "the answer", explain(),
		"event:       push\n", "repository:  acme/api (id 7)\n", "outcome:     accepted\n",
		"\napi: branch \"main\" matches \"main\" in on.push.branches, and the changed file \"src/a.go\" matches \"src/**\" in on.push.paths\n",
		"  starts a run of refs/heads/main at 6dcb09b5b57875f334f61aebed695e2e4193db5e, queued\n", "  its status is docket/api\n", "  its steps are test, ship\n",
		"  it supersedes older runs that have not begun, of api push 7 refs/heads/main\n",
		"\ndocs: the only changed file, \"src/a.go\", does not match on.push.paths [docs/**]\n")
	var x ci.Explanation
	if err := json.Unmarshal([]byte(explain("-o", "json", "--delivery", "d/1")), &x); err != nil || x.Receipt != "gh/-/d/1" || len(x.Projects) != 2 || x.Projects[0].Run.Context != "docket/api" || x.Outcome != ci.Accepted {
		t.Errorf("%+v, %v", x, err)
	}
	w.stdin = strings.Replace(explainedPush, `"added"`, `"forced":true,"added"`, 1)
	w.stdin = strings.Replace(w.stdin, `"ref"`, `"forced":true,"ref"`, 1)
	mustContain(t, "what git knows alone", explain(), "docs: branch \"main\" matches on.push, which takes every branch; git is asked", "  undecided until git is asked which files changed\n", "  its steps are read from .docket.yml\n")
	if left, _ := os.ReadDir(w.dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// Ensure that what docket would refuse exits with 1 and says why, and that
// whatever it understands does not.
func TestExplain_ExitCodes(t *testing.T) {
	w := explainWorld(t)
	for what, tt := range map[string]struct {
		event, payload string
		code           int
		out, err       string
	}{
		"a ping without a repository": {"ping", `{"zen":"x"}`, exitDone, "reason:   ping: GitHub can reach docket\n", ""},
		"an event of tomorrow":        {"quux", `{}`, exitDone, "outcome:  ignored\n", ""},
		"another shape":               {"push", `[]`, exitDone, "outermost value is a JSON array", ""},
		"a deleted branch":            {"push", strings.Replace(explainedPush, "6dcb09b5b57875f334f61aebed695e2e4193db5e", strings.Repeat("0", 40), 1), exitDone, "  ends what was started for refs/heads/main and has not begun\n", ""},
		"another repository":          {"push", strings.Replace(explainedPush, "acme/api", "acme/x", 1), exitFailed, "outcome:     refused\n", "it would be refused with 403: the repository \"acme/x\" (id 7) belongs to no project"},
		"an installation":             {"installation", `{"action":"created","installation":{"id":9}}`, exitFailed, "outcome:  refused\n", "the installation 9 is not one"},
		"no JSON":                     {"push", `{`, exitFailed, "", "not well-formed JSON"},
	} {
		w.stdin = tt.payload
		r := w.run("explain", "-c", w.path("docket.yaml"), "--integration", "gh", "--event", tt.event, "-")
		if r.code != tt.code || !strings.Contains(r.out, tt.out) || !strings.Contains(r.err, tt.err) || (tt.err == "") != (r.err == "") {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for what, args := range map[string][]string{
		"no event":             {"explain", "--integration", "gh", "-"},
		"no file":              {"explain", "--integration", "gh", "--event", "push"},
		"several integrations": {"explain", "--event", "push", "-"},
		"an unprintable id":    {"explain", "--integration", "gh", "--event", "push", "--delivery", "\n", "-"},
	} {
		if r := w.run(append(args, "-c", w.path("docket.yaml"))...); r.code != exitUsage {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// Ensure that Gitea's payloads are read as Gitea's.
func TestExplain_Gitea(t *testing.T) {
	w := explainWorld(t)
	mustWrite(t, w.path("docket.yaml"), strings.ReplaceAll(explainConfig, "integration: gh", "integration: tea"))
	w.stdin = `{"ref":"main","ref_type":"branch","repository":{"id":7,"full_name":"acme/api"}}`
	out := w.must("explain", "-c", w.path("docket.yaml"), "--integration", "tea", "--event", "delete", "-")
	mustContain(t, "the answer", out, "api: refs/heads/main was deleted\n", "  ends what was started for refs/heads/main and has not begun\n")
}
