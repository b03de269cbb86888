package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docket/scheduler/runner"
	"docket/store/ci"
)

// oddNames are file names that git quotes, that look like something else, or
// that only bytes can hold.
func oddNames() []string {
	return []string{
		"-rf", "A.txt", "a.txt", "a \"b\".txt", "con.txt", "critical/café.txt", "inval\xff\xfeid", "tab\there",
		strings.Repeat("n", 255), "x\n::error::y",
	}
}

func mustChange(t *testing.T, r *runner.Runner, g *repository, span runner.Span) []string {
	t.Helper()
	files, why, err := r.Changed(context.Background(), "api", g.bare, span)
	if err != nil || why != "" {
		t.Fatalf("%+v: %q, %v", span, why, err)
	}
	slices.Sort(files)
	return files
}

// Ensure that names come as the bytes they are, whatever they are, and that
// removed files and both names of a renamed one count.
func TestChanged_Names(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	before := g.head()
	for _, name := range oddNames() {
		path := filepath.Join(g.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	after := g.push()
	want := oddNames()
	slices.Sort(want)
	push := func(before, after string) runner.Span {
		return runner.Span{Commit: after, Ref: "refs/heads/main", Before: before, Base: "refs/heads/main"}
	}
	if got := mustChange(t, r, g, push(before, after)); !slices.Equal(got, want) {
		t.Errorf("changed %q\nwant    %q", got, want)
	}
	g.git("mv", "con.txt", "new.txt")
	g.git("rm", "-q", "-r", "critical")
	if got := mustChange(t, r, g, push(after, g.push())); !slices.Equal(got, []string{"con.txt", "critical/café.txt", "new.txt"}) {
		t.Errorf("renamed and removed: %q", got)
	}
	if got := mustChange(t, r, g, push(after, after)); len(got) != 0 {
		t.Errorf("nothing changed, and git says %q", got)
	}
}

// Ensure that a new branch and a pull request are compared with where they
// left the other branch, not with where that is now.
func TestChanged_SinceTheBase(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	g.git("checkout", "-q", "-b", "topic")
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(g.dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		g.git("add", "-A")
		g.git("commit", "-q", "-m", name)
	}
	topic := g.head()
	g.git("push", "-q", "origin", "topic", "HEAD:refs/pull/7/head")
	g.git("checkout", "-q", "main")
	onMain := g.commit("other", "x")
	pull := runner.Span{Commit: topic, Ref: "refs/pull/7/head", Base: "refs/heads/main"}
	if got := mustChange(t, r, g, pull); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the pull request changed %q", got)
	}
	if got := mustChange(t, r, g, runner.Span{Commit: topic, Ref: "refs/heads/topic", Base: "refs/heads/main"}); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the new branch changed %q", got)
	}
	// A forced push is compared with what was there.
	if got := mustChange(t, r, g, runner.Span{Commit: topic, Ref: "refs/heads/topic", Before: onMain, Base: "refs/heads/main"}); !slices.Equal(got, []string{"one", "other", "two"}) {
		t.Errorf("the forced push changed %q", got)
	}
}

// Ensure that what there is nothing to compare with for is said, and that a
// commit which is gone, and what is no ref or commit, is an error.
func TestChanged_Nothing(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	head, missing := g.head(), strings.Repeat("1", 40)
	g.git("checkout", "-q", "--orphan", "alone")
	g.git("commit", "-q", "--allow-empty", "-m", "alone")
	alone := g.head()
	g.git("push", "-q", "origin", "alone")
	for what, tt := range map[string]struct {
		span runner.Span
		why  string
		code ci.Code
	}{
		"the first push of the default branch": {runner.Span{Commit: head, Ref: "refs/heads/main", Base: "refs/heads/main"}, "branch main is new, and there is no other branch to compare it with", ""},
		"a base that is gone":                  {runner.Span{Commit: head, Ref: "refs/heads/main", Base: "refs/heads/gone"}, "branch gone does not exist any more, so there is nothing to compare with", ""},
		"a base without common history":        {runner.Span{Commit: alone, Ref: "refs/heads/alone", Base: "refs/heads/main"}, "branch main and the commit have no history in common", ""},
		"a before that is gone":                {runner.Span{Commit: head, Ref: "refs/heads/main", Before: missing}, "commit " + missing + ", which it is compared with, is not available any more", ""},
		"a commit that is gone":                {runner.Span{Commit: missing, Ref: "refs/heads/main", Before: head}, "", ci.CodeNotFound},
		"no commit":                            {runner.Span{Ref: "refs/heads/main", Before: head}, "", ci.CodeInvalid},
		"an option for a commit":               {runner.Span{Commit: "--output=x", Ref: "refs/heads/main", Before: head}, "", ci.CodeInvalid},
		"an option for a before":               {runner.Span{Commit: head, Ref: "refs/heads/main", Before: "--output=x"}, "", ci.CodeInvalid},
		"an option for a base":                 {runner.Span{Commit: head, Ref: "refs/heads/main", Base: "--output=x"}, "", ci.CodeInvalid},
		"an option for a ref":                  {runner.Span{Commit: head, Ref: "--output=x", Before: head}, "", ci.CodeInvalid},
	} {
		t.Run(what, func(t *testing.T) {
			files, why, err := r.Changed(context.Background(), "api", g.bare, tt.span)
			if len(files) > 0 || why != tt.why || ci.CodeOf(err) != tt.code {
				t.Errorf("Changed = %q, %q, %v", files, why, err)
			}
		})
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("an option was taken for one")
	}
}
