package ci_test

import (
	"encoding/json"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that equal specs have equal digests, also after they were kept as
// JSON, and that every field counts.
func TestSpec_Digest(t *testing.T) {
	full := func() ci.Spec {
		return ci.Spec{
			Version: 1, CloneURL: "u", Git: ci.GitOptions{Depth: 1}, Timeout: ci.Duration(time.Minute), Grace: ci.Duration(time.Second),
			Env: map[string]string{"A": "1", "B": "2", "C": "3"}, Secrets: []string{"S"}, Steps: []ci.Step{{Name: "n", Run: "r"}},
			Report: true, Notify: []ci.NotifyTarget{{Kind: "webhook", Target: "t", Events: []string{ci.RunFailed}}},
		}
	}
	spec := full()
	want := spec.Digest()
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var back ci.Spec
	if err := json.Unmarshal(b, &back); err != nil || back.Digest() != want {
		t.Fatalf("kept and read: %s, want %s, %v", back.Digest(), want, err)
	}
	for what, change := range map[string]func(*ci.Spec){
		"version": func(s *ci.Spec) { s.Version = 2 }, "clone URL": func(s *ci.Spec) { s.CloneURL = "v" },
		"submodules": func(s *ci.Spec) { s.Git.Submodules = true }, "LFS": func(s *ci.Spec) { s.Git.LFS = true },
		"depth": func(s *ci.Spec) { s.Git.Depth = 0 }, "timeout": func(s *ci.Spec) { s.Timeout++ }, "grace": func(s *ci.Spec) { s.Grace++ },
		"a variable": func(s *ci.Spec) { s.Env["A"] = "2" }, "a secret's name": func(s *ci.Spec) { s.Secrets[0] = "T" },
		"a step's script": func(s *ci.Spec) { s.Steps[0].Run = "q" }, "deploy": func(s *ci.Spec) { s.Steps[0].Deploy = true },
		"reporting": func(s *ci.Spec) { s.Report = false }, "who is told": func(s *ci.Spec) { s.Notify[0].Target = "u" },
	} {
		s := full()
		if change(&s); s.Digest() == want {
			t.Errorf("%s does not count", what)
		}
	}
}

func TestSameRepository(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"Foo/Bar", "foo/bar"}:     true,
		{"FOO/BAR", "foo/bar.git"}: true,
		{"foo/bar", "foo/baz"}:     false,
		{"foo/bari", "foo/barı"}:   false,
		{"foo/BARI", "foo/barı"}:   false,
		{"foo/K", "foo/\u212a"}:    false,
	} {
		if got := ci.SameRepository(pair[0], pair[1]); got != want {
			t.Errorf("%q: %v", pair, got)
		}
	}
}
