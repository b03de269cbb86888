package scheduler

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that an unprivileged user may still write below
// a directory.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}
