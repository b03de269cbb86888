package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that the list of what is linked in, with its licences, is that of this
// go.mod, and that nothing has a licence that is not allowed.
func TestLicencesAreThoseOfTheBinary(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "packaging/licences.go")
	cmd.Dir = "../.."
	var said strings.Builder
	cmd.Stderr = &said
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if string(got) != mustRead(t, "../../packaging/THIRD_PARTY_LICENSES") {
		t.Error("packaging/THIRD_PARTY_LICENSES is of another go.mod; run `make licences` and commit what it writes")
	}
}

// Ensure that the vulnerabilities which are said to do no harm cannot.
func TestKnownVulnerabilitiesDoNoHarm(t *testing.T) {
	mustContain(t, "the list", mustRead(t, "../../packaging/vulnerabilities"), "GO-2026-6872 ", "GO-2026-6875 ")
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || path == "../../cmd/docket/licences_test.go" {
			return err
		}
		text := mustRead(t, path)
		for _, harm := range []string{".RealIP(", `"github.com/labstack/echo/v4/middleware"`, ".IPExtractor"} {
			if strings.Contains(text, harm) {
				t.Errorf("%s has %s: then packaging/vulnerabilities is wrong", path, harm)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
