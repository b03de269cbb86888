package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/store"
)

func newRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a backup the store of an empty data directory",
		Long: `Make a backup the store of the configured data directory, which must be empty and whose
server must be stopped. FILE is only read: it is copied, the copy is verified, synced, and
only then takes its place.

Afterwards nothing is sent and no run starts by itself, as what waits in the backup may
have been done since it was made: look at it, then "docket outbox resume" and "docket runs
resume". What arrives meanwhile is written down as ever. Runs that were running become
interrupted. Everybody has to sign in again; tokens are those of the backup.

Logs, mirrors and workspaces are no part of a backup. Logs that were saved can be put back
into the data directory afterwards.`,
		Example: `  mv /var/lib/docket /var/lib/docket.damaged
  docket restore /var/backups/docket-2026-01-02.db
  docket serve`,
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0]) },
	}
}

func (a *app) restore(ctx context.Context, file string) error {
	dir, err := a.stoppedDir(ctx, "restore")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made; correct data_dir in the configuration: %w", err)
	}
	if err := emptyDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, storeFile)
	r, err := store.Restore(ctx, file, path, store.Options{Now: a.now, Failpoint: a.failpoints.commit})
	if err != nil {
		return err
	}
	newest := "an empty store"
	if !r.Newest.IsZero() {
		newest = "its newest record is of " + r.Newest.Local().Format(time.DateTime)
	}
	_, err = fmt.Fprintf(a.out, `%s: %d bytes, verified; %s
Nothing is sent and no run starts until you say so. After `+"`docket serve`"+` look at what waits:
  docket outbox list --state pending   (%d), then  docket outbox resume
  docket runs list --state queued      (%d), then  docket runs resume
`, path, r.Bytes, newest, r.OutboxPending, r.Queued+r.Preparing)
	return err
}

// stoppedDir returns the data directory, or an error if its server runs.
func (a *app) stoppedDir(ctx context.Context, verb string) (string, error) {
	dir, err := a.dataDir()
	if err != nil {
		return "", err
	}
	conn, err := dialSocket(ctx, filepath.Join(dir, adminSocket))
	if err == nil {
		conn.Close()
		return "", fmt.Errorf("a server runs on %s; stop it before `docket %s`", dir, verb)
	}
	return dir, nil
}

// emptyDir refuses a data directory that has anything of a store in it.
func emptyDir(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be read; run this as the user that docket runs as: %w", dir, err)
	}
	var names []string
	for _, e := range list {
		// The socket is a stopped server's, and the rest is nobody's.
		if !slices.Contains([]string{adminSocket, store.RestoreDir, "lost+found"}, e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("the data directory %s is not empty (%s), and a restore overwrites nothing; move it away, and put its logs back afterwards if you want them", dir, strings.Join(names[:min(len(names), 5)], ", "))
	}
	return nil
}
