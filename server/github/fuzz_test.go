package github_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"docket/server/github"
	"docket/store/ci"
)

// Ensure that Parse takes exactly the texts that encoding/json takes, reads
// the same strings, and never lets a ref, a commit or an id through that is
// none.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `"x"`, `null`, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\ud83d\ude0a\n"]}`,
		`{"ref":"refs/heads/main","before":"` + zero + `","after":"` + sha1a + `","deleted":false,"head_commit":{"id":"` + sha1a + `","message":"m\nn"},` + acme + `}`,
		`{"action":"opened","pull_request":{"number":3,"title":"x",` + head + `,` + base + `},` + acme + `}`,
		`{"merge_group":{"head_sha":"` + sha1a + `","head_ref":"` + queue + `","base_ref":"refs/heads/main"},"check_run":{"app":{"id":1}},"release":{"tag_name":"v1"},"changes":{"owner":{"from":{"user":{"login":"x"}}}},` + acme + `}`,
		`{"repository":{"id":01}}`, `{"repository":{"id":-1}}`, "{\"a\":\"\x01\"}", `{"a":"\ud800"}`, ` { "a" : [ ] , "b" : { } } `,
	} {
		f.Add(0, []byte(s))
		f.Add(1, []byte(s))
		f.Add(3, []byte(s))
	}
	f.Fuzz(func(t *testing.T, kind int, payload []byte) {
		kinds := []string{"push", "pull_request", "ping", "merge_group", "check_run", "check_suite", "release", "repository_dispatch", "repository", "installation", "delete"}
		event := kinds[uint(kind)%uint(len(kinds))]
		e, err := github.Parse(event, payload)
		good := json.Valid(payload) && utf8.Valid(payload)
		if err != nil {
			var ce *ci.Error
			if !errors.As(err, &ce) || ce.Code != ci.CodeMalformed {
				t.Fatalf("error %v", err)
			}
			if good && !strings.Contains(ce.Message, ".id is not") {
				t.Fatalf("%q is JSON, but: %v", payload, err)
			}
			return
		}
		if !good {
			t.Fatalf("%q is not JSON, but was taken", payload)
		}
		if e.Ref != "" && !ci.ValidRef(e.Ref) || e.Commit != "" && !ci.IsCommit(e.Commit) || e.Before != "" && !ci.IsCommit(e.Before) || e.Repository.ID < 0 || e.Installation < 0 {
			t.Fatalf("Parse(%q) = %+v", payload, e)
		}
		if e.Problem == "" && (event == "push" || event == "pull_request") && (e.Repository.ID == 0 || e.Ref == "" || e.Commit == "" && !e.Deleted) {
			t.Fatalf("Parse(%q) = %+v without a problem", payload, e)
		}
		var v map[string]json.RawMessage
		if json.Unmarshal(payload, &v) == nil && v != nil {
			var action string
			if json.Unmarshal(v["action"], &action) == nil && len(action) <= 100 && action != "synchronized" && action != e.Action {
				t.Fatalf("action %q, want %q", e.Action, action)
			}
		}
	})
}
