package ci_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/store/ci"
)

func TestParseRunID(t *testing.T) {
	for id, want := range map[string]struct {
		project string
		number  uint64
	}{
		"api-1":                    {"api", 1},
		"api-2-1":                  {"api-2", 1},
		"a--7":                     {"a-", 7},
		"x-18446744073709551615":   {"x", 18446744073709551615},
		"":                         {},
		"api":                      {},
		"api-":                     {},
		"-1":                       {},
		"api-0":                    {},
		"api-01":                   {},
		"api-+1":                   {},
		"api-1 ":                   {},
		"api-0x1":                  {},
		"api-1_0":                  {},
		"api-18446744073709551616": {},
		"api-١":                    {},
	} {
		project, number, err := ci.ParseRunID(id)
		if project != want.project || number != want.number || (err == nil) != (want.number > 0) {
			t.Errorf("%q: %q, %d, %v", id, project, number, err)
		}
		if err != nil && ci.CodeOf(err) != ci.CodeNotFound {
			t.Errorf("%q: code %s", id, ci.CodeOf(err))
		}
	}
}

// Ensure that an id says the same project and number to everyone.
func TestParseRunID_IsTheInverseOfRunID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		project := rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,20}`).Draw(t, "project")
		number := rapid.Uint64Min(1).Draw(t, "number")
		p, n, err := ci.ParseRunID(ci.RunID(project, number))
		if err != nil || p != project || n != number {
			t.Fatalf("%q, %d, %v", p, n, err)
		}
	})
}

// Ensure that what only docket reads leaves it in no form.
func TestRun_PublicKeepsTheInsideIn(t *testing.T) {
	r := ci.Run{
		ID: "api-1",
		Internal: ci.Internal{
			Seq: 1, Integration: "INSIDE", Context: "INSIDE", Scope: "INSIDE", Boot: "INSIDE", Title: "INSIDE",
			Process: &ci.Process{Machine: "INSIDE"}, Job: &ci.Job{Pipeline: "INSIDE"},
		},
	}
	b, err := json.Marshal(r.Public())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "INSIDE") || strings.Contains(string(b), "internal") {
		t.Fatalf("%s", b)
	}
	if !strings.Contains(string(b), `"steps":[]`) || !strings.Contains(string(b), `"inputs":{}`) || !strings.Contains(string(b), `"finished_at":null`) {
		t.Fatalf("a list or a map is null, or a time is not: %s", b)
	}
	if r.Internal.Scope != "INSIDE" {
		t.Fatal("the run itself was changed")
	}
}
