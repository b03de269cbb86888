package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// crowd is connections that docket has from nobody in particular.
type crowd struct {
	t     *testing.T
	conns []net.Conn
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t}
	t.Cleanup(c.leave)
	return c
}

func (c *crowd) leave() {
	for _, one := range c.conns {
		one.Close()
	}
	c.conns = nil
}

// join opens a connection and sends text on it.
func (c *crowd) join(address, text string) net.Conn {
	c.t.Helper()
	one, err := net.Dial("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.conns = append(c.conns, one)
	if _, err := io.WriteString(one, text); err != nil {
		c.t.Logf("a connection was shut at once: %v", err)
	}
	return one
}

// idle joins n connections that had one answer and are kept open.
func (c *crowd) idle(address string, n int) {
	c.t.Helper()
	buf := make([]byte, 1024)
	for range n {
		one := c.join(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := one.Read(buf); err != nil || !bytes.Contains(buf, []byte(" 200 OK")) {
			c.t.Fatalf("an idle connection has no answer: %v", err)
		}
	}
}

// memory returns how much of docket is in memory, in MiB.
func (d *daemon) memory() int {
	d.t.Helper()
	status := mustRead(d.t, fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(status)
	if m == nil {
		d.t.Fatalf("no VmRSS in %s", status)
	}
	n, _ := strconv.Atoi(m[1])
	return n >> 10
}

// flood sends deliveries whose signature is wrong until stop is called, which
// returns how many were answered.
func (d *daemon) flood(senders, size int) (stop func() int) {
	body := bytes.Repeat([]byte{' '}, size)
	end := make(chan struct{})
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-end:
					return
				default:
				}
				header := delivery{event: ci.EventPush, id: "bad", body: []byte("another")}.header()
				header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
				if a := request("POST", "http://"+d.addresses[0]+"/hooks/github", header, body); a.status != 0 {
					n.Add(1)
				}
			}
		})
	}
	var once sync.Once
	stop = func() int { once.Do(func() { close(end) }); wg.Wait(); return int(n.Load()) }
	d.t.Cleanup(func() { stop() })
	return stop
}

// withstand checks that signed deliveries are taken in time, and memory stays
// bounded, while idle connections stand open and senders flood docket.
func withstand(t *testing.T, idle, senders, size, signed int, limit time.Duration, most int) {
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil) })
	d.start()
	body := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
	c := newCrowd(t)
	c.idle(d.addresses[0], idle)
	stop := d.flood(senders, size)
	slowest, peak := time.Duration(0), 0
	for i := range signed {
		w := delivery{event: ci.EventPush, id: fmt.Sprint("d-", i), body: body}
		began := time.Now()
		if a := d.deliver(w); a.status != http.StatusAccepted {
			t.Fatalf("signed delivery %d: %v", i, a)
		}
		slowest, peak = max(slowest, time.Since(began)), max(peak, d.memory())
	}
	refused := stop()
	t.Logf("%d idle connections, %d refused, %d signed: the slowest took %s, at most %d MiB", idle, refused, signed, slowest, peak)
	if slowest > limit || peak > most || refused == 0 {
		t.Errorf("the slowest took %s, want %s; %d MiB, want %d; %d refused", slowest, limit, peak, most, refused)
	}
	c.leave()
}

// Ensure that a flood and idle connections keep no signed delivery out.
func TestSignedDeliveriesInAFlood(t *testing.T) {
	t.Parallel()
	withstand(t, 500, 4, 2<<20, 10, 5*time.Second, 512)
}

// Ensure that who sends the headers too slowly is cut off when README says.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, nil, func(*daemon) {})
	d.start()
	c := newCrowd(t)
	silent, slow := c.join(d.addresses[0], ""), c.join(d.addresses[0], "GET / HTTP/1.1\r\n")
	began := time.Now()
	for what, one := range map[string]net.Conn{"silent": silent, "slow": slow} {
		_ = one.SetReadDeadline(began.Add(patience))
		_, err := io.Copy(io.Discard, one)
		if took := time.Since(began); errors.Is(err, os.ErrDeadlineExceeded) || took < 9*time.Second || took > 15*time.Second {
			t.Errorf("the %s one was cut off after %s: %v", what, took, err)
		}
	}
}

// Ensure that docket lives through running out of files, says so, and is ready
// again by itself.
func TestFilesRunOut(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, nil, func(d *daemon) { d.troubled = true })
	d.start()
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: uint64(len(open) + 10), Max: before.Max}
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &low, nil); err != nil {
		t.Fatal(err)
	}
	c := newCrowd(t)
	for range 40 {
		c.join(d.addresses[0], "")
	}
	d.waitLog("connections cannot be accepted")
	eventually(t, "readiness says why", func() bool {
		a := d.call("GET", "/readyz", "", nil)
		return a.status == http.StatusServiceUnavailable && strings.Contains(string(a.body), "LimitNOFILE")
	})
	c.leave()
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "docket is ready again", func() bool { return d.call("GET", "/readyz", "", nil).status == 200 })
}
