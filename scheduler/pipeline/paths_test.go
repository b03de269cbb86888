package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func TestMatchPaths(t *testing.T) {
	only := func(p ...string) ci.Paths { return ci.Paths{Only: p} }
	ignore := func(p ...string) ci.Paths { return ci.Paths{Ignore: p} }
	files := func(p ...string) []string { return p }
	for what, tc := range map[string]struct {
		paths  ci.Paths
		files  []string
		ok     bool
		reason string
	}{
		"one of them":                 {only("docs/**"), files("a.go", "docs/x/y.md"), true, `the changed file "docs/x/y.md" matches "docs/**" in on.push.paths`},
		"none of three":               {only("docs/**"), files("a", "b", "c"), false, `none of the 3 changed files matches on.push.paths [docs/**]`},
		"the only one does not":       {only("docs/**", "*.md"), files("src/a.md"), false, `the only changed file, "src/a.md", does not match on.push.paths [docs/** *.md]`},
		"nothing changed":             {only("**"), nil, false, `no file changed, so none matches on.push.paths [**]`},
		"another case of letters":     {only("README.md"), files("readme.md"), false, `the only changed file, "readme.md", does not match on.push.paths [README.md]`},
		"taken out again":             {only("src/**", "!src/**/*.md"), files("src/a/b.md"), false, `the only changed file, "src/a/b.md", does not match on.push.paths [src/** !src/**/*.md]`},
		"not taken out":               {only("src/**", "!src/**/*.md"), files("src/a/b.md", "src/a.go"), true, `the changed file "src/a.go" matches "src/**" in on.push.paths`},
		"ignored, all":                {ignore("docs/**"), files("docs/a", "docs/b"), false, `none of the 2 changed files matches anything but on.push.paths_ignore [docs/**]`},
		"ignored, not all":            {ignore("docs/**"), files("docs/a", "src/b"), true, `the changed file "src/b" matches none of on.push.paths_ignore [docs/**]`},
		"ignored and let in":          {ignore("docs/**", "!docs/api/**"), files("docs/api/x"), true, `the changed file "docs/api/x" matches none of on.push.paths_ignore [docs/** !docs/api/**]`},
		"both lists":                  {ci.Paths{Only: []string{"src/**"}, Ignore: []string{"**/*.md"}}, files("src/a.md", "x.go"), false, `none of the 2 changed files matches on.push.paths [src/**] and anything but on.push.paths_ignore [**/*.md]`},
		"both lists, and one":         {ci.Paths{Only: []string{"src/**"}, Ignore: []string{"**/*.md"}}, files("src/a.md", "src/x.go"), true, `the changed file "src/x.go" matches "src/**" in on.push.paths`},
		"an empty list":               {ci.Paths{Only: []string{}}, files("a"), false, `the only changed file, "a", does not match on.push.paths []`},
		"a name that is not ASCII":    {only("critical/*"), files("critical/café.txt"), true, `the changed file "critical/café.txt" matches "critical/*" in on.push.paths`},
		"a name with quotes":          {only("*.txt"), files(`a "b".txt`), true, `the changed file "a \"b\".txt" matches "*.txt" in on.push.paths`},
		"a name with a line in it":    {only("x*"), files("x\n::error::y"), true, `the changed file "x\n::error::y" matches "x*" in on.push.paths`},
		"a name that is no UTF-8":     {only("a/*.bin"), files("a/\xff\xfe.bin"), true, `the changed file "a/\xff\xfe.bin" matches "a/*.bin" in on.push.paths`},
		"a name like an option":       {only("-rf"), files("-rf"), true, `the changed file "-rf" matches "-rf" in on.push.paths`},
		"a name with a backslash":     {only(`a\\b`), files(`a\b`), true, `the changed file "a\\b" matches "a\\\\b" in on.push.paths`},
		"a name of pattern's letters": {only(`\[x\]`), files(`[x]`), true, `the changed file "[x]" matches "\\[x\\]" in on.push.paths`},
	} {
		t.Run(what, func(t *testing.T) {
			ok, reason := pipeline.MatchPaths(tc.paths, "on.push", tc.files)
			if ok != tc.ok || reason != tc.reason {
				t.Errorf("MatchPaths = %v, %s\nwant         %v, %s", ok, reason, tc.ok, tc.reason)
			}
		})
	}
}

// Ensure that a filter decides by each file alone: the order of files and of
// those that do not count never matters, and one more file never stops what ran.
func TestMatchPaths_DecidesByEachFileAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[ab](/[ab]){0,3}`)
		pattern := rapid.Map(rapid.SampledFrom([]string{"a", "a/*", "a/**", "**", "b/**", "!a/b", "!**/b", "*"}), func(s string) string { return s })
		paths := ci.Paths{Only: rapid.SliceOfN(pattern, 0, 3).Draw(rt, "only"), Ignore: rapid.SliceOfN(pattern, 0, 3).Draw(rt, "ignore")}
		if rapid.Bool().Draw(rt, "no only") {
			paths.Only = nil
		}
		list := rapid.SliceOfN(name, 0, 6).Draw(rt, "files")
		ok, reason := pipeline.MatchPaths(paths, "on.push", list)
		want := slices.ContainsFunc(list, func(f string) bool {
			one, _ := pipeline.MatchPaths(paths, "on.push", []string{f})
			return one
		})
		if ok != want || reason == "" || strings.HasSuffix(reason, ".") {
			rt.Fatalf("MatchPaths = %v, %s; want %v", ok, reason, want)
		}
		slices.Reverse(list)
		if again, _ := pipeline.MatchPaths(paths, "on.push", list); again != ok {
			rt.Fatal("another order, another answer")
		}
	})
}

func TestMatch_Paths(t *testing.T) {
	push := ci.On{Push: &ci.OnPush{Branches: []string{"main"}, Tags: []string{"*"}, Paths: ci.Paths{Only: []string{"src/**"}}}}
	pull := ci.On{PullRequest: &ci.OnPullRequest{Paths: ci.Paths{Ignore: []string{"docs/**"}}}}
	changed := func(e *ci.Event, files ...string) *ci.Event {
		e.Changed = &ci.Changed{Paths: files}
		return e
	}
	mustMatch(t, map[string]matchCase{
		"a push that changed one": {push, changed(branchPush("main"), "a", "src/b"), true, `branch "main" matches "main" in on.push.branches, and the changed file "src/b" matches "src/**" in on.push.paths`},
		"a push that did not":     {push, changed(branchPush("main"), "a", "b"), false, `none of the 2 changed files matches on.push.paths [src/**]`},
		"a push that does not say": {push, branchPush("main"), true,
			`branch "main" matches "main" in on.push.branches; git is asked before it runs whether a changed file matches on.push.paths [src/**]`},
		"another branch that did": {push, changed(branchPush("x"), "src/b"), false, `branch "x" matches none of on.push.branches [main]`},
		"a marker goes first":     {push, with(changed(branchPush("main"), "a"), func(e *ci.Event) { e.Message = "[skip ci]" }), false, "[skip ci] in the first line of the head commit"},
		"a tag has no files":      {push, tagPush("v1"), true, `tag "v1" matches "*" in on.push.tags`},
		"a pull request": {pull, pullRequest("opened", "main"), true,
			`pull request into "main" matches on.pull_request, which takes every base branch; git is asked before it runs whether a changed file matches anything but on.pull_request.paths_ignore [docs/**]`},
		"a pull request that says what": {pull, changed(pullRequest("opened", "main"), "docs/x"), false, `the only changed file, "docs/x", does not match anything but on.pull_request.paths_ignore [docs/**]`},
	})
}
