package gitea_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"docket/server/gitea"
	"docket/store/ci"
)

// Ensure that Parse takes exactly the texts that encoding/json takes and never
// lets a ref, a commit or an id through that is none, nor a pull request that
// could be a stranger's pass for our own.
func FuzzParse(f *testing.F) {
	for i, s := range []string{
		`{}`, `null`, `{"ref":"refs/heads/main","before":"` + zero + `","after":"` + sha1a + `","head_commit":null,` + acme + `}`,
		pulled("label_updated", head, base, `,"labels":[{"name":"a"}],"draft":true,"flow":1`),
		`{"ref":"v1","ref_type":"tag","sha":"` + sha1a + `",` + acme + `}`,
		`{"action":"published","release":{"tag_name":"v1","name":"x"},` + acme + `}`,
	} {
		f.Add(i, []byte(s))
	}
	f.Fuzz(func(t *testing.T, kind int, payload []byte) {
		event := []string{"push", "pull_request", "create", "delete", "release", "wiki"}[uint(kind)%6]
		e, err := gitea.Parse(event, payload)
		good := json.Valid(payload) && utf8.Valid(payload)
		if err != nil {
			if ci.CodeOf(err) != ci.CodeMalformed || good && !strings.Contains(ci.MessageOf(err), ".id is not") {
				t.Fatalf("%q: %v", payload, err)
			}
			return
		}
		if !good {
			t.Fatalf("%q is not JSON, but was taken", payload)
		}
		if e.Ref != "" && !ci.ValidRef(e.Ref) || e.Commit != "" && !ci.IsCommit(e.Commit) || e.Before != "" && !ci.IsCommit(e.Before) || e.Repository.ID < 0 || e.Installation != 0 {
			t.Fatalf("Parse(%q) = %+v", payload, e)
		}
		if e.Problem == "" && event != "wiki" && (e.Repository.ID == 0 || e.Ref == "" && event != "release") {
			t.Fatalf("Parse(%q) = %+v without a problem", payload, e)
		}
		if pr := e.PullRequest; pr != nil && !pr.Fork && (pr.HeadRepo.ID <= 0 || e.Problem == "" && pr.HeadRepo.ID != e.Repository.ID) {
			t.Fatalf("Parse(%q) = %+v is no fork", payload, pr)
		}
	})
}
