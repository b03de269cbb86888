package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a terminal that a test sits at.
type terminal struct {
	t    *testing.T
	keys *os.File // what is typed, and what is echoed
	tty  *os.File // the program's end

	mu   sync.Mutex
	seen bytes.Buffer
	done chan struct{}
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("this machine gives out no terminals: %v", err)
	}
	raw, err := keys.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var tty *os.File
	if e := raw.Control(func(fd uintptr) {
		var n int
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
				tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
			}
		}
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	term := &terminal{t: t, keys: keys, tty: tty, done: make(chan struct{})}
	go term.watch()
	t.Cleanup(func() {
		keys.Close()
		<-term.done
		tty.Close()
	})
	return term
}

func (x *terminal) watch() {
	defer close(x.done)
	b := make([]byte, 1024)
	for {
		n, err := x.keys.Read(b)
		if err != nil {
			return
		}
		_, _ = x.Write(b[:n])
	}
}

// Write is what the program says on stderr: at the same screen.
func (x *terminal) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.Write(b)
}

func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.String()
}

// wait waits until the screen holds a text and the terminal echoes or does not.
func (x *terminal) wait(text string, echo bool) {
	x.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(x.screen(), text) || x.echoes() != echo {
		select {
		case <-tick.C:
		case <-deadline:
			x.t.Fatalf("the screen shows %q, echo %t; want %q, %t", x.screen(), x.echoes(), text, echo)
		}
	}
}

func (x *terminal) echoes() bool {
	x.t.Helper()
	s, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

func (x *terminal) enter(text string) {
	x.t.Helper()
	if _, err := x.keys.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// Ensure that at a terminal the password is asked for twice and never echoed,
// and that the terminal is left as it was.
func TestPasswordAtATerminal(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second, password, want string
	}{
		"typed twice": {goodPassword, goodPassword, goodPassword, ""},
		"typed wrong": {goodPassword, goodPassword + "x", "", "the two passwords differ, so nothing was changed"},
		"too short":   {"short", "", "", "too short"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTerminal(t)
			a := &app{in: x.tty, err: x, getenv: noEnv}
			type result struct {
				password string
				err      error
			}
			done := make(chan result, 1)
			go func() {
				p, err := a.newPassword(t.Context(), "mona")
				done <- result{p, err}
			}()
			x.wait("new password for mona: ", false)
			x.enter(tt.first + "\n")
			if tt.second != "" {
				x.wait("the same again: ", false)
				x.enter(tt.second + "\n")
			}
			r := <-done
			if tt.want == "" && (r.err != nil || r.password != tt.password) || tt.want != "" && (r.err == nil || !strings.Contains(r.err.Error(), tt.want)) {
				t.Errorf("got %q, %v; want %q, %q", r.password, r.err, tt.password, tt.want)
			}
			if !x.echoes() || strings.Contains(x.screen(), "horse") || strings.Contains(x.screen(), "short") {
				t.Errorf("echo %t, the screen shows %q", x.echoes(), x.screen())
			}
		})
	}
}

// Ensure that who gives up at the prompt gets a terminal back that echoes.
func TestPasswordIsInterrupted(t *testing.T) {
	x := newTerminal(t)
	a := &app{in: x.tty, err: x, getenv: noEnv}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := a.newPassword(ctx, "mona")
		done <- err
	}()
	x.wait("new password for mona: ", false)
	cancel()
	if err := <-done; err == nil || a.exit(err) != exitFailed || !strings.Contains(x.screen(), "docket: interrupted\n") {
		t.Errorf("got %v, the screen shows %q", err, x.screen())
	}
	x.wait("", true)
	x.enter("\n") // lets the read end that nobody waits for
}
