package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that refs resolve to exactly what they name.
func TestResolve(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, data := mustRunner(t)
	head := g.head()
	g.git("tag", "-a", "-m", "x", "v1")
	g.git("tag", "-a", "-m", "x", "v2", "v1") // a tag of a tag
	g.git("tag", "light")
	g.git("push", "-q", "origin", "--tags")
	second := g.commit("f", "x")
	g.git("push", "-q", "origin", "HEAD:refs/heads/refs/heads/other")
	g.git("push", "-q", "origin", "HEAD:refs/pull/7/head")
	for ref, want := range map[string]string{
		"refs/heads/main": second, "refs/tags/v1": head, "refs/tags/v2": head, "refs/tags/light": head, "refs/pull/7/head": second,
		"refs/heads/refs/heads/other": second,
	} {
		if got, err := r.Resolve(context.Background(), g.bare, ref); got != want || err != nil {
			t.Errorf("%s resolved to %s, %v; want %s", ref, got, err, want)
		}
	}
	_, err := r.Resolve(context.Background(), g.bare, "refs/heads/other")
	if ci.CodeOf(err) != ci.CodeNotFound || ci.MessageOf(err) != "branch other does not exist in "+g.bare {
		t.Errorf("a branch that is not there: %v", err)
	}
	for _, ref := range []string{"main", "refs/heads/a b", "refs/heads/*", "refs/heads/a..b", "--upload-pack=x", "refs/heads/x.lock", "refs/heads/", "refs/heads/a:b", "refs/heads/a\nb"} {
		if _, err := r.Resolve(context.Background(), g.bare, ref); ci.CodeOf(err) != ci.CodeInvalid {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(data, "workspaces", ".scratch")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Ensure that a file is read at the exact commit, and only a file.
func TestReadFile(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	first := g.commit("dir/.docket.yml", "first")
	if err := os.Symlink("/etc/passwd", filepath.Join(g.dir, "link")); err != nil {
		t.Fatal(err)
	}
	second := g.commit("dir/.docket.yml", "second")
	for name, tt := range map[string]struct {
		commit, path string
		limit        int64
		want         string
		code         ci.Code
	}{
		"the first commit":   {first, "dir/.docket.yml", 100, "first", ""},
		"the second":         {second, "dir/.docket.yml", 6, "second", ""},
		"over the limit":     {second, "dir/.docket.yml", 5, "", ci.CodeTooLarge},
		"missing":            {first, "link", 100, "", ci.CodeNotFound},
		"a symbolic link":    {second, "link", 100, "", ci.CodeInvalid},
		"through a link":     {second, "link/x", 100, "", ci.CodeNotFound},
		"a directory":        {second, "dir", 100, "", ci.CodeInvalid},
		"outside":            {second, "../x", 100, "", ci.CodeInvalid},
		"absolute":           {second, "/etc/passwd", 100, "", ci.CodeInvalid},
		"a pattern":          {second, "dir/*", 100, "", ci.CodeNotFound},
		"magic":              {second, ":(glob)**", 100, "", ci.CodeNotFound},
		"an option":          {second, "--help", 100, "", ci.CodeNotFound},
		"no commit":          {"main", "README", 100, "", ci.CodeInvalid},
		"a commit not there": {strings.Repeat("1", 40), "README", 100, "", ci.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.ReadFile(context.Background(), "api", g.bare, "refs/heads/main", tt.commit, tt.path, tt.limit)
			if string(got) != tt.want || ci.CodeOf(err) != tt.code {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

// Ensure that a tag object is peeled only while its tag still points to it.
func TestPeel(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	g.git("tag", "-a", "-m", "one", "v1")
	g.git("push", "-q", "origin", "v1")
	object := g.git("rev-parse", "v1")
	if got, err := r.Peel(context.Background(), g.bare, "refs/tags/v1", object); err != nil || got != g.head() {
		t.Fatalf("peeled to %q, %v", got, err)
	}
	g.git("tag", "-f", "-a", "-m", "two", "v1")
	g.git("push", "-q", "--force", "origin", "v1")
	if _, err := r.Peel(context.Background(), g.bare, "refs/tags/v1", object); ci.CodeOf(err) != ci.CodeNotFound {
		t.Fatalf("a moved tag: %v", err)
	}
}
