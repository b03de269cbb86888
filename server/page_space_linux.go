package server

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeSpace returns the bytes that an unprivileged user may still write beside
// a file.
func freeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}
