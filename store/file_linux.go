package store

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeSpace returns the bytes that an ordinary user may still write beside a file.
func freeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: filepath.Dir(path), Err: err}
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// giveTo makes a file belong to the owner of another, so that what root has
// made can be used by the user that docket runs as.
func giveTo(path, like string) error {
	have, err := os.Stat(path)
	if err != nil {
		return err
	}
	want, err := os.Stat(like)
	if err != nil {
		return err
	}
	h, w := have.Sys().(*syscall.Stat_t), want.Sys().(*syscall.Stat_t)
	if h.Uid == w.Uid && h.Gid == w.Gid {
		return nil
	}
	return os.Chown(path, int(w.Uid), int(w.Gid))
}

// renameNew gives a file a name that nothing has yet; fs.ErrExist otherwise.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // not every file system can
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// lockDir takes a directory's lock, which ends with the file returned, or
// fails at once.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return f, nil
}
