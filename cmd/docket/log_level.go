package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newLogLevel(a *app) *cobra.Command {
	return a.talks(a.reads(&cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show or change how much a running docket logs",
		Long: `Show from how grave a line on a running docket logs, or change it: debug, info, warn or
error. The change holds until SIGHUP, "docket log-level" or the next start; for good, set
log.level in the configuration.`,
		Example: `  docket log-level
  docket log-level debug`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := call{method: http.MethodGet, path: "/log-level"}
			if len(args) == 1 {
				levels := logLevels()
				if !slices.Contains(levels, args[0]) {
					return usagef(cmd, "there is no level %q: use one of %s", args[0], strings.Join(levels, ", "))
				}
				what.method, what.body = http.MethodPut, map[string]string{"level": args[0]}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			b, err := c.raw(cmd.Context(), what)
			if err != nil {
				return err
			}
			var now struct {
				Level string `json:"level"`
			}
			return a.show(b, &now, func() error {
				_, err := fmt.Fprintln(a.out, printableText(now.Level))
				return err
			})
		},
	}))
}

// logLevels returns the levels that the configuration knows.
func logLevels() []string {
	k, _ := configKeys()[sectionLog].keyOf("level")
	return k.words
}
