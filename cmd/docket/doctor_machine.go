package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func socketOf(dir string) string { return filepath.Join(dir, adminSocket) }

// fileSystems are those that a store should not lie on, with why.
var fileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "NFS, whose locks and syncs are not to be relied on",
	unix.SMB_SUPER_MAGIC:  "SMB, whose locks and syncs are not to be relied on",
	unix.CIFS_SUPER_MAGIC: "CIFS, whose locks and syncs are not to be relied on",
	unix.SMB2_SUPER_MAGIC: "SMB, whose locks and syncs are not to be relied on",
	unix.V9FS_MAGIC:       "9p, whose syncs are not to be relied on",
	unix.FUSE_SUPER_MAGIC: "FUSE, whose syncs may not reach the disk",
	unix.TMPFS_MAGIC:      "tmpfs, which a restart of the machine empties",
	unix.RAMFS_MAGIC:      "ramfs, which a restart of the machine empties",
}

// lookAtDir looks at the data directory: whose it is, what it lies on, and
// how much is free.
func lookAtDir(dir string, need int64) (list []finding) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{warning("start docket once, or correct data_dir", "%s is not there yet; the first start makes it", dir)}
	case err != nil:
		return []finding{wrong("let the user that docket runs as reach it", "%s cannot be reached: %v", dir, err)}
	case !info.IsDir():
		return []finding{wrong("correct data_dir", "%s is not a directory", dir)}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		list = append(list, warning("run docket and `docket doctor` as its owner", "%s belongs to user %d, and this runs as user %d", dir, st.Uid, os.Geteuid()))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		list = append(list, warning("chmod 700 "+dir, "%s has mode %04o, so that others on this machine may look into it", dir, mode))
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		list = append(list, wrong("run this as the user that docket runs as, or mend its permissions", "%s may not be written by this user", dir))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return append(list, wrong("check its disk", "the free space of %s cannot be read: %v", dir, err))
	}
	if f := lookAtFileSystem(dir, int64(st.Type)); f.State != stateOK {
		list = append(list, f)
	}
	if f := lookAtSpace(dir, int64(st.Bavail)*st.Bsize, need); f.State != stateOK || len(list) == 0 {
		list = append(list, f)
	}
	return list
}

// lookAtFileSystem judges a file system by its type, as statfs(2) has it.
func lookAtFileSystem(dir string, kind int64) finding {
	if what := fileSystems[kind&0xffffffff]; what != "" {
		return warning("move data_dir to a disk of this machine", "%s lies on %s", dir, what)
	}
	return fine("%s lies on a disk of this machine", dir)
}

func lookAtSpace(dir string, free, need int64) finding {
	const mend = "make room on its disk, or lower limits.free_space"
	switch {
	case free < leastSpace:
		return wrong(mend, "the disk of %s is full, so deliveries are refused", dir)
	case free < need:
		return wrong(mend, "%s are free in %s and limits.free_space is %s, so no run starts", roundSize(free), dir, formatSize(need))
	case free < need+need/2:
		return warning(mend, "%s are free in %s; below %s no run starts", roundSize(free), dir, formatSize(need))
	}
	return fine("%s is there, and %s are free", dir, roundSize(free))
}

// roundSize writes bytes in whole MiB or GiB where there are any.
func roundSize(n int64) string {
	for _, unit := range []int64{10 << 30, 1 << 20} {
		if n >= unit {
			step := min(unit, 1<<30)
			return formatSize(n / step * step)
		}
	}
	return formatSize(n)
}

// oldestGit is the first git that has all that docket uses.
var oldestGit = [2]int{2, 24}

func lookAtGit(ctx context.Context) []finding {
	const mend = "install git 2.24 or newer where docket's PATH finds it"
	path, err := exec.LookPath("git")
	if err != nil {
		return []finding{wrong(mend, "there is no git in PATH")}
	}
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return []finding{wrong(mend, "%s does not run: %v", path, err)}
	}
	text := strings.TrimSpace(string(out))
	m := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(text)
	if m == nil {
		return []finding{warning(mend, "%s calls itself %q", path, text)}
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major < oldestGit[0] || major == oldestGit[0] && minor < oldestGit[1] {
		return []finding{wrong(mend, "%s is %s, which is too old", path, text)}
	}
	return []finding{fine("%s is %s", path, text)}
}

func lookAtShell(ctx context.Context) []finding {
	path, err := exec.LookPath("sh")
	if err == nil {
		err = exec.CommandContext(ctx, path, "-eu", "-c", "exit 0").Run()
	}
	if err != nil {
		return []finding{wrong("install a POSIX shell where docket's PATH finds it", "%s", fmt.Sprintf("no step can run: sh does not: %v", err))}
	}
	return []finding{fine("%s runs", path)}
}
