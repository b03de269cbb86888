package runner

import (
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlFD is the supervisor's end of the socket.
const controlFD = 3

// settle is how long a supervisor waits between looks at a tree that it ends.
const settle = 2 * time.Millisecond

// Supervise is the whole life of a supervisor process. It starts nothing by
// itself: it waits for commands on descriptor 3, runs one at a time in a
// session of its own with stdin from /dev/null, and answers when the command
// has ended and nothing that it started is left. When the socket ends,
// because the server is done or dead, it kills what is left and returns.
//
// It returns the process's exit code. args are for people only.
func Supervise(args []string) int {
	// Caught, not ignored: an ignored signal would be inherited by the steps.
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	rest := make(chan os.Signal, 1) // never read
	signal.Notify(rest)

	sealDescriptors()
	offerMemory()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		os.Stderr.WriteString("supervisor: become the reaper of orphans: " + err.Error() + "\n")
		return 1
	}
	f := os.NewFile(controlFD, "control")
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		os.Stderr.WriteString("supervisor: descriptor 3 is not a socket: docket starts this command by itself\n")
		return 2
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		os.Stderr.WriteString("supervisor: descriptor 3 is not a unix socket: docket starts this command by itself\n")
		return 2
	}
	s := supervisor{conn: conn, self: os.Getpid()}
	s.loop(chld)
	_ = conn.Close() // tells the server that nothing is left
	return 0
}

// sealDescriptors keeps what the server had open, and what it was itself
// started with, from everything that is started here.
func sealDescriptors() {
	if unix.CloseRange(controlFD, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	unix.CloseOnExec(controlFD) // a kernel before 5.11
	names, _ := os.ReadDir("/proc/self/fd")
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > controlFD {
			unix.CloseOnExec(fd)
		}
	}
}

// stepOOMScore is oom_score_adj of what a run starts: half of the machine's memory
// on top of what it takes.
const stepOOMScore = 500

// offerMemory has the kernel take what is started here before docket, which
// may be the largest process in a flood, where memory runs out. Where it cannot,
// the kernel chooses by size.
func offerMemory() {
	const path = "/proc/self/oom_score_adj"
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if now, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && now < stepOOMScore {
		_ = os.WriteFile(path, []byte(strconv.Itoa(stepOOMScore)), 0)
	}
}

type supervisor struct {
	conn *net.UnixConn
	self int

	leader   int // the command's process, 0 when there is none
	status   syscall.WaitStatus
	exited   bool // the leader has; status is set
	stopping bool // the tree was told to end and has its grace
	killed   bool // and SIGKILL found something alive
}

type request struct {
	message
	fds []int
}

func (s *supervisor) loop(chld <-chan os.Signal) {
	requests := make(chan request)
	go func() {
		defer close(requests)
		for {
			m, fds, err := receiveMessage(s.conn)
			if err != nil {
				return
			}
			requests <- request{m, fds}
		}
	}()
	for {
		select {
		case r, ok := <-requests:
			if !ok {
				s.killAll()
				return
			}
			s.do(r)
		case <-chld:
		}
		s.reap()
	}
}

func (s *supervisor) do(r request) {
	switch r.Op {
	case opRun:
		s.start(r)
		return
	case opTerm:
		s.stopping = s.leader != 0
		s.term()
	case opKill:
		if s.leader != 0 && s.killAll() > 0 {
			s.killed = true
		}
	}
	closeAll(r.fds)
}

// start starts the command that came with a request.
func (s *supervisor) start(r request) {
	if len(r.fds) < 3 || s.leader != 0 {
		closeAll(r.fds)
		s.answer(message{Error: "the server asked for something impossible"})
		return
	}
	c, err := readCommand(r.fds[0]) // closes it
	defer closeAll(r.fds[1:])
	if err != nil {
		s.answer(message{Error: err.Error()})
		return
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.answer(message{Error: "open /dev/null: " + err.Error()})
		return
	}
	defer unix.Close(null)
	files := []uintptr{uintptr(null)}
	for _, fd := range r.fds[1:] {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(c.Path, c.Argv, &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   c.Env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		s.answer(message{Error: err.Error()})
		return
	}
	s.leader, s.exited, s.stopping, s.killed = pid, false, false, false
}

// reap collects what has died and answers once the command and all that it
// started are gone. Orphans become children of this process, so to have no
// child is to have no descendant.
func (s *supervisor) reap() {
	none := s.collect()
	if s.leader == 0 || !s.exited {
		return
	}
	leftovers := 0
	if !none && !s.stopping {
		leftovers = s.killAll()
		none = true
	}
	if !none {
		return
	}
	m := message{Leftovers: leftovers, Killed: s.killed, Exit: s.status.ExitStatus()}
	if s.status.Signaled() {
		m.Signal = int(s.status.Signal())
		m.Exit = 128 + m.Signal
	}
	s.leader = 0
	s.answer(m)
}

// collect waits for what is dead already; none is true when no child is left.
func (s *supervisor) collect() (none bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return true // ECHILD
		case pid == 0:
			return false
		case pid == s.leader:
			s.status, s.exited = ws, true
		}
	}
}

// term asks the whole tree to end. Stopped processes are woken to hear it.
func (s *supervisor) term() {
	if s.leader == 0 {
		return
	}
	var group int // signalled at once, so that none of it can slip away by a fork
	if !s.exited {
		group = s.leader
		_ = syscall.Kill(-group, syscall.SIGTERM)
		_ = syscall.Kill(-group, syscall.SIGCONT)
	}
	for _, p := range descendants(processes(), s.self) {
		if pgid, err := syscall.Getpgid(p.pid); err == nil && pgid == group {
			continue
		}
		if p.send(syscall.SIGTERM) {
			p.send(syscall.SIGCONT)
		}
	}
}

// killAll kills until no descendant is left and returns how many were alive.
func (s *supervisor) killAll() int {
	killed := map[process]bool{}
	for {
		alive := descendants(processes(), s.self)
		if s.leader != 0 && !s.exited {
			_ = syscall.Kill(-s.leader, syscall.SIGKILL)
		}
		for _, p := range alive {
			p.send(syscall.SIGKILL)
			killed[process{pid: p.pid, start: p.start}] = true
		}
		if s.collect() {
			return len(killed)
		}
		time.Sleep(settle)
	}
}

// answer tells the server; a server that is gone shows at the next receive.
func (s *supervisor) answer(m message) { _ = sendMessage(s.conn, m) }
