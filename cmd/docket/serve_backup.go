package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

const (
	backupPrefix = "docket-"
	backupSuffix = ".db"
	backupTime   = "20060102T150405Z" // in UTC, so that names sort by time
	draftPrefix  = ".docket-scheduled-"

	backupLook  = time.Minute      // the longest time between two looks at the configuration
	backupRetry = 10 * time.Minute // after a failure
	backupSpare = 16 << 20         // bytes that must stay free
)

// backups makes the configured backups of a running server's store.
type backups struct {
	config func() *ci.Config
	store  *store.Store
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	status server.BackupStatus
}

// Status says how the backups go.
func (b *backups) Status() server.BackupStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// run makes backups when they are due, until ctx ends.
func (b *backups) run(ctx context.Context) {
	var failed time.Time
	for ctx.Err() == nil {
		wait := backupLook
		if cfg := b.config().Backup; cfg != nil {
			due := b.due(cfg, b.now())
			if !failed.IsZero() && time.Since(failed) < backupRetry {
				due = max(due, backupRetry-time.Since(failed))
			}
			if due <= 0 {
				failed = time.Time{}
				if err := b.make(ctx, cfg); err != nil && ctx.Err() == nil {
					failed = time.Now()
				}
				continue
			}
			wait = min(wait, due)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// due returns how long it is to the next backup, by the newest that is there.
// One from the future is of a clock that was wrong, and does not count.
func (b *backups) due(cfg *ci.Backup, now time.Time) time.Duration {
	names, _ := ownBackups(cfg.Dir) // what is wrong with the directory the attempt tells
	for _, name := range slices.Backward(names) {
		if at := backupAt(name); !at.After(now) {
			b.mu.Lock()
			b.status.Last = at
			b.mu.Unlock()
			return at.Add(cfg.Every).Sub(now)
		}
	}
	return 0
}

// make makes one backup, and then removes those that are too many.
func (b *backups) make(ctx context.Context, cfg *ci.Backup) (err error) {
	at := b.now()
	name := backupPrefix + at.UTC().Format(backupTime) + backupSuffix
	path := filepath.Join(cfg.Dir, name)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case err == nil:
			b.status.Last, b.status.Failed = at, ""
		case ctx.Err() == nil:
			b.status.Failed = ci.MessageOf(err)
			b.log.Error("backup failed, and is tried again", keyDir, cfg.Dir, keyWait, backupRetry, keyError, err)
		}
	}()
	size, err := b.write(ctx, cfg.Dir, path)
	if err != nil {
		return err
	}
	b.log.Info("backup made", keyFile, path, keyBytes, size)
	return b.thin(cfg, name)
}

// write writes a proved backup to path.
func (b *backups) write(ctx context.Context, dir, path string) (size int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the directory of the backups, %s, cannot be made; create it for the user that docket runs as, or mend backup.dir", dir)
	}
	left, _ := filepath.Glob(filepath.Join(dir, draftPrefix+"*")) // of a killed server
	for _, x := range left {
		_ = os.RemoveAll(x)
	}
	if err := b.enoughSpace(dir); err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp(dir, draftPrefix)
	if err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the directory of the backups, %s, cannot be written to; mend its permissions or backup.dir", dir)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	draft := filepath.Join(tmp, storeFile)
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = b.store.Backup(ctx, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the backup could not be written to %s; see to free space there and beside the store", dir)
	}
	if err := proveBackup(ctx, draft); err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the backup was not good and was not kept; run `docket verify`")
	}
	if err := publish(draft, path); err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the backup cannot be given its name in %s; the server's log has the cause", dir)
	}
	return size, nil
}

// enoughSpace looks whether a copy fits, in the directory of the backups and
// beside the store, where one lies for a moment.
func (b *backups) enoughSpace(dir string) error {
	st, err := b.store.Stats()
	if err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Dir(b.store.Path())} {
		var fs unix.Statfs_t
		if err := unix.Statfs(d, &fs); err != nil {
			return ci.Wrap(ci.CodeUnavailable, err, "the free space of %s cannot be read; check that its disk is there", d)
		}
		if free, need := int64(fs.Bavail)*fs.Bsize, st.FileBytes+backupSpare; free < need {
			return ci.Errorf(ci.CodeUnavailable, "a backup needs %d MiB of free space in %s, and %d MiB are free; make room, or keep fewer backups", need>>20+1, d, free>>20)
		}
	}
	return nil
}

// thin removes the oldest backups that are too many, never the one just made.
func (b *backups) thin(cfg *ci.Backup, made string) error {
	names, err := ownBackups(cfg.Dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == made })
	for len(names) >= cfg.Keep && len(names) > 0 {
		path := filepath.Join(cfg.Dir, names[0])
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ci.Wrap(ci.CodeUnavailable, err, "the old backup %s cannot be removed; mend its directory's permissions", path)
		}
		b.log.Info("old backup removed", keyFile, path)
		names = names[1:]
	}
	return nil
}

// ownBackups returns the names of the backups in a directory that docket made
// by itself, oldest first. Nothing else in there is touched.
func ownBackups(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if !backupAt(e.Name()).IsZero() && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// backupAt reads the time in a backup's name; zero for any other name.
func backupAt(name string) time.Time {
	s, ok := strings.CutPrefix(name, backupPrefix)
	s, ok2 := strings.CutSuffix(s, backupSuffix)
	at, err := time.Parse(backupTime, s)
	if !ok || !ok2 || err != nil {
		return time.Time{}
	}
	return at
}
