package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the manual pages for a package.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages, for a package",
		Long: `Write a manual page of each command into DIR, which exists. Their date is
$SOURCE_DATE_EPOCH, or now.`,
		Example: "  docket man /usr/local/share/man/man1",
		Hidden:  true,
		Args:    exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "docket", Manual: "docket"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("the manual pages cannot be written to %s; name a directory that exists: %w", args[0], err)
			}
			return nil
		},
	}
}
