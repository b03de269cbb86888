package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// changes keeps what a store tells, each change as a line.
type changes struct {
	list []store.Change
}

func (c *changes) heard(l []store.Change) { c.list = append(c.list, l...) }

// take returns what was told since the last time. Call it between commits.
func (c *changes) take() (lines []string) {
	for _, ch := range c.list {
		switch {
		case ch.Run != nil && ch.Run.Lost:
			lines = append(lines, fmt.Sprintf("%s lost in attempt %d with %d steps", ch.Run.Run.ID, ch.Run.Run.Attempt, len(ch.Run.Run.Steps)))
		case ch.Run != nil:
			lines = append(lines, fmt.Sprintf("%s %s>%s", ch.Run.Run.ID, ch.Run.From, ch.Run.Run.State))
		default:
			e := ch.Entry
			lines = append(lines, fmt.Sprintf("%s %s try %d result %s %d", e.Entry.Kind, e.Entry.State, e.Try, e.Result.State, e.Result.Status))
		}
	}
	c.list = nil
	return lines
}

func (c *changes) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// Ensure that every step in the life of runs and notifications is told once it
// is on disk, and nothing that did not come to be.
func TestChangesAreTold(t *testing.T) {
	var c changes
	fail := false
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Changed: c.heard, Failpoint: func(p string) error {
		if fail && p == store.FailBeforeCommit {
			return errors.New("a test let it fail")
		}
		return nil
	}})
	fail = true
	if _, err := s.Accept(t.Context(), pushed("d-1", "api", "main", 1, 2)); err == nil {
		t.Fatal("a commit did not fail")
	}
	c.want(t, "a commit that failed")
	fail = false
	mustPush(t, s, "d-1", 1, 2)
	c.want(t, "a delivery", "api-1 >queued")
	mustPush(t, s, "d-1", 1, 2)
	c.want(t, "a duplicate")
	mustClaim(t, s, "api-1")
	got := c.take()
	if len(got) == 0 || got[0] != "api-1 queued>running" {
		t.Errorf("a claim: %q", got)
	}
	_, err := s.Lost(t.Context(), "api-1", 1, true, "killed")
	mustNil(t, err)
	steps := len(reporting().Steps)
	c.want(t, "a lost process", "api-1 running>queued", fmt.Sprintf("api-1 lost in attempt 1 with %d steps", steps))
	if _, err := s.Lost(t.Context(), "api-1", 1, true, "killed"); err != nil {
		t.Fatal(err)
	}
	c.want(t, "the same again")
	r := mustClaim(t, s, "api-1")
	c.take()
	if err := s.FinishRun(t.Context(), "api-1", 1, store.Result{State: ci.Failed}); !errors.Is(err, store.ErrLate) {
		t.Fatal(err)
	}
	c.want(t, "a late result")
	mustFinish(t, s, r, ci.Succeeded)
	if got := c.take(); len(got) == 0 || got[0] != "api-1 running>succeeded" {
		t.Errorf("an end: %q", got)
	}

	due, _, err := s.DueEntries(time.Now().Add(time.Minute), 1)
	mustNil(t, err)
	begin := func() ci.OutboxEntry {
		t.Helper()
		e, ok, err := s.BeginAttempt(t.Context(), due[0].ID)
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		return e
	}
	begin()
	c.want(t, "an attempt that begins")
	e := begin()
	c.want(t, "one after a kill", e.Kind+" pending try 2 result  0")
	mustNil(t, s.FinishAttempt(t.Context(), e.ID, 1, store.AttemptResult{State: ci.OutboxSent, Status: 201}))
	c.want(t, "a late answer")
	mustNil(t, s.FinishAttempt(t.Context(), e.ID, 2, store.AttemptResult{State: ci.OutboxSent, Status: 201}))
	c.want(t, "an answer", e.Kind+" pending try 1 result sent 201", e.Kind+" sent try 0 result  0")
}
