package server_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that every real payload gets a receipt with a run or a reason, and
// never an error, whatever its project and installation are called.
func TestRealPayloads(t *testing.T) {
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		t.Skip("set DOCKET_PAYLOADS to a folder of EVENT/NAME.json payloads to run this test")
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		kind := filepath.Base(filepath.Dir(path))
		if kind == "gitea" || kind == "forgejo" {
			return nil
		}
		n++
		t.Run(kind+"/"+filepath.Base(path), func(t *testing.T) { testPayload(t, kind, path) })
		return nil
	})
	if err != nil || n == 0 {
		t.Errorf("%d payloads under %s: %v", n, dir, err)
	}
}

func testPayload(t *testing.T, kind, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Repository struct {
			FullName string `json:"full_name"`
		}
		Installation struct{ ID int64 }
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *ci.Config) {
		if p.Repository.FullName != "" {
			c.Projects[0].Repository = p.Repository.FullName
		}
		if p.Installation.ID != 0 {
			c.Integrations[0].Installations = []int64{p.Installation.ID}
		}
		c.Projects[0].On = ci.On{Push: &ci.OnPush{Branches: []string{"**"}, Tags: []string{"**"}}, PullRequest: &ci.OnPullRequest{}}
	})
	a := r.deliver(kind, "d-1", string(b))
	got := mustDecode[hookAnswer](t, a)
	if a.status != 202 || (got.Outcome == "accepted") != (len(got.Runs) == 1) || (got.Outcome == "ignored") != (got.Reason != "") {
		t.Errorf("answer %v", a)
	}
	if log := r.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the log: %s", log)
	}
	rec := r.receipts()
	if len(rec) != 1 || rec[0].BodyBytes != int64(len(b)) {
		t.Errorf("receipts %+v", rec)
	}
	t.Logf("%s %s", got.Outcome, got.Reason)
}
