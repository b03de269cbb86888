package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is which docket this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source, "" if it was not recorded
	Time     string `json:"time"`     // of the revision
	Modified bool   `json:"modified"` // built from sources beside the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "version",
		Short: "Print which docket this is",
		Long:  "Print the version, the revision of the source it was built from, and the Go version and platform.",
		Example: `  docket version
  docket version -o json`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := buildInfo()
			if a.json() {
				return printJSON(a.out, b)
			}
			line := "docket " + b.Version
			if b.Revision != "" {
				line += " " + b.Revision
			}
			if b.Modified {
				line += " (modified)"
			}
			_, err := fmt.Fprintf(a.out, "%s %s %s\n", line, b.Go, b.Platform)
			return err
		},
	})
}

// buildInfo reads what the Go toolchain wrote into the binary.
func buildInfo() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
