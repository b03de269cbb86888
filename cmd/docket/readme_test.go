package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"docket/scheduler/runner"
)

func mustReadme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ensure that the README names every command and every variable of a step.
func TestReadmeIsComplete(t *testing.T) {
	readme := mustReadme(t)
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: func(string) string { return "" }}
	for _, noun := range newRoot(a).Commands() {
		if noun.Hidden || noun.Name() == "help" {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `docket [^|]*\\b" + noun.Name() + "\\b[^|]*\\|").FindString(readme)
		if row == "" {
			t.Errorf("the README's table of commands has no row for docket %s", noun.Name())
		}
		for _, verb := range verbs(noun) {
			if !strings.Contains(row, verb) {
				t.Errorf("the README's row of docket %s does not name %s", noun.Name(), verb)
			}
		}
	}
	for _, v := range runner.Variables() {
		if !strings.Contains(readme, "`"+v.Name+"`") {
			t.Errorf("the README does not name the variable %s", v.Name)
		}
	}
}

func verbs(noun *cobra.Command) (names []string) {
	for _, c := range noun.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// Ensure that the files that the README points to are there.
func TestReadmePointsToWhatIsThere(t *testing.T) {
	readme := mustReadme(t)
	paths := regexp.MustCompile("`((?:cmd|server|store|scheduler|dispatcher|packaging)/[^`: ]+)`").FindAllStringSubmatch(readme, -1)
	if len(paths) < 10 {
		t.Fatalf("only %d paths were found in the README", len(paths))
	}
	for _, m := range paths {
		if found, err := filepath.Glob(filepath.Join("../..", m[1])); err != nil || len(found) == 0 {
			t.Errorf("the README points to %s, which is not there", m[1])
		}
	}
}
