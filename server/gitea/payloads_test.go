package gitea_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/server/gitea"
)

// Ensure that every real payload of Gitea and Forgejo says what to build.
func TestParse_RealPayloads(t *testing.T) {
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		t.Skip("DOCKET_PAYLOADS is not set: it names the folder of real payloads that this test reads")
	}
	type row struct {
		ref, commit, before, action, actor string
		fork, deleted                      bool
	}
	want := map[string]row{
		"gitea/push.json":                                    {ref: "refs/heads/master", commit: "67b56589a45103f891bdee7c0546e5d40bc02001", actor: "example"},
		"gitea/push-multi.json":                              {ref: "refs/heads/main", commit: "29be01c073851cf0db0c6a466e396b725a670453", before: "6efcf5b7c98f3e7a491675164b7a2e7acac27941", actor: "test-user"},
		"gitea/create-tag.json":                              {ref: "refs/tags/v1.0.0", commit: "ef98532add3b2feb7a137426bba1248724367df5", actor: "gordon"},
		"gitea/delete-branch.json":                           {ref: "refs/heads/example3", deleted: true, actor: "example"},
		"gitea/pull_request-opened-from-same-name-fork.json": {ref: "refs/pull/2/head", commit: "48e773f892a831faa47c0a160d1b7f0cd369ae2a", action: "opened", fork: true, actor: "example2"},
		"forgejo/push-new-branch.json":                       {ref: "refs/heads/fdsafdsa", commit: "28c3613ae62640216bea5e7dc71aa65356e4298b", actor: "ci-user-02"},
		"forgejo/pull_request-synchronized.json":             {ref: "refs/pull/2/head", commit: "788ed8d02d3b7fcfcf6386dbcbca696aa1d4dc25", action: "synchronize", actor: "test"},
	}
	for name, w := range want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		event, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json"), "-")
		e, err := gitea.Parse(event, text)
		if err != nil || e.Problem != "" {
			t.Errorf("%s: %v, problem %q", name, err, e.Problem)
			continue
		}
		got := row{ref: e.Ref, commit: e.Commit, before: e.Before, action: e.Action, actor: e.Actor, deleted: e.Deleted}
		if e.PullRequest != nil {
			got.fork = e.PullRequest.Fork
		}
		if got != w {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, w)
		}
		if e.Repository.ID == 0 || e.Repository.FullName == "" || e.PushedAt == 0 || e.Peel || e.Installation != 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
