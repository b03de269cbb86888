package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that the branch of a request is resolved once, frozen, and retried
// while the remote does not answer; and that what can never work fails the run.
func TestPrepare(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	tries := 0
	h.stage.resolve = func(ref string) (string, error) {
		if ref == "refs/heads/gone" {
			return "", ci.Errorf(ci.CodeNotFound, "branch gone does not exist")
		}
		if tries++; tries == 1 {
			return "", fmt.Errorf("no answer")
		}
		return commit(5), nil
	}
	gone := request(t, s, "gone", ci.Job{Resolve: true}, func(d *ci.Draft) { d.Source.Ref, d.Source.Branch = "refs/heads/gone", "gone" })
	if r := h.waitState(gone, ci.Failed); !strings.Contains(r.Reason, "does not exist") {
		t.Fatalf("reason %q", r.Reason)
	}
	id := request(t, s, "k", ci.Job{Resolve: true}, nil)
	if r := h.waitState(id, ci.Queued); r.Source.Commit != commit(5) || r.Internal.Job != nil {
		t.Fatalf("frozen %+v", r.Source)
	}
}

// Ensure that an annotated tag's own object is peeled: its run is of the
// commit, and never of the tag object.
func TestPrepare_AnnotatedTag(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	h.stage.resolve = func(ref string) (string, error) {
		if ref != "refs/tags/v1 "+commit(40) {
			return "", fmt.Errorf("asked for %s", ref)
		}
		return commit(41), nil
	}
	id := request(t, s, "tag", ci.Job{Resolve: true}, func(d *ci.Draft) {
		d.Spec.Report = true
		d.Source = ci.Source{Repository: "acme/api", Ref: "refs/tags/v1", Tag: "v1", Commit: commit(40)}
	})
	r := h.waitState(id, ci.Queued)
	if r.Source.Commit != commit(41) {
		t.Fatalf("commit %s", r.Source.Commit)
	}
	list, _, err := s.Entries("", store.Page{})
	if err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Target, commit(41)) {
		t.Fatalf("entries %+v, %v", list, err)
	}
}

// Ensure that the pipeline file is read at the run's commit, that a fork's
// pull request uses the base's, and that a mistake in it fails the run with
// its place.
func TestPrepare_Pipeline(t *testing.T) {
	s := storetest.MustOpen(t)
	h := open(t, s, func(_ *scheduler.Options, c *ci.Config) { c.Limits.ConcurrentRuns = 0 })
	h.stage.resolve = func(ref string) (string, error) {
		if ref != "refs/heads/main" {
			return "", fmt.Errorf("asked for %s", ref)
		}
		return commit(9), nil
	}
	h.stage.readFile = func(ref, at, path string) ([]byte, error) {
		switch at {
		case commit(1):
			return []byte("steps:\n  - {name: own, run: make}\n"), nil
		case commit(9):
			return []byte("steps:\n  - {name: base, run: make}\n"), nil
		}
		return []byte("steps: 5\n"), nil
	}
	job := ci.Job{Pipeline: ".docket.yml"}
	own := request(t, s, "own", job, func(d *ci.Draft) { d.Source.Commit = commit(1) })
	if r := h.waitState(own, ci.Queued); len(r.Steps) != 1 || r.Steps[0].Name != "own" {
		t.Fatalf("steps %+v", r.Steps)
	}
	fork := request(t, s, "fork", job, func(d *ci.Draft) {
		d.Fork = true
		d.Source = ci.Source{Repository: "acme/api", Ref: "refs/pull/3/head", Commit: commit(2), PullRequest: &ci.PullRequest{Number: 3, Base: "main", Fork: true}}
	})
	if r := h.waitState(fork, ci.Held); len(r.Steps) != 1 || r.Steps[0].Name != "base" {
		t.Fatalf("steps %+v", r.Steps)
	}
	bad := request(t, s, "bad", job, func(d *ci.Draft) { d.Source.Commit = commit(3) })
	if r := h.waitState(bad, ci.Failed); !strings.Contains(r.Reason, ".docket.yml:1:") {
		t.Fatalf("reason %q", r.Reason)
	}
}
