package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// disk puts another file in the place of the one that the store writes to,
// until good is called.
func disk(t *testing.T, s *store.Store, other string, flag int) (good func()) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	mustNil(t, err)
	at := -1
	for _, e := range fds {
		if name, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && name == s.Path() {
			at, err = strconv.Atoi(e.Name())
			mustNil(t, err)
		}
	}
	if at < 0 {
		t.Fatal("the store's file is not open")
	}
	kept, err := unix.Dup(at)
	mustNil(t, err)
	f, err := os.OpenFile(other, flag, 0)
	mustNil(t, err)
	defer f.Close()
	mustNil(t, unix.Dup3(int(f.Fd()), at, unix.O_CLOEXEC))
	return func() {
		mustNil(t, unix.Dup3(kept, at, unix.O_CLOEXEC))
		mustNil(t, unix.Close(kept))
	}
}

// Ensure that a full disk is a no with a reason, that what is on it can still
// be read, and that intake goes on by itself once there is room.
func TestCommit_AFullDiskRecovers(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	room := disk(t, s, "/dev/full", os.O_RDWR)
	for i := range 3 {
		_, err := s.Accept(t.Context(), pushed(fmt.Sprint("full-", i), "api", "main", 1, 2))
		mustCode(t, err, ci.CodeUnavailable, "nothing was promised", "space")
	}
	mustCode(t, s.Health(), ci.CodeUnavailable, "space")
	mustState(t, s, "api-1", ci.Queued)
	room()
	if r := mustPush(t, s, "d-2", 1, 2); r.ID != "api-2" {
		t.Fatalf("run %s", r.ID)
	}
	mustNil(t, s.Health())
}

// Ensure that after a write which may have gone anywhere nothing is written
// any more, and everybody is told so in words.
func TestCommit_ABrokenDiskStopsAllWriting(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustPush(t, s, "d-1", 0, 1)
	good := disk(t, s, os.DevNull, os.O_RDONLY)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				_, err := s.Accept(context.Background(), pushed(fmt.Sprintf("d-%d-%d", w, i), "api", "main", 1, 2))
				if ci.CodeOf(err) != ci.CodeUnavailable || err.Error() == "" {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	good()
	_, err := s.Accept(t.Context(), pushed("d-2", "api", "main", 1, 2))
	mustCode(t, err, ci.CodeUnavailable, "restarted")
	mustCode(t, s.Health(), ci.CodeUnavailable, "restarted")
	mustState(t, s, "api-1", ci.Queued)
	mustNil(t, s.Close())
	s = storetest.MustOpenAt(t, path, store.Options{})
	if r := mustPush(t, s, "d-2", 1, 2); r.ID != "api-2" {
		t.Fatalf("run %s", r.ID)
	}
}
