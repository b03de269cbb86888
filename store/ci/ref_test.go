package ci_test

import (
	"os/exec"
	"strings"
	"testing"

	"docket/store/ci"
)

func TestRefFault(t *testing.T) {
	long := "refs/heads/" + strings.Repeat("a/", 506) + "a"
	if len(long) != ci.MaxRef {
		t.Fatalf("the long ref has %d bytes", len(long))
	}
	for ref, want := range map[string]string{
		"refs/heads/main":               "",
		"refs/heads/a/b_c-d#e+f%2e%2e":  "",
		"refs/heads/HEAD":               "",
		"refs/heads/refs/heads/main":    "",
		"refs/heads/@":                  "",
		"refs/heads/-x":                 "",
		"refs/heads/日本語/é":              "",
		"refs/heads/a;$(touch${IFS}p)&": "",
		"refs/tags/v1.0":                "",
		"refs/pull/7/head":              "",
		long:                            "",
		long + "a":                      "is longer than 1024 bytes",
		"":                              "does not begin with refs/",
		"main":                          "does not begin with refs/",
		"refs/":                         "names no branch, tag or other ref",
		"refs/heads":                    "names no branch, tag or other ref",
		"refs/heads/":                   "has an empty part between slashes or at its end",
		"refs/heads//a":                 "has an empty part between slashes or at its end",
		"refs/heads/a/":                 "has an empty part between slashes or at its end",
		"refs/heads/a..b":               `contains ".."`,
		"refs/heads/a@{1}":              `contains "@{"`,
		"refs/heads/a.":                 "ends with a dot",
		"refs/heads/.a":                 "has a part that begins with a dot",
		"refs/heads/a.lock/b":           "has a part that ends with .lock",
		"refs/heads/a b":                "contains a space",
		"refs/heads/a\tb":               "contains a control character",
		"refs/heads/a\x7fb":             "contains a control character",
		"refs/heads/a\x00":              "contains a control character",
		"refs/heads/a\u0085b":           "contains a control character",
		"refs/heads/a~1":                "contains ~",
		"refs/heads/a^":                 "contains ^",
		"refs/heads/a:b":                "contains :",
		"refs/heads/a?":                 "contains ?",
		"refs/heads/a*":                 "contains *",
		"refs/heads/a[b":                "contains [",
		`refs/heads/a\b`:                `contains \`,
		"refs/heads/\xe9":               "is not UTF-8",
	} {
		if got := ci.RefFault(ref); got != want {
			t.Errorf("RefFault(%q) = %q, want %q", ref, got, want)
		}
	}
}

// Ensure that whatever ValidRef takes, git takes too.
func FuzzValidRef(f *testing.F) {
	for _, s := range []string{"main", "a/b", ".a", "a.lock", "a..b", "-x", "@", "a@{", "é", "a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		ref := "refs/heads/" + name
		if !ci.ValidRef(ref) {
			return
		}
		if out, err := exec.Command("git", "check-ref-format", ref).CombinedOutput(); err != nil {
			t.Errorf("git refuses %q: %v %s", ref, err, out)
		}
	})
}
