package pipeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// Ensure that a head is judged and frozen as the event that would have told
// of it, and that its cause says where it comes from.
func TestCompileHead(t *testing.T) {
	const a, b = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	repo := ci.Repository{ID: 7, FullName: "acme/api"}
	pull := &ci.PullRequest{Number: 4, Title: "hi", Base: "main", Head: "x", HeadRepo: ci.Repository{ID: 8}, Fork: true}
	p := &ci.Project{Name: "api", Integration: "github", Repository: "acme/api", Steps: []ci.Step{{Name: "test", Run: "true"}},
		On: ci.On{Push: &ci.OnPush{Branches: []string{"main"}, Tags: []string{"v*"}}, PullRequest: &ci.OnPullRequest{}}}
	for _, row := range []struct {
		name   string
		head   ci.Head
		before string
		event  ci.Event
	}{
		{"a branch", ci.Head{Ref: "refs/heads/main", Commit: a, Message: "fix"}, b,
			ci.Event{Kind: "push", Repository: repo, Ref: "refs/heads/main", Branch: "main", Commit: a, Before: b, Message: "fix"}},
		{"a tag", ci.Head{Ref: "refs/tags/v1", Commit: a}, "",
			ci.Event{Kind: "push", Repository: repo, Ref: "refs/tags/v1", Tag: "v1", Commit: a}},
		{"an annotated tag that is not peeled", ci.Head{Ref: "refs/tags/v1", Commit: a, Annotated: true}, "",
			ci.Event{Kind: "push", Repository: repo, Ref: "refs/tags/v1", Tag: "v1", Commit: a, Peel: true}},
		{"a pull request", ci.Head{Ref: "refs/pull/4/head", Commit: a, Actor: "eve", PullRequest: pull}, "",
			ci.Event{Kind: "pull_request", Action: "opened", Actor: "eve", Repository: repo, Ref: "refs/pull/4/head", Branch: "x", Commit: a, Message: "hi", PullRequest: pull}},
		{"a pull request that moved", ci.Head{Ref: "refs/pull/4/head", Commit: a, PullRequest: pull}, b,
			ci.Event{Kind: "pull_request", Action: "synchronize", Repository: repo, Ref: "refs/pull/4/head", Branch: "x", Commit: a, Before: b, Message: "hi", PullRequest: pull}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := pipeline.HeadEvent(repo, &row.head, row.before)
			if ok, reason := pipeline.Match(p, &e); !ok {
				t.Fatalf("no match: %s", reason)
			}
			got := pipeline.CompileHead(&ci.Config{}, p, &e)
			want := pipeline.Compile(&ci.Config{}, p, &row.event, "")
			want.Cause.Kind = ci.CauseRecovery
			if got.Scope == "" && row.head.Ref != "refs/tags/v1" {
				t.Error("it has no scope")
			}
			sameDraft(t, got, want)
		})
	}
}

func sameDraft(t *testing.T, got, want ci.Draft) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
