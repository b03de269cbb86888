package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// newBackups is a worker over a store with one token, whose clock a test sets.
func newBackups(t *testing.T, every time.Duration, keep int) (b *backups, cfg *ci.Backup, clock *time.Time, log *bytes.Buffer) {
	t.Helper()
	s := mustOpenStore(t, filepath.Join(t.TempDir(), storeFile))
	t.Cleanup(func() { mustClose(t, s) })
	if _, err := s.CreateToken(t.Context(), "bot", ci.Viewer); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	cfg, log = &ci.Backup{Dir: filepath.Join(t.TempDir(), "backups"), Every: every, Keep: keep}, &bytes.Buffer{}
	b = &backups{
		config: func() *ci.Config { return &ci.Config{Backup: cfg} }, store: s, log: slog.New(slog.NewTextHandler(log, nil)),
		now: func() time.Time { return at },
	}
	return b, cfg, &at, log
}

func mustList(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// Ensure that backups are made when they are due, that as many stay as are
// wanted, each of them whole, and that nothing else in the directory is touched.
func TestScheduledBackups(t *testing.T) {
	b, cfg, clock, _ := newBackups(t, 24*time.Hour, 2)
	if due := b.due(cfg, *clock); due > 0 {
		t.Fatalf("the first is due in %s", due)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, draftPrefix+"x"), 0o700); err != nil { // of a killed server
		t.Fatal(err)
	}
	others := []string{"docket-2026.db", "mine.db"}
	for _, name := range others {
		mustWrite(t, filepath.Join(cfg.Dir, name), "mine")
	}
	for range 4 {
		if err := b.make(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if due := b.due(cfg, *clock); due != 24*time.Hour {
			t.Fatalf("the next is due in %s", due)
		}
		*clock = clock.Add(24 * time.Hour)
	}
	want := append([]string{"docket-20260306T120000Z.db", "docket-20260307T120000Z.db"}, others...)
	slices.Sort(want)
	if got := mustList(t, cfg.Dir); !slices.Equal(got, want) {
		t.Fatalf("in the directory: %q", got)
	}
	if st := b.Status(); st.Failed != "" || !st.Last.Equal(clock.Add(-24*time.Hour)) {
		t.Errorf("%+v", st)
	}
	r, err := store.Restore(t.Context(), filepath.Join(cfg.Dir, want[1]), filepath.Join(t.TempDir(), storeFile), store.Options{})
	if err != nil || r.Bytes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Ensure that an old backup only goes when a newer one is good, and that what
// went wrong is told until one is.
func TestScheduledBackupFails(t *testing.T) {
	b, cfg, clock, log := newBackups(t, time.Hour, 1)
	if err := b.make(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	first := mustList(t, cfg.Dir)
	*clock = clock.Add(time.Hour)
	dir := cfg.Dir
	cfg.Dir = filepath.Join(t.TempDir(), "a-file")
	mustWrite(t, cfg.Dir, "")
	if err := b.make(t.Context(), cfg); err == nil {
		t.Fatal("a backup was made in a file")
	}
	if st := b.Status(); !strings.Contains(st.Failed, cfg.Dir) || !strings.Contains(st.Failed, "backup.dir") || st.Last.IsZero() {
		t.Errorf("%+v", st)
	}
	mustContain(t, "the log", log.String(), "level=ERROR", "backup failed")
	cfg.Dir = dir
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.make(ctx, cfg); err == nil {
		t.Fatal("a backup was made after the end")
	}
	if got := mustList(t, dir); !slices.Equal(got, first) {
		t.Fatalf("after failures: %q, want %q", got, first)
	}
	if err := b.make(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := mustList(t, dir); len(got) != 1 || got[0] == first[0] || b.Status().Failed != "" {
		t.Fatalf("%q, %+v", got, b.Status())
	}
}

// Ensure that a clock which was ahead neither keeps backups from being made
// nor makes the newest one be removed.
func TestScheduledBackupsAndTheClock(t *testing.T) {
	b, cfg, clock, _ := newBackups(t, time.Hour, 1)
	*clock = clock.AddDate(50, 0, 0)
	if err := b.make(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	*clock = clock.AddDate(-50, 0, 0)
	if due := b.due(cfg, *clock); due > 0 {
		t.Fatalf("the next is due in %s", due)
	}
	if err := b.make(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := mustList(t, cfg.Dir); !slices.Equal(got, []string{"docket-20260304T120000Z.db"}) {
		t.Fatalf("%q", got)
	}
}

// Ensure that the worker makes the first backup at once and ends with its context.
func TestScheduledBackupsRun(t *testing.T) {
	b, cfg, _, _ := newBackups(t, time.Hour, 3)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.run(ctx); close(done) }()
	eventually(t, "a backup is made", func() bool { return !b.Status().Last.IsZero() })
	cancel()
	<-done
	if got := mustList(t, cfg.Dir); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
