package store_test

import (
	"encoding/json"
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that the status of a run whose pipeline file has mistakes is the
// first one's place and sentence, and that every other reason follows its word.
func TestStatus_OfAFailedPreparation(t *testing.T) {
	s := storetest.MustOpen(t)
	for i, tc := range []struct{ reason, want string }{
		{".docket.yml:3:5: a step has no run; give it one\n  3 |   - {name: a}\n    |     ^\n.docket.yml:9:1: more", "api-1 .docket.yml:3:5: a step has no run; give it one"},
		{"there is no file .docket.yml in commit abc; commit it", "api-2 failed: there is no file .docket.yml in commit abc; commit it"},
	} {
		a := pushed(string(rune('a'+i)), "api", "main", i, i+1)
		a.Drafts[0].State, a.Drafts[0].Job = ci.Preparing, &ci.Job{Pipeline: ".docket.yml"}
		run := mustAccept(t, s, a).Runs[0]
		if _, err := s.ResolveJob(t.Context(), run.ID, store.Resolution{Failed: tc.reason}); err != nil {
			t.Fatal(err)
		}
		entries := entriesOf(t, s, run.ID, ci.OutboxGitHubStatus)
		var p ci.StatusPayload
		if err := json.Unmarshal(entries[len(entries)-1].Payload, &p); err != nil || p.Description != tc.want || p.State != "failure" {
			t.Errorf("%s, %q, %v; want %q", p.State, p.Description, err, tc.want)
		}
	}
}
