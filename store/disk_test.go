package store_test

import (
	"context"
	"crypto/rand"
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
func disk(t *testing.T, s *store.Store, other *os.File) (good func()) {
	t.Helper()
	return replaceFile(t, s.Path(), other)
}

// replaceFile puts another file behind the descriptor that this process has
// open for a path.
func replaceFile(t *testing.T, path string, other *os.File) (good func()) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	mustNil(t, err)
	at := -1
	for _, e := range fds {
		if name, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && name == path {
			at, err = strconv.Atoi(e.Name())
			mustNil(t, err)
		}
	}
	if at < 0 {
		t.Fatalf("%s is not open", path)
	}
	kept, err := unix.Dup(at)
	mustNil(t, err)
	mustNil(t, unix.Dup3(int(other.Fd()), at, unix.O_CLOEXEC))
	mustNil(t, other.Close())
	done := false
	good = func() {
		if !done {
			done = true
			mustNil(t, unix.Dup3(kept, at, unix.O_CLOEXEC))
			mustNil(t, unix.Close(kept))
		}
	}
	t.Cleanup(good)
	return good
}

func mustOpenFile(t *testing.T, name string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, flag, 0)
	mustNil(t, err)
	return f
}

// Ensure that a full disk is a no with a reason, that what is on it can still
// be read, and that intake goes on by itself once there is room.
func TestCommit_AFullDiskRecovers(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	for range 5 {
		mustNil(t, s.Probe(t.Context())) // leaves pages to use again: the file has not to grow
	}
	room := disk(t, s, mustOpenFile(t, "/dev/full", os.O_RDWR))
	for range 3 {
		mustCode(t, s.Probe(t.Context()), ci.CodeUnavailable, "nothing was promised", "space")
	}
	mustCode(t, s.Health(), ci.CodeUnavailable, "space")
	mustState(t, s, "api-1", ci.Queued)
	room()
	if r := mustPush(t, s, "d-2", 1, 2); r.ID != "api-2" {
		t.Fatalf("run %s", r.ID)
	}
	mustNil(t, s.Health())
}

// Ensure that a file which may not grow, because of a quota or of the file
// system, is no broken disk: nothing was written yet.
func TestCommit_AFileThatCannotGrowRecovers(t *testing.T) {
	s := storetest.MustOpen(t)
	mustPush(t, s, "d-1", 0, 1)
	fd, err := unix.MemfdCreate("sealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	mustNil(t, err)
	sealed := os.NewFile(uintptr(fd), "sealed")
	st, err := os.Stat(s.Path())
	mustNil(t, err)
	mustNil(t, sealed.Truncate(st.Size()))
	_, err = unix.FcntlInt(sealed.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	mustNil(t, err)
	room := disk(t, s, sealed)
	big := pushed("d-2", "api", "main", 1, 2, func(a *store.Acceptance) {
		a.Delivery.Body = make([]byte, st.Size()+1<<20)
		rand.Read(a.Delivery.Body)
	})
	_, err = s.Accept(t.Context(), big)
	mustCode(t, err, ci.CodeUnavailable, "nothing was promised")
	room()
	if out := mustAccept(t, s, big); out.Duplicate || out.Runs[0].ID != "api-2" {
		t.Fatalf("%+v", out)
	}
	mustNil(t, s.Health())
}

// Ensure that after a write which may have gone anywhere nothing is written
// any more, and everybody is told so in words.
func TestCommit_ABrokenDiskStopsAllWriting(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustPush(t, s, "d-1", 0, 1)
	good := disk(t, s, mustOpenFile(t, os.DevNull, os.O_RDONLY))
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
