package forge_test

import (
	"strings"
	"testing"

	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

func TestARepositoryIsReadWithItsID(t *testing.T) {
	r := newRig(t)
	got, err := r.Repository(t.Context(), r.project())
	if err != nil || got.ID == 0 || !ci.SameRepository(got.FullName, r.project().Repository) {
		t.Errorf("%+v, %v", got, err)
	}
	gone := r.project()
	gone.Repository = "acme/gone"
	if _, err := r.Repository(t.Context(), gone); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestACommitsMessageIsRead(t *testing.T) {
	r := newRig(t)
	commit := strings.Repeat("1", 40)
	r.hub.SetMessage(r.project().Repository, commit, "docs\n\n[skip ci]")
	if got, err := r.Message(t.Context(), r.project(), commit); err != nil || got != "docs\n\n[skip ci]" {
		t.Errorf("%q, %v", got, err)
	}
	r.hub.HideCommit(commit, true)
	if _, err := r.Message(t.Context(), r.project(), commit); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("one that is not known: %v", err)
	}
}

func TestWhatTheWebhooksNeedIsSaid(t *testing.T) {
	r := newRig(t)
	for _, status := range []int{403, 404} {
		r.hub.Script("GET /repos/acme/api/hooks", forgetest.Message(status, "Resource not accessible by personal access token"))
		_, err := r.Hook(t.Context(), r.project(), "https://ci.example.org")
		if err == nil || !strings.Contains(ci.MessageOf(err), "Webhooks: read and write") {
			t.Errorf("%d: %v", status, err)
		}
	}
}
