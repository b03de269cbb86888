package runner

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is one line of the process table. PID and start together name a
// process for as long as the machine runs; a PID alone can be given again.
type process struct {
	pid, ppid int
	start     uint64 // clock ticks since boot
	state     byte   // as in proc_pid_stat(5)
}

// dead reports whether only the entry in the process table is left.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// readProcess reads a process from /proc; ok is false if there is none.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The second field is the program's name in parentheses and may hold
	// anything, parentheses too.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return process{}, false
	}
	ppid, err := strconv.Atoi(f[1])
	if err != nil {
		return process{}, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return process{}, false
	}
	return process{pid: pid, ppid: ppid, start: start, state: f[0][0]}, true
}

// processes reads the process table. It is no snapshot: who needs certainty
// reads it again.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// descendants returns the living processes below root, parents first.
func descendants(all []process, root int) []process {
	children := map[int][]process{}
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []process
	todo := []int{root}
	for len(todo) > 0 {
		for _, p := range children[todo[0]] {
			todo = append(todo, p.pid)
			if !p.dead() {
				found = append(found, p)
			}
		}
		todo = todo[1:]
	}
	return found
}

// send signals exactly this process, never one that got its PID later. It
// reports whether the process was there.
func (p process) send(sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		now, ok := readProcess(p.pid)
		return ok && now.start == p.start && syscall.Kill(p.pid, sig) == nil
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	now, ok := readProcess(p.pid)
	if !ok || now.start != p.start {
		return false
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// environ returns the values that a process had for some variables when it
// was started; nothing where it may not be read.
func (p process) environ(names ...string) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return nil
	}
	var values []string
	for _, kv := range strings.Split(string(b), "\x00") {
		if name, value, ok := strings.Cut(kv, "="); ok && slices.Contains(names, name) {
			values = append(values, value)
		}
	}
	return values
}

// cwd returns a process's working directory, "" where it may not be read.
func (p process) cwd() string {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(p.pid) + "/cwd")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(dir, " (deleted)")
}
