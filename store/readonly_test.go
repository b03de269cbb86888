package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"docket/store"
	"docket/store/ci"
)

// Ensure that a store on a file system that takes no writes is an error that
// says so, that it can be verified all the same, and that nothing is changed.
func TestOpen_AReadOnlyFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("mounting a tmpfs is not permitted; run the tests as root to see docket on a read-only file system")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { mustNil(t, unix.Unmount(dir, 0)) })
	path := filepath.Join(dir, "docket.db")
	mustNil(t, os.WriteFile(path, mustRead(t, mustFile(t, 3)), 0o600))
	mustNil(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err := store.Open(path, store.Options{})
	mustCode(t, err, ci.CodeUnavailable, path, "takes no writes", "mount it for writing")
	_, err = store.Compact(t.Context(), path, store.Options{})
	mustCode(t, err, ci.CodeUnavailable, path, "takes no writes")
	if broken, err := store.VerifyFile(t.Context(), path); len(broken) > 0 || err != nil {
		t.Fatalf("%v, %v", broken, err)
	}
}
