package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"docket/store"
)

func newCompact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Write the store of a stopped server anew, as small as it can be",
		Long: `Write the store of a stopped server anew, without the space that removed records have left
in it. A running server uses that space again, so this is only worth it when the store has
become much smaller for good: after retention was shortened, or a project has gone.

The copy is written beside the store, compared with it, verified and synced, and only then
takes its place: a kill or a full disk at any point leaves a whole store. It needs as much
free space as the store has in use.`,
		Example: `  systemctl stop docket && docket compact && systemctl start docket`,
		Args:    exactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.compact(cmd.Context()) },
	}
}

func (a *app) compact(ctx context.Context) error {
	dir, err := a.stoppedDir(ctx, "compact")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, storeFile)
	c, err := store.Compact(ctx, path, store.Options{Now: a.now, Failpoint: a.failpoints.commit})
	if err != nil {
		return err
	}
	if c.Kept {
		_, err = fmt.Fprintf(a.out, "%s: %d bytes, and a compacted one would not be smaller\n", path, c.Before)
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: %d bytes before, %d bytes after, verified\n", path, c.Before, c.After)
	return err
}
