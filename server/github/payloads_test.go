package github_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/server/github"
)

// Ensure that every real payload can be read, and those that can start a run
// say what to build.
func TestParse_RealPayloads(t *testing.T) {
	type row struct {
		ref, commit, before string
		fork, deleted, peel bool
	}
	want := map[string]row{
		"push/branch.json":                                   {ref: "refs/heads/master", commit: "199eddf46df50de8d02e99bf1c5fdb4101338224", before: "a10867b14bb761a232cd80139fbd4c0d33264240"},
		"push/branch-deleted.json":                           {ref: "refs/heads/feature-branch", before: "d2b75aa7797ec26b088fa2dd527e9d2c052fcedd", deleted: true},
		"push/empty-head-commit.json":                        {ref: "refs/tags/simple-tag", before: "6113728f27ae82c7b1a177c8d03f9e96e0adf246", deleted: true},
		"push/force-user-owned.json":                         {ref: "refs/heads/main", commit: "f7220f1f753260bf6f1c533357c70213e9fd4abe", before: "5ea737297f2e2e88f4cdf796e72cbcb12d40fd9c"},
		"push/force.json":                                    {ref: "refs/heads/EDM-1179", commit: "1f65bfd479dddb9453466feeaf4ac9249a2ac9df", before: "d89fce43657c5fc2de8f677a052c9dcca941872a"},
		"push/new-branch-no-commits.json":                    {ref: "refs/heads/feature-branch", commit: "d2b75aa7797ec26b088fa2dd527e9d2c052fcedd"},
		"push/new-branch-real.json":                          {ref: "refs/heads/build-branch", commit: "04885ff850b0fa0e206cd09db73565703d48f99b"},
		"push/new-branch.json":                               {ref: "refs/heads/master", commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246"},
		"push/no-username-committer.json":                    {ref: "refs/heads/master", commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246"},
		"push/org-owner-branch.json":                         {ref: "refs/heads/main", commit: "366701fde727cb7a9e7f21eb88264f59f6f9b89c", before: "2f780193b136b72bfea4eeb640786a8c4450c7a2"},
		"push/tag-deleted.json":                              {ref: "refs/tags/simple-tag", before: "6113728f27ae82c7b1a177c8d03f9e96e0adf246", deleted: true},
		"push/tag-real.json":                                 {ref: "refs/tags/the-tag-v1", commit: "67012991d6c69b1c58378346fca366b864d8d1a1"},
		"push/tag.json":                                      {ref: "refs/tags/v0.0.1", commit: "d2b75aa7797ec26b088fa2dd527e9d2c052fcedd"},
		"pull_request/closed.json":                           {ref: "refs/pull/2/head", commit: "ec26c3e57ca3a959ca5aad62de7213c562f8c821"},
		"pull_request/opened-from-fork.json":                 {ref: "refs/pull/342/head", commit: "528b803be6f93e19ca4130bf4976f2800a3004c4", fork: true},
		"pull_request/opened-null-body.json":                 {ref: "refs/pull/2/head", commit: "ec26c3e57ca3a959ca5aad62de7213c562f8c821"},
		"pull_request/opened.json":                           {ref: "refs/pull/2/head", commit: "ec26c3e57ca3a959ca5aad62de7213c562f8c821"},
		"pull_request/ready_for_review.json":                 {ref: "refs/pull/2/head", commit: "ec26c3e57ca3a959ca5aad62de7213c562f8c821"},
		"pull_request/synchronize-from-fork.json":            {ref: "refs/pull/4418/head", commit: "98c722169d72dfeacc7aee065cf807cad6b60352", before: "9d6a16e4c196e25d869c5c6b5c5f7e8d2598c0db", fork: true},
		"pull_request/synchronize.json":                      {ref: "refs/pull/2/head", commit: "ec26c3e57ca3a959ca5aad62de7213c562f8c821", before: "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"},
		"gitea/push.json":                                    {ref: "refs/heads/master", commit: "67b56589a45103f891bdee7c0546e5d40bc02001"},
		"gitea/push-multi.json":                              {ref: "refs/heads/main", commit: "29be01c073851cf0db0c6a466e396b725a670453", before: "6efcf5b7c98f3e7a491675164b7a2e7acac27941"},
		"gitea/pull_request-opened-from-same-name-fork.json": {ref: "refs/pull/2/head", commit: "48e773f892a831faa47c0a160d1b7f0cd369ae2a", fork: true},
		"forgejo/push-new-branch.json":                       {ref: "refs/heads/fdsafdsa", commit: "28c3613ae62640216bea5e7dc71aa65356e4298b"},
		"forgejo/pull_request-synchronized.json":             {ref: "refs/pull/2/head", commit: "788ed8d02d3b7fcfcf6386dbcbca696aa1d4dc25", fork: true},
	}
	dir := payloads(t)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		event := filepath.Dir(name)
		if event == "gitea" || event == "forgejo" {
			event, _, _ = strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json"), "-")
		}
		payload, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		e, err := github.Parse(event, payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		if e.Problem != "" {
			t.Errorf("%s has a problem: %s", name, e.Problem)
		}
		w, ok := want[name]
		if !ok {
			if event == "push" || event == "pull_request" {
				t.Errorf("%s is not in the table", name)
			}
			return nil
		}
		seen++
		got := row{ref: e.Ref, commit: e.Commit, before: e.Before, deleted: e.Deleted, peel: e.Peel}
		if e.PullRequest != nil {
			got.fork = e.PullRequest.Fork
		}
		if got != w {
			t.Errorf("%s: got %+v, want %+v", name, got, w)
		}
		if e.Repository.ID == 0 || e.Repository.FullName == "" || e.Actor == "" || e.PushedAt == 0 {
			t.Errorf("%s: %+v lacks its repository, actor or time", name, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(want) {
		t.Errorf("%d of %d payloads in the table were found", seen, len(want))
	}
}

// Ensure that a real payload under a wrong event's name starts nothing.
func TestParse_RealPayloadsMislabelled(t *testing.T) {
	dir := payloads(t)
	paths, err := filepath.Glob(dir + "/*/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no payloads in %s: %v", dir, err)
	}
	for _, path := range paths {
		payload, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(dir, path)
		for _, event := range []string{"push", "pull_request"} {
			if strings.Contains(name, event) {
				continue
			}
			if e, err := github.Parse(event, payload); err == nil && e.Problem == "" {
				t.Errorf("%s passes for a %s: %+v", name, event, e)
			}
		}
	}
}
