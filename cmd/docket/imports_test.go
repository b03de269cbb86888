package main

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport is the plan of the house: which of docket's own packages each may
// import. A pattern stands for the package and everything under it.
var mayImport = map[string][]string{
	"docket/store/ci":                        {},
	"docket/store":                           {"docket/store/ci"},
	"docket/store/storetest":                 {"docket/store", "docket/store/ci"},
	"docket/scheduler/pipeline":              {"docket/store/ci"},
	"docket/scheduler/recovery":              {"docket/store/ci"},
	"docket/scheduler/runner":                {"docket/store/ci"},
	"docket/server/payload":                  {"docket/store/ci"},
	"docket/server/github":                   {"docket/store/ci", "docket/server/payload"},
	"docket/server/gitea":                    {"docket/store/ci", "docket/server/payload"},
	"docket/web":                             {"docket/store/ci"},
	"docket/scheduler":                       {"docket/store", "docket/store/ci", "docket/scheduler/pipeline", "docket/scheduler/recovery", "docket/scheduler/runner"},
	"docket/dispatcher":                      {"docket/store", "docket/store/ci", "docket/dispatcher/forge"},
	"docket/dispatcher/forge":                {"docket/store/ci"},
	"docket/dispatcher/forge/forgetest":      {},
	"docket/dispatcher/tracer":               {"docket/store", "docket/store/ci"},
	"docket/dispatcher/tracer/collectortest": {},
	"docket/server":                          {"docket/store", "docket/store/ci", "docket/scheduler/pipeline", "docket/server/gitea", "docket/server/github", "docket/web"},
	"docket/cmd/docket":                      nil, // everything
}

// onlyImporter names the one package that may import a library.
var onlyImporter = map[string]string{
	"go.etcd.io/bbolt":            "docket/store",
	"github.com/labstack/echo/v4": "docket/server",
	"github.com/spf13/cobra":      "docket/cmd/docket",
	"go.opentelemetry.io/otel":    "docket/dispatcher/tracer",
}

// Ensure that no package reaches into a room that is closed to it: the three
// workers meet in the store alone.
func TestImportsFollowThePlan(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "docket/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg, imports := fields[0], fields[1:]
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package %s has no place in the plan", pkg)
			continue
		}
		seen++
		for _, imp := range imports {
			checkImport(t, pkg, imp, allowed)
		}
	}
	if seen < 8 {
		t.Fatalf("go list showed only %d packages:\n%s", seen, out)
	}
}

func checkImport(t *testing.T, pkg, imp string, allowed []string) {
	t.Helper()
	for lib, owner := range onlyImporter {
		if (imp == lib || strings.HasPrefix(imp, lib+"/")) && pkg != owner {
			t.Errorf("%s imports %s, which is %s's alone", pkg, imp, owner)
		}
	}
	if !strings.HasPrefix(imp, "docket/") {
		if pkg == "docket/store/ci" && strings.Contains(strings.Split(imp, "/")[0], ".") {
			t.Errorf("%s imports %s; the vocabulary needs the standard library only", pkg, imp)
		}
		return
	}
	if allowed == nil {
		return
	}
	for _, a := range allowed {
		if ok, _ := path.Match(a, imp); ok {
			return
		}
	}
	t.Errorf("%s imports %s, which the plan does not allow", pkg, imp)
}

// Ensure that time zones are known where the machine has no data of them, as
// in a minimal container.
func TestZoneDataIsBuiltIn(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "docket/cmd/docket").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !slices.Contains(strings.Fields(string(out)), "time/tzdata") {
		t.Error("time/tzdata is not part of the program")
	}
}
