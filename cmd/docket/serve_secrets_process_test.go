package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"docket/store/ci"
)

// Ensure that a secret that is replaced is in force without a signal, that the
// old one is not any more, and that one that is empty for a moment changes
// nothing.
func TestSecretIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil) })
	d.start()
	commit := repo.commit("refs/heads/main")
	file := filepath.Join(d.dir, "hook.secret")
	mustWrite(t, file, "")
	d.waitLog("configuration refused")
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	d.waitRun("api-1", ci.Succeeded)

	mustWrite(t, file+".new", "another secret")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old secret is not accepted any more", func() bool {
		return d.deliver(delivery{event: ci.EventPush, id: "d-2", body: repo.push("refs/heads/main", "", commit)}).status == http.StatusUnauthorized
	})
	mustWrite(t, file, hookSecret)
	eventually(t, "the first secret is accepted again", func() bool {
		return d.deliver(delivery{event: ci.EventPush, id: "d-3", body: repo.push("refs/heads/main", "", commit)}).status == http.StatusAccepted
	})
}
