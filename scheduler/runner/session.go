package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// errLost is the end of a command whose supervisor is gone: nobody knows how
// the command went.
var errLost = errors.New("the process that supervised it was lost")

const (
	// answerTimeout is how long after SIGKILL a supervisor may take to say
	// that its tree is gone. One that takes longer is itself in the way.
	answerTimeout = 5 * time.Second
	// drainTimeout bounds reading on after a tree has ended: only something
	// outside it can still hold the pipe.
	drainTimeout = 2 * time.Second
	// readBuffer is large so that output that is only dropped costs little.
	readBuffer = 256 << 10
)

// session is one supervisor process and what it is asked to run.
type session struct {
	r       *Runner
	dir     string // marks the processes of this session, see reapDir
	conn    *net.UnixConn
	cmd     *exec.Cmd
	log     string // where the supervisor's own stderr went
	proc    ci.Process
	answers chan message
	wg      sync.WaitGroup
	stopped string // as in ended, of the last command
}

// open starts a supervisor, which waits. HOME is set to a directory below
// dir in everything that it starts, so that reapDir finds it.
func (r *Runner) open(w workspace, label string) (*session, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the supervisor's socket: %w", err)
	}
	mine, its := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer its.Close()
	c, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		return nil, fmt.Errorf("open the supervisor's socket: %w", err)
	}
	s := &session{r: r, dir: w.dir, conn: c.(*net.UnixConn), log: w.supervisorLog(), answers: make(chan message)}
	stderr, err := os.Create(s.log)
	if err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	defer stderr.Close()
	argv := append(append([]string{}, r.supervisor...), label)
	s.cmd = &exec.Cmd{
		Path: argv[0], Args: argv, Dir: w.dir,
		Env:         []string{"HOME=" + w.home(), "PATH=" + defaultPath},
		Stderr:      stderr,
		ExtraFiles:  []*os.File{its},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a supervisor: %w", err), s.conn.Close())
	}
	p, _ := readProcess(s.cmd.Process.Pid) // not reaped yet, so it is there
	s.proc = ci.Process{Machine: r.machine, PID: p.pid, Start: p.start}
	s.wg.Add(1)
	go s.receive()
	return s, nil
}

// receive passes the supervisor's answers on until its socket ends.
func (s *session) receive() {
	defer s.wg.Done()
	defer close(s.answers)
	for {
		m, fds, err := receiveMessage(s.conn)
		if err != nil {
			return
		}
		closeAll(fds)
		s.answers <- m
	}
}

// close ends the supervisor and waits for it; a tree that is still there
// goes with it.
func (s *session) close() {
	_ = s.conn.CloseWrite() // the supervisor reads the end of the socket
	timer := time.AfterFunc(answerTimeout, func() { _, _ = s.r.reapDir(context.Background(), s.dir, &s.proc) })
	for range s.answers { //nolint:revive // ends with the supervisor's end of the socket
	}
	_ = s.cmd.Process.Kill() // nothing is left below it, so its own exit need not be waited for
	_ = s.cmd.Wait()
	timer.Stop()
	_ = s.conn.Close()
	s.wg.Wait()
}

// work is a command and what becomes of its output.
type work struct {
	command
	out   func(p []byte) // called from one goroutine
	err   func(p []byte) // nil: stderr goes into the same pipe as stdout
	extra *os.File       // its descriptor 3; nil: it has none
	grace time.Duration  // between SIGTERM and SIGKILL
}

// ended tells how a command ended.
type ended struct {
	exit      int            // 128+n after signal n
	signal    syscall.Signal // 0: it exited
	leftovers int            // processes that it left behind and that were ended
	stopped   string         // the signal that ended the tree when ctx was done: "SIGTERM" or "SIGKILL"; else ""
}

// run runs one command to its end. When it returns, with an error or not,
// nothing of it is left running and all output was passed on. When ctx is
// done the tree gets SIGTERM and after the grace SIGKILL.
func (s *session) run(ctx context.Context, w work) (ended, error) {
	if err := ctx.Err(); err != nil {
		return ended{}, err
	}
	file, err := commandFile(w.command)
	if err != nil {
		return ended{}, fmt.Errorf("pass the command on: %w", err)
	}
	defer file.Close()
	outR, outW, err := pipe()
	if err != nil {
		return ended{}, err
	}
	defer outR.Close()
	readers, errW := []*os.File{outR}, outW
	sinks := []func([]byte){w.out}
	if w.err != nil {
		r, fd, err := pipe()
		if err != nil {
			return ended{}, errors.Join(err, unix.Close(outW))
		}
		defer r.Close()
		readers, sinks, errW = append(readers, r), append(sinks, w.err), fd
	}
	fds := []int{int(file.Fd()), outW, errW}
	if w.extra != nil {
		fds = append(fds, int(w.extra.Fd()))
	}
	err = sendMessage(s.conn, message{Op: opRun}, fds...)
	_ = unix.Close(outW)
	if errW != outW {
		_ = unix.Close(errW)
	}
	if err != nil {
		return ended{}, errors.Join(errLost, err, s.trouble())
	}
	var reading sync.WaitGroup
	for i, r := range readers {
		reading.Go(func() { drain(r, sinks[i]) })
	}
	m, stopped, err := s.await(ctx, w.grace)
	s.stopped = stopped
	for _, r := range readers {
		_ = r.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	reading.Wait()
	switch {
	case err != nil:
		return ended{stopped: stopped}, err
	case m.Error != "":
		return ended{stopped: stopped}, errors.New(m.Error)
	}
	return ended{exit: m.Exit, signal: syscall.Signal(m.Signal), leftovers: m.Leftovers, stopped: stopped}, nil
}

// await waits for the answer to a command and stops the command when ctx is done.
func (s *session) await(ctx context.Context, grace time.Duration) (m message, stopped string, err error) {
	var timer <-chan time.Time
	done := ctx.Done()
	killing := false
	for {
		select {
		case m, ok := <-s.answers:
			if !ok {
				_, err := s.r.reapDir(context.WithoutCancel(ctx), s.dir, nil)
				return message{}, stopped, errors.Join(errLost, err, s.trouble())
			}
			if m.Killed {
				stopped = "SIGKILL"
			}
			return m, stopped, nil
		case <-done:
			done, stopped = nil, "SIGTERM"
			_ = sendMessage(s.conn, message{Op: opTerm})
			timer = time.After(grace)
		case <-timer:
			if killing { // a supervisor that does not answer was stopped or is stuck
				stopped = "SIGKILL"
				if _, err := s.r.reapDir(context.WithoutCancel(ctx), s.dir, &s.proc); err != nil {
					return message{}, stopped, errors.Join(errLost, err)
				}
				timer = nil // its socket ends now
				continue
			}
			killing = true
			_ = sendMessage(s.conn, message{Op: opKill})
			timer = time.After(answerTimeout)
		}
	}
}

// trouble returns what the supervisor said before it was lost.
func (s *session) trouble() error {
	b, _ := os.ReadFile(s.log)
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return nil
	}
	return errors.New(string(b[:min(len(b), maxError)]))
}

// pipe returns a pipe whose read end takes deadlines and whose write end is
// an ordinary blocking descriptor, as programs expect it.
func pipe() (r *os.File, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		closeAll(p[:])
		return nil, 0, fmt.Errorf("make a pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, readBuffer) // fewer wakeups; the default does too
	return os.NewFile(uintptr(p[0]), "output"), p[1], nil
}

// drain passes everything on until the pipe ends or its deadline comes.
func drain(r io.Reader, sink func([]byte)) {
	buf := make([]byte, readBuffer)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			sink(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
