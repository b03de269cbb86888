package ci_test

import (
	"strings"
	"testing"

	"docket/store/ci"
)

func TestIsCommit(t *testing.T) {
	for s, want := range map[string]bool{
		strings.Repeat("a", 40):                    true,
		strings.Repeat("0", 39) + "1":              true,
		strings.Repeat("f", 64):                    true,
		strings.Repeat("0", 40):                    false,
		strings.Repeat("0", 64):                    false,
		strings.Repeat("A", 40):                    false,
		strings.Repeat("g", 40):                    false,
		strings.Repeat("a", 39):                    false,
		strings.Repeat("a", 41):                    false,
		strings.Repeat("a", 39) + "\n":             false,
		"":                                         false,
		"--upload-pack=" + strings.Repeat("a", 26): false,
	} {
		if got := ci.IsCommit(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
	if ci.IsZeroCommit("") || ci.IsZeroCommit("0") || !ci.IsZeroCommit(strings.Repeat("0", 40)) {
		t.Error("the zero commit is 40 or 64 zeros and nothing else")
	}
	if ci.ShortCommit("abc") != "abc" || ci.ShortCommit(strings.Repeat("a", 40)) != "aaaaaaa" {
		t.Error("a short commit has seven digits")
	}
}

func TestSplitRef(t *testing.T) {
	for ref, want := range map[string][2]string{
		"refs/heads/main":            {"main", ""},
		"refs/heads/refs/heads/main": {"refs/heads/main", ""},
		"refs/heads/a/b":             {"a/b", ""},
		"refs/tags/v1":               {"", "v1"},
		"refs/pull/1/head":           {"", ""},
		"main":                       {"", ""},
		"":                           {"", ""},
		"refs/heads":                 {"", ""},
	} {
		if branch, tag := ci.SplitRef(ref); branch != want[0] || tag != want[1] {
			t.Errorf("%q: %q, %q", ref, branch, tag)
		}
	}
}
