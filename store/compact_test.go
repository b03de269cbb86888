package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// mustGrown makes a closed store that holds few of the records it once had.
func mustGrown(t *testing.T) (path string, clock *clock) {
	t.Helper()
	path, clock = dbPath(t), newClock()
	s := storetest.MustOpenAt(t, path, store.Options{Now: clock.now})
	for i := range 40 {
		mustAccept(t, s, pushed(fmt.Sprint("d-", i), "api", "main", i, i+1, ignored("no"), func(a *store.Acceptance) {
			a.Delivery.Body = noise(20 << 10)
		}))
	}
	mustPush(t, s, "kept", 0, 1)
	pruneAll(t, s, clock.add(time.Hour))
	mustPush(t, s, "fresh", 1, 2)
	mustNil(t, s.Close())
	return path, clock
}

// Ensure that compacting makes a store small that has become it, changes no
// record, keeps the file's mode, and leaves nothing beside it.
func TestCompact_MakesItSmallAndTheSame(t *testing.T) {
	path, _ := mustGrown(t)
	mustNil(t, os.Chmod(path, 0o640))
	before := readAll(t, path)
	size := len(mustRead(t, path))
	c, err := store.Compact(t.Context(), path, store.Options{})
	mustNil(t, err)
	if c.Kept || c.Before != int64(size) || c.After > c.Before/4 || c.After != int64(len(mustRead(t, path))) {
		t.Fatalf("%+v of %d", c, size)
	}
	if readAll(t, path) != before {
		t.Fatal("a record has changed")
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Fatalf("%v, %v", st.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 1 || err != nil {
		t.Fatalf("left behind: %v, %v", left, err)
	}
	s := storetest.MustOpenAt(t, path, store.Options{})
	if r := mustPush(t, s, "goes on", 2, 3); r.ID != "api-3" {
		t.Fatalf("%s", r.ID)
	}
	mustNil(t, s.Close())
	mustNil(t, func() error { _, err := store.Compact(t.Context(), path, store.Options{}); return err }())
	// What is as small as it can be is left as it is.
	small := mustRead(t, path)
	c, err = store.Compact(t.Context(), path, store.Options{})
	if err != nil || !c.Kept || c.Before != c.After {
		t.Fatalf("%+v, %v", c, err)
	}
	if readAll(t, path) == "" || len(mustRead(t, path)) != len(small) {
		t.Fatal("it was replaced all the same")
	}
}

// Ensure that whatever goes wrong on the way, the store is what it was and
// nothing is left beside it.
func TestCompact_AnyFaultLeavesTheStore(t *testing.T) {
	path, _ := mustGrown(t)
	before := readAll(t, path)
	fault := errors.New("a test stops here")
	check := func(t *testing.T) {
		t.Helper()
		if readAll(t, path) != before {
			t.Fatal("a record has changed")
		}
		if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 1 || err != nil {
			t.Fatalf("left behind: %v, %v", left, err)
		}
	}
	for _, at := range []string{store.FailCopied, store.FailVerified, store.FailSynced} {
		t.Run(at, func(t *testing.T) {
			inode := mustInode(t, path)
			_, err := store.Compact(t.Context(), path, store.Options{Failpoint: func(point string) error {
				if point == at {
					return fault
				}
				return nil
			}})
			if !errors.Is(err, fault) {
				t.Fatal(err)
			}
			check(t)
			if mustInode(t, path) != inode {
				t.Fatal("the file was replaced")
			}
		})
	}
	t.Run("no space", func(t *testing.T) {
		_, err := store.Compact(t.Context(), path, store.Options{FreeSpace: func() (int64, error) { return 1 << 20, nil }})
		mustCode(t, err, ci.CodeUnavailable, "make room first")
		check(t)
	})
	t.Run("in use", func(t *testing.T) {
		s := storetest.MustOpenAt(t, path, store.Options{})
		_, err := store.Compact(t.Context(), path, store.Options{LockTimeout: 100 * time.Millisecond})
		mustCode(t, err, ci.CodeUnavailable, "in use")
		mustNil(t, s.Close())
		check(t)
	})
	t.Run("broken", func(t *testing.T) {
		bad := dbPath(t)
		mustNil(t, os.WriteFile(bad, mustRead(t, path), 0o600))
		surgery(t, bad, func(tx *bolt.Tx) error {
			k, _ := store.TableOf(tx, "states").Cursor().First()
			return store.TableOf(tx, "states").Delete(k)
		})
		inode := mustInode(t, bad)
		_, err := store.Compact(t.Context(), bad, store.Options{})
		mustCode(t, err, ci.CodeConflict, bad, "broken in", "nothing was changed")
		if mustInode(t, bad) != inode {
			t.Fatal("it was replaced")
		}
	})
	_, err := store.Compact(t.Context(), filepath.Join(t.TempDir(), "none.db"), store.Options{})
	mustCode(t, err, ci.CodeNotFound)
}

func mustInode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	mustNil(t, unix.Stat(path, &st))
	return st.Ino
}

// Ensure that what a killed one has left is removed by whoever opens the store next.
func TestOpen_RemovesWhatAKilledOneLeft(t *testing.T) {
	path := mustFile(t, 1)
	mustNil(t, os.WriteFile(path+".compact", []byte("half"), 0o600))
	dir := filepath.Join(filepath.Dir(path), store.RestoreDir)
	mustNil(t, os.Mkdir(dir, 0o700))
	mustNil(t, os.WriteFile(filepath.Join(dir, "docket.db"), []byte("half"), 0o600))
	storetest.MustOpenAt(t, path, store.Options{})
	if left, err := os.ReadDir(filepath.Dir(path)); len(left) != 1 || err != nil {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// Ensure that a server which waited for the lock of a store that was replaced
// meanwhile opens the new one: what it wrote to the old one would be lost.
func TestOpen_NeverOpensAReplacedFile(t *testing.T) {
	path := mustFile(t, 1)
	other := filepath.Join(filepath.Dir(path), "other.db")
	mustNil(t, os.WriteFile(other, mustRead(t, mustFile(t, 5)), 0o600))
	holder, err := os.Open(path)
	mustNil(t, err)
	defer holder.Close()
	mustNil(t, unix.Flock(int(holder.Fd()), unix.LOCK_SH)) // as one who reads: only the opening for writing waits
	type opened struct {
		s   *store.Store
		err error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := store.Open(path, store.Options{LockTimeout: 20 * time.Second})
		done <- opened{s, err}
	}()
	for !openForWriting(t, path) {
		time.Sleep(time.Millisecond)
	}
	mustNil(t, os.Rename(other, path))
	mustNil(t, unix.Flock(int(holder.Fd()), unix.LOCK_UN))
	o := <-done
	mustNil(t, o.err)
	defer o.s.Close()
	if list, _, err := o.s.Runs(store.RunFilter{}, store.Page{}); len(list) != 5 || err != nil {
		t.Fatalf("%d runs, %v: the replaced file was opened", len(list), err)
	}
}

// openForWriting reports whether this process has a descriptor of a file that
// may write to it.
func openForWriting(t *testing.T, path string) bool {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	mustNil(t, err)
	for _, e := range fds {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || name != path {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue
		}
		var pos int64
		var flags int
		if _, err := fmt.Sscanf(string(bytes.TrimSpace(info)), "pos:\t%d\nflags:\t%o", &pos, &flags); err == nil && flags&unix.O_ACCMODE == unix.O_RDWR {
			return true
		}
	}
	return false
}
