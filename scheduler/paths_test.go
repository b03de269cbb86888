package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that git's answer decides whether a run goes on, for pushes, new
// branches and pull requests, that what cannot be compared counts as changed,
// and that a remote which does not answer is asked again.
func TestPrepare_Paths(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	pull := &ci.PullRequest{Number: 3, Base: "dev", Fork: true}
	tries := 0
	h.stage.changed = func(span runner.Span) ([]string, string, error) {
		switch span {
		case runner.Span{Commit: commit(1), Ref: "refs/heads/main", Before: commit(8), Base: "refs/heads/main"}:
			return []string{"docs/a", "src/b"}, "", nil
		case runner.Span{Commit: commit(2), Ref: "refs/heads/main", Before: commit(8), Base: "refs/heads/main"}:
			return []string{"src/a", "src/b", "c"}, "", nil
		case runner.Span{Commit: commit(3), Ref: "refs/heads/new", Base: "refs/heads/main"}:
			if tries++; tries == 1 {
				return nil, "", fmt.Errorf("no answer")
			}
			return nil, "branch main does not exist any more", nil
		case runner.Span{Commit: commit(4), Ref: "refs/pull/3/head", Base: "refs/heads/dev"}:
			return []string{"docs/a"}, "", nil
		case runner.Span{Commit: commit(5), Ref: "refs/heads/main", Before: commit(8), Base: "refs/heads/main"}:
			return nil, "", ci.Errorf(ci.CodeNotFound, "commit no longer available")
		}
		return nil, "", ci.Errorf(ci.CodeInvalid, "asked for %+v", span)
	}
	h.stage.resolve = func(string) (string, error) { return commit(9), nil }
	h.stage.readFile = func(_, at, _ string) ([]byte, error) {
		if at == commit(2) {
			t.Error("the pipeline file of a run that does not go on was read")
		}
		return []byte("steps:\n  - {name: own, run: make}\n"), nil
	}
	job := func(base string) ci.Job {
		return ci.Job{Paths: &ci.Paths{Only: []string{"docs/**"}}, PathsKey: "on.push", Base: base, Pipeline: ".docket.yml"}
	}
	at := func(n int, ref, branch, before string) func(d *ci.Draft) {
		return func(d *ci.Draft) {
			d.Source = ci.Source{Repository: "acme/api", Ref: ref, Branch: branch, Commit: commit(n), Before: before}
		}
	}
	on := request(t, s, "on", job("main"), at(1, "refs/heads/main", "main", commit(8)))
	off := request(t, s, "off", job("main"), at(2, "refs/heads/main", "main", commit(8)))
	fresh := request(t, s, "fresh", job("main"), at(3, "refs/heads/new", "new", ""))
	fork := request(t, s, "fork", job("dev"), func(d *ci.Draft) {
		at(4, "refs/pull/3/head", "topic", commit(8))(d)
		d.Fork, d.Source.PullRequest = true, pull
	})
	gone := request(t, s, "gone", job("main"), at(5, "refs/heads/main", "main", commit(8)))
	rootless := request(t, s, "rootless", job(""), at(6, "refs/heads/new", "new", ""))
	if r := h.waitState(rootless, ci.Queued); !strings.HasPrefix(r.Internal.Note, "the project has no default_branch to compare a new branch with, so it counts") {
		t.Errorf("without a default branch: %+v", r)
	}
	if r := h.waitState(on, ci.Queued); r.Internal.Note != `the changed file "docs/a" matches "docs/**" in on.push.paths` || len(r.Steps) != 1 {
		t.Errorf("what matches: %+v", r)
	}
	if r := h.waitState(off, ci.Cancelled); r.Reason != "skipped: none of the 3 changed files matches on.push.paths [docs/**]" || r.FinishedAt.IsZero() {
		t.Errorf("what does not match: %+v", r)
	}
	if r := h.waitState(fresh, ci.Queued); r.Internal.Note != "branch main does not exist any more, so it counts as matching on.push's paths" {
		t.Errorf("what cannot be compared: %+v", r)
	}
	if r := h.waitState(fork, ci.Held); r.Internal.Note == "" {
		t.Errorf("a fork's: %+v", r)
	}
	if r := h.waitState(gone, ci.Failed); r.Reason != "commit no longer available" {
		t.Errorf("a commit that is gone: %+v", r)
	}
}
