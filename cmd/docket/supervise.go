package main

import (
	"github.com/spf13/cobra"

	"docket/scheduler/runner"
)

// exitError ends the program with a code and without a word.
type exitError int

func (exitError) Error() string { return "ended" }

// superviseCommand is what the server calls itself with.
const superviseCommand = "supervise"

// newSupervise is the process between the server and a run's steps. The
// server starts it; it is nobody else's.
func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use:                superviseCommand + " RUN",
		Short:              "Supervise a run's steps (the server starts this)",
		Long:               "Supervise a run's steps. The server starts this by itself.",
		Example:            "  docket supervise hello-42",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := runner.Supervise(args); code != exitDone {
				return exitError(code)
			}
			return nil
		},
	}
}
