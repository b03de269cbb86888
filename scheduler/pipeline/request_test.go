package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func mustNormalize(t *testing.T, p *ci.Project, r ci.Request) pipeline.Normalized {
	t.Helper()
	n, err := pipeline.Normalize(p, r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNormalize_SpellsOutDefaults(t *testing.T) {
	_, p := config()
	want := pipeline.Normalized{Project: "api", Request: ci.Request{Branch: "main", Inputs: map[string]string{"target": "staging", "note": ""}}}
	same := map[string]ci.Request{
		"nothing":            {},
		"the branch":         {Branch: "main"},
		"the inputs":         {Inputs: map[string]string{"target": "staging", "note": ""}},
		"everything":         {Branch: "main", Inputs: map[string]string{"note": "", "target": "staging"}},
		"an empty input map": {Inputs: map[string]string{}},
	}
	for what, r := range same {
		n := mustNormalize(t, p, r)
		if diff := cmp.Diff(want, n); diff != "" {
			t.Errorf("%s: want -, got +\n%s", what, diff)
		}
		if n.Digest() != want.Digest() || !strings.HasPrefix(n.Digest(), "sha256:") || len(n.Digest()) != 71 {
			t.Errorf("%s: digest %s, want %s", what, n.Digest(), want.Digest())
		}
	}
}

func TestNormalize_DigestTellsRequestsApart(t *testing.T) {
	_, p := config()
	other := *p
	other.Name = "web"
	seen := map[string]string{}
	for what, n := range map[string]pipeline.Normalized{
		"nothing":         mustNormalize(t, p, ci.Request{}),
		"another project": mustNormalize(t, &other, ci.Request{}),
		"a branch":        mustNormalize(t, p, ci.Request{Branch: "v1"}),
		"a tag":           mustNormalize(t, p, ci.Request{Tag: "v1"}),
		"a commit":        mustNormalize(t, p, ci.Request{Commit: shaA}),
		"an input":        mustNormalize(t, p, ci.Request{Inputs: map[string]string{"target": "production"}}),
		"another input":   mustNormalize(t, p, ci.Request{Inputs: map[string]string{"note": "production"}}),
		"a reason":        mustNormalize(t, p, ci.Request{Reason: "x"}),
	} {
		if with, ok := seen[n.Digest()]; ok {
			t.Errorf("%s and %s have one digest", what, with)
		}
		seen[n.Digest()] = what
	}
}

func TestNormalize_DoesNotChangeTheRequest(t *testing.T) {
	_, p := config()
	given := map[string]string{}
	n := mustNormalize(t, p, ci.Request{Inputs: given})
	n.Inputs["note"] = "x"
	if len(given) != 0 {
		t.Error("the request's inputs were changed")
	}
}

func TestNormalize_Takes(t *testing.T) {
	_, p := config()
	for what, r := range map[string]ci.Request{
		"a branch with slashes":      {Branch: "a/b/c"},
		"a branch that hurts":        {Branch: "a;$(touch${IFS}x)`id`&|"},
		"a branch of 1000 bytes":     {Branch: strings.Repeat("a", 1000)},
		"a tag and a SHA-256 commit": {Tag: "v1", Commit: strings.Repeat("ab", 32)},
		"an input at the limit":      {Inputs: map[string]string{"note": strings.Repeat("x", ci.MaxInput)}},
		"an input with line breaks":  {Inputs: map[string]string{"note": "a\r\nb\x1b"}},
		"a reason at the limit":      {Reason: strings.Repeat("x", 1000)},
		"a reason of several lines":  {Reason: "a\n\tb é 😊"},
	} {
		if _, err := pipeline.Normalize(p, r); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNormalize_Refuses(t *testing.T) {
	for what, tc := range map[string]struct {
		request ci.Request
		says    string
	}{
		"branch and tag":               {ci.Request{Branch: "main", Tag: "v1"}, "both given"},
		"a full ref as branch":         {ci.Request{Branch: "refs/heads/main"}, "short name"},
		"a full ref as tag":            {ci.Request{Tag: "refs/tags/v1"}, "short name"},
		"an option as branch":          {ci.Request{Branch: "--upload-pack=x"}, "begins with a dash"},
		"a branch with a space":        {ci.Request{Branch: "a b"}, "contains a space"},
		"a branch with two dots":       {ci.Request{Branch: "../../x"}, `contains ".."`},
		"a branch with a line break":   {ci.Request{Branch: "a\n"}, "control character"},
		"a branch with a colon":        {ci.Request{Branch: "a:b"}, "contains :"},
		"a branch that ends in .lock":  {ci.Request{Branch: "a.lock"}, ".lock"},
		"a branch of one slash":        {ci.Request{Branch: "/"}, "empty part"},
		"a branch too long":            {ci.Request{Branch: strings.Repeat("a", 1001)}, "longer than 1000 bytes"},
		"a tag too long":               {ci.Request{Tag: strings.Repeat("a", 1001)}, "longer than 1000 bytes"},
		"a branch that is not UTF-8":   {ci.Request{Branch: "a\xff"}, "UTF-8"},
		"a short commit":               {ci.Request{Commit: shaA[:7]}, "all 40 or 64"},
		"an upper-case commit":         {ci.Request{Commit: strings.ToUpper(shaA)}, "lower-case"},
		"a commit of zeros":            {ci.Request{Commit: strings.Repeat("0", 40)}, "full commit id"},
		"an undeclared input":          {ci.Request{Inputs: map[string]string{"x": ""}}, `input "x" is not declared; project "api" takes target, note`},
		"an input's name in capitals":  {ci.Request{Inputs: map[string]string{"TARGET": "staging"}}, "not declared"},
		"a value that is no option":    {ci.Request{Inputs: map[string]string{"target": "moon"}}, "choose one of staging, production"},
		"an empty value of options":    {ci.Request{Inputs: map[string]string{"target": ""}}, "choose one of"},
		"a value too long":             {ci.Request{Inputs: map[string]string{"note": strings.Repeat("x", ci.MaxInput+1)}}, "32768"},
		"a value with a NUL":           {ci.Request{Inputs: map[string]string{"note": "a\x00"}}, "NUL"},
		"a value that is not UTF-8":    {ci.Request{Inputs: map[string]string{"note": "\xff"}}, "UTF-8"},
		"a reason too long":            {ci.Request{Reason: strings.Repeat("x", 1001)}, "may have 1000"},
		"a reason with an escape":      {ci.Request{Reason: "a\x1b[2J"}, "U+001B"},
		"a reason with a return":       {ci.Request{Reason: "a\r"}, "U+000D"},
		"a reason with a delete":       {ci.Request{Reason: "\x7f"}, "U+007F"},
		"a reason that is not UTF-8":   {ci.Request{Reason: "\xff"}, "UTF-8"},
		"the first of two bad inputs":  {ci.Request{Inputs: map[string]string{"b": "", "a": ""}}, `input "a"`},
		"a bad branch before an input": {ci.Request{Branch: "a b", Inputs: map[string]string{"b": ""}}, "space"},
	} {
		t.Run(what, func(t *testing.T) {
			_, p := config()
			n, err := pipeline.Normalize(p, tc.request)
			if ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(ci.MessageOf(err), tc.says) {
				t.Errorf("Normalize = %+v, %v; want an error that says %q", n, err, tc.says)
			}
		})
	}
	t.Run("no branch and no default", func(t *testing.T) {
		_, err := pipeline.Normalize(&ci.Project{Name: "api"}, ci.Request{})
		if ci.CodeOf(err) != ci.CodeInvalid {
			t.Error(err)
		}
	})
	t.Run("an input where none is declared", func(t *testing.T) {
		_, err := pipeline.Normalize(&ci.Project{Name: "api", DefaultBranch: "main"}, ci.Request{Inputs: map[string]string{"x": ""}})
		if ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(err.Error(), "takes none") {
			t.Error(err)
		}
	})
}
