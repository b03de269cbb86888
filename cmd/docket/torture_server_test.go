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
	w      *tortureWorld
	binary string
	log    *os.File
	client *http.Client

	cmd    *exec.Cmd
	exited chan struct{} // closed at the end of this life
	struck atomic.Bool   // killed in this life
	lives  int
	kills  int
}

func newTortureServer(w *tortureWorld, binary string) *tortureServer {
	log, err := os.Create(filepath.Join(w.dir, "server.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	s := &tortureServer{w: w, binary: binary, log: log, client: w.client()}
	w.t.Cleanup(func() {
		if !s.dead() {
			s.kill()
		}
		log.Close()
	})
	return s
}

func (s *tortureServer) start() {
	s.w.t.Helper()
	s.cmd = exec.Command(s.binary, "serve", "-c", s.w.config)
	s.cmd.Dir = s.w.dir
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
