//go:build torture

package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// tortureServer is the real binary in one life after another. One goroutine
// starts and ends it.
type tortureServer struct {
	w          *tortureWorld
	binary     string
	failpoints string // the same, built to be killed at named points
	log        *os.File
	client     *http.Client

	cmd    *exec.Cmd
	exited chan struct{} // closed at the end of this life
	struck atomic.Bool   // killed in this life
	lives  int
	kills  int

	recoveries int // lives in which GitHub was asked for what it could not deliver
}

func newTortureServer(w *tortureWorld, binary string) *tortureServer {
	log, err := os.Create(filepath.Join(w.dir, "server.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	s := &tortureServer{w: w, binary: binary, failpoints: binary + "-failpoints", log: log, client: w.client()}
	if _, err := os.Stat(s.failpoints); err != nil {
		w.t.Fatalf("there is no binary to kill at named points: %v; run `make build-failpoints`", err)
	}
	w.t.Cleanup(func() {
		if !s.dead() {
			s.kill()
		}
		log.Close()
	})
	return s
}

// tortureStart is how a life of the server begins.
type tortureStart struct {
	failpoints bool     // the binary that heeds them, told by env
	env        []string // beyond the test's own
	recover    bool     // GitHub is asked for what it could not deliver
	inject     string   // what strace does to its calls of the kernel; "": no strace
}

func (s *tortureServer) start() { s.startWith(tortureStart{}) }

func (s *tortureServer) startWith(how tortureStart) {
	s.w.t.Helper()
	binary, config := s.binary, s.w.config
	if how.failpoints {
		binary = s.failpoints
	}
	if how.recover {
		config = s.w.recoverConfig
		s.recoveries++
		if how.failpoints {
			how.env = append(how.env, "DOCKET_RECOVER_EVERY=1s")
		}
	}
	args := []string{binary, "serve", "-c", config}
	if how.inject != "" {
		args = append(straced(how.inject), args...)
	}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir = s.w.dir
	s.cmd.Env = append(os.Environ(), how.env...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.w.fatal("the server does not start: %v", err)
	}
	s.lives++
	s.struck.Store(false)
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // how it ended is in its ProcessState
		close(exited)
	}(s.cmd, s.exited)
}

// dead reports whether there is no server.
func (s *tortureServer) dead() bool {
	if s.cmd == nil {
		return true
	}
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// await waits for the first answer. It returns false, and the test has
// failed, if there never is one.
func (s *tortureServer) await(ctx context.Context) bool {
	s.w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := s.client.Get(s.w.url + "/healthz"); err == nil {
			resp.Body.Close()
			return true
		}
		select {
		case <-tick.C:
		case <-s.exited:
			s.w.fail("the server ended before it answered: %v", s.cmd.ProcessState)
			return false
		case <-ctx.Done():
			s.w.fail("the server does not answer: %v", ctx.Err())
			return false
		}
	}
}

// askUpgrade asks the server to become the program that lies where it was
// started from.
func (s *tortureServer) askUpgrade() { _ = s.cmd.Process.Signal(syscall.SIGUSR2) }

// wasKilled reports whether the server, which has ended, died of SIGKILL.
func (s *tortureServer) wasKilled() bool { return killedItself(s.cmd) }

// strike kills the server as a power cut would end the process. It does not
// wait, and anybody may call it.
func (s *tortureServer) strike() {
	s.struck.Store(true)
	_ = s.cmd.Process.Signal(syscall.SIGKILL) // it may be dead
}

// kill kills the server if nobody has yet, and waits for its end. It returns
// false, and the test has failed, if the server had ended by itself.
func (s *tortureServer) kill() bool {
	s.w.t.Helper()
	if s.dead() && !s.struck.Load() {
		s.w.fail("the server ended by itself: %v", s.cmd.ProcessState)
		return false
	}
	s.strike()
	<-s.exited
	s.kills++
	return true
}

// terminate ends the server as an operator does.
func (s *tortureServer) terminate() {
	s.w.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	select {
	case <-s.exited:
	case <-end.C:
		s.w.fatal("the server does not end within a minute of SIGTERM")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.w.fail("the server ended with %v after SIGTERM", s.cmd.ProcessState)
	}
}

// logTail returns the last lines of what the server wrote.
func (s *tortureServer) logTail(lines int) string {
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimRight(b, "\n")
	for i := len(b); i > 0; {
		if i = bytes.LastIndexByte(b[:i], '\n'); i < 0 {
			break
		}
		if lines--; lines == 0 {
			return string(b[i+1:])
		}
	}
	return string(b)
}
