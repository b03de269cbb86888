package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"docket/store"
)

func newBackup(a *app) *cobra.Command {
	return a.talks(&cobra.Command{
		Use:   "backup FILE",
		Short: "Write a verified copy of the store, while the server runs",
		Long: `Write a consistent copy of the store to FILE, while the server runs or is stopped.

The copy is written beside FILE, opened, verified and synced, and only then takes
FILE's name. A FILE that exists is never overwritten. Logs are files of their own in the
data directory and are not part of it.`,
		Example: `  docket backup /var/backups/docket-$(date +%F).db`,
		Args:    exactArgs("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), args[0]) },
	})
}

func (a *app) backup(ctx context.Context, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s exists and is not overwritten; name another file, or move it away", file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be written; name a file in a directory that exists: %w", file, err)
	}
	// A directory of its own, as an open store may keep files beside it.
	dir, err := os.MkdirTemp(filepath.Dir(file), ".docket-backup-")
	if err != nil {
		return fmt.Errorf("%s cannot be written; name a file in a directory that exists and may be written to: %w", file, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	draft := filepath.Join(dir, storeFile)
	size, err := a.copyStore(ctx, draft)
	if err != nil {
		return err
	}
	if err := proveBackup(ctx, draft); err != nil {
		return err
	}
	a.failpoints.at(pointBackupProved)
	if err := publish(draft, file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: %d bytes, verified\n", file, size)
	return err
}

// copyStore writes the copy to a new file that only its owner may read.
func (a *app) copyStore(ctx context.Context, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = a.serverOrStore(ctx, false,
		func(c *client) error {
			resp, err := c.open(ctx, call{method: http.MethodPost, path: "/backup"})
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if size, err = io.Copy(f, resp.Body); err != nil {
				return fmt.Errorf("the copy broke off after %d bytes, so nothing was kept; see to free space and try again: %w", size, err)
			}
			return nil
		},
		func(s *store.Store) (err error) {
			size, err = s.Backup(ctx, f)
			return err
		})
	return size, err
}

// proveBackup checks all of a copy, page by page and record by record.
func proveBackup(ctx context.Context, path string) error {
	broken, err := store.VerifyFile(ctx, path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the copy cannot be opened, so it was not kept; run `docket verify`: %w", err)
	}
	if len(broken) > 0 {
		return fmt.Errorf("the copy is broken in %d places and was not kept, first: %s; run `docket verify`", len(broken), broken[0])
	}
	return nil
}

// publish syncs a finished file and gives it its name, unless something has
// that name already.
func publish(draft, file string) error {
	f, err := os.OpenFile(draft, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, file); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists and is not overwritten; name another file, or move it away", file)
		}
		return fmt.Errorf("%s cannot be made; name another file: %w", file, err)
	}
	return syncDir(filepath.Dir(file))
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
