package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/store/ci"
)

// passSockets makes the command one that gets the sockets as sd_listen_fds(3)
// has it: a shell gives it its own process id and becomes it.
func (d *daemon) passSockets() {
	args := append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, d.cmd.Path}, d.cmd.Args[1:]...)
	sh := exec.Command("/bin/sh", args...)
	sh.Dir, sh.Env = d.cmd.Dir, append(d.cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(d.sockets)), "LISTEN_FDNAMES=docket")
	sh.ExtraFiles = d.sockets
	d.cmd = sh
}

// heldSocket is a listening socket that the test keeps, as the service manager
// does, and never answers on.
func heldSocket(t *testing.T) (f *os.File, address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if f, err = ln.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, ln.Addr().String()
}

// copyProgram gives the daemon a program of its own, which a test can replace.
func (d *daemon) copyProgram() {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	d.program = filepath.Join(d.dir, "docket")
	if err := os.Link(exe, d.program); err == nil {
		return
	}
	mustWrite(d.t, d.program, mustRead(d.t, exe))
	if err := os.Chmod(d.program, 0o700); err != nil {
		d.t.Fatal(err)
	}
}

// replaceProgram puts a shell script in the program's place, as a package does.
func (d *daemon) replaceProgram(script string) {
	d.t.Helper()
	mustWrite(d.t, d.program+".new", "#!/bin/sh\n"+script)
	if err := os.Chmod(d.program+".new", 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(d.program+".new", d.program); err != nil {
		d.t.Fatal(err)
	}
}

// serviceManager is what docket tells its state.
type serviceManager struct {
	t     *testing.T
	path  string
	lines chan string
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	m := &serviceManager{t: t, path: filepath.Join(shortDir(t), "notify"), lines: make(chan string, 1000)}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			select {
			case m.lines <- string(buf[:n]):
			default: // nobody looks
			}
		}
	})
	t.Cleanup(func() { c.Close(); reading.Wait() })
	return m
}

// wait waits until docket tells a state that begins with this.
func (m *serviceManager) wait(state string) string {
	m.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line := <-m.lines:
			if strings.HasPrefix(line, state) {
				return line
			}
		case <-timer.C:
			m.t.Fatalf("waited %s in vain for %s", patience, state)
		}
	}
}

// forget returns what was told and not looked at.
func (m *serviceManager) forget() (lines []string) {
	for {
		select {
		case line := <-m.lines:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

// senders deliver signed pushes all the time and never twice: half of them
// over a connection that they keep, half over a new one each. One push in
// some starts a run, so that steps run at every upgrade.
type senders struct {
	d    *daemon
	repo *repository
	head string
	some int

	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	acked  []string // deliveries answered with 202
	faults []string
	slow   time.Duration // the longest answer
}

func (d *daemon) startSenders(n int, repo *repository) *senders {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	s := &senders{d: d, repo: repo, head: repo.commit("refs/heads/main"), some: pushesPerRun(d.t), cancel: cancel}
	for i := range n {
		s.wg.Go(func() { s.send(ctx, i) })
	}
	d.t.Cleanup(func() { cancel(); s.wg.Wait() })
	return s
}

// pause lies between two deliveries of a sender.
const pause = 25 * time.Millisecond

func (s *senders) send(ctx context.Context, sender int) {
	transport := &http.Transport{DisableKeepAlives: sender%2 == 0}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		ref := "refs/heads/other" // which starts nothing
		if n%s.some == sender%s.some {
			ref = "refs/tags/v" + strconv.Itoa(sender) + "." + strconv.Itoa(n)
		}
		w := delivery{event: ci.EventPush, id: fmt.Sprintf("d-%d-%d", sender, n), body: s.repo.push(ref, "", s.head)}
		began := time.Now()
		fault := s.once(client, w)
		s.mu.Lock()
		s.slow = max(s.slow, time.Since(began))
		if fault != "" {
			s.faults = append(s.faults, w.id+": "+fault)
		} else {
			s.acked = append(s.acked, w.id)
		}
		s.mu.Unlock()
		<-tick.C
	}
}

// once sends a delivery, without what Go's client does again by itself, and
// says what went wrong.
func (s *senders) once(client *http.Client, w delivery) string {
	req, err := http.NewRequest("POST", "http://"+s.d.addresses[0]+"/hooks/github", bytes.NewReader(w.body))
	if err != nil {
		return err.Error()
	}
	req.Header, req.GetBody = w.header(), nil
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusAccepted {
		return fmt.Sprintf("%d %v %s", resp.StatusCode, err, b)
	}
	return ""
}

func (s *senders) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acked)
}

// stop ends the senders and checks that each delivery was acknowledged and is
// on record once.
func (s *senders) stop() {
	t := s.d.t
	t.Helper()
	s.cancel()
	s.wg.Wait()
	t.Logf("%d deliveries, the slowest answered after %s", len(s.acked), s.slow.Round(time.Millisecond))
	if len(s.faults) > 0 {
		t.Errorf("%d deliveries of %d were not acknowledged: %.2000s", len(s.faults), len(s.faults)+len(s.acked), strings.Join(s.faults, "\n"))
	}
	on := map[string]int{}
	for _, r := range all[ci.Receipt](s.d, "receipts", "/receipts") {
		on[r.Delivery]++
	}
	for _, id := range s.acked {
		if on[id] != 1 {
			t.Errorf("the acknowledged delivery %s is on record %d times", id, on[id])
		}
	}
	if len(on) != len(s.acked) {
		t.Errorf("%d deliveries are on record and %d were acknowledged", len(on), len(s.acked))
	}
}
