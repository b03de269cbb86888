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
	"slices"
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

// files returns how many files docket has open.
func (d *daemon) files() int {
	d.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return len(open)
}

// siege is what docket has to withstand while deliveries come in.
type siege struct {
	idle    int           // connections that stand open
	senders int           // of deliveries that are not signed
	size    int           // of their bodies
	bare    bool          // they have no signature at all, else a wrong one
	near    bool          // they come from the address that the signed ones come from
	signed  int           // deliveries
	limit   time.Duration // for each of them
	most    int           // MiB that docket may take
}

// flood sends deliveries until stop is called, which returns how many were
// answered.
func (s siege) flood(d *daemon) (stop func() int) {
	body := bytes.Repeat([]byte{' '}, s.size)
	end := make(chan struct{})
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range s.senders {
		wg.Go(func() {
			header := delivery{event: ci.EventPush, id: "bad", body: []byte("another")}.header()
			if s.bare {
				header.Del("X-Hub-Signature-256")
			}
			if !s.near {
				header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
			}
			for {
				select {
				case <-end:
					return
				default:
				}
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
func (s siege) withstand(t *testing.T) {
	t.Helper()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"push": obj{"branches": []string{"none"}}}})
	})
	d.start()
	body := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
	before, files := d.memory(), d.files()
	c := newCrowd(t)
	c.idle(d.addresses[0], s.idle)
	stop := s.flood(d)
	took, peak, most := make([]time.Duration, s.signed), 0, 0
	for i := range took {
		w := delivery{event: ci.EventPush, id: fmt.Sprint("d-", i), body: body}
		began := time.Now()
		if a := d.deliver(w); a.status != http.StatusAccepted {
			t.Fatalf("signed delivery %d: %v", i, a)
		}
		took[i], peak, most = time.Since(began), max(peak, d.memory()), max(most, d.files())
	}
	refused := stop()
	c.leave()
	eventually(t, "the connections are gone", func() bool { return d.files() <= files+s.senders })
	slices.Sort(took)
	slowest := took[len(took)-1]
	t.Logf("%d idle, %d refused, %d signed: median %s, p99 %s, slowest %s; %d MiB, at most %d, then %d; %d files, at most %d, then %d",
		s.idle, refused, s.signed, took[len(took)/2], took[len(took)*99/100], slowest, before, peak, d.memory(), files, most, d.files())
	if slowest > s.limit || peak > s.most || refused == 0 {
		t.Errorf("the slowest took %s, want %s; %d MiB, want %d; %d refused", slowest, s.limit, peak, s.most, refused)
	}
}

// Ensure that a flood and idle connections keep no signed delivery out.
func TestSignedDeliveriesInAFlood(t *testing.T) {
	t.Parallel()
	siege{idle: 500, senders: 4, size: 2 << 20, signed: 10, limit: 5 * time.Second, most: 512}.withstand(t)
}

// besiege fills a listener with many more connections than it has room for,
// most of them silent, some with half a request or kept after one, and goes on
// opening others until stop is called, pace by pace from each of eight sides, or
// as fast as it can where pace is 0.
func (c *crowd) besiege(address string, n int, pace time.Duration) (stop func()) {
	c.t.Helper()
	texts := []string{"", halfARequest, wholeRequest}
	for i := range n {
		c.join(address, texts[i%len(texts)])
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			held := make([]net.Conn, 16)
			tick := time.NewTicker(max(pace, 1))
			defer tick.Stop()
			for n := 0; ; n = (n + 1) % len(held) {
				if held[n] != nil {
					held[n].Close()
				}
				select {
				case <-end:
					return
				case <-tick.C:
				}
				if one, err := net.Dial("tcp", address); err == nil {
					_, _ = io.WriteString(one, texts[i%len(texts)])
					held[n] = one
				}
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { close(end) }); wg.Wait() }
	c.t.Cleanup(stop)
	return stop
}

// throng checks that every delivery gets through a listener that is full, and
// that it has no more connections than most.
func throng(t *testing.T, d *daemon, repo *repository, conns, most, signed int, pace time.Duration) []time.Duration {
	t.Helper()
	c := newCrowd(t)
	stop := c.besiege(d.addresses[0], conns, pace)
	body := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
	took := make([]time.Duration, signed)
	for i := range took {
		began := time.Now()
		if a := d.deliver(delivery{event: ci.EventPush, id: fmt.Sprint("d-", i), body: body}); a.status != http.StatusAccepted {
			t.Fatalf("signed delivery %d: %v", i, a)
		}
		took[i] = time.Since(began)
		if n := d.files(); n > most+otherFiles {
			t.Fatalf("%d files are open, with room for %d connections", n, most)
		}
	}
	stop()
	metrics := string(d.call("GET", "/metrics", "", nil).body)
	if m := regexp.MustCompile(`(?m)^docket_connections_shut_total\{address="127.*\} (\d+)`).FindStringSubmatch(metrics); m == nil || m[1] == "0" {
		t.Errorf("the listener was never full: %q", m)
	}
	c.leave()
	return took
}

// Ensure that a docket whose listener is full shuts silent connections and
// takes every signed delivery.
func TestSignedDeliveriesAtAFullListener(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"push": obj{"branches": []string{"none"}}}})
		d.limitFiles(otherFiles + adminConnections + 200)
	})
	d.start()
	// A hundred a second, half of the room: who has come within a second is let be
	// only while others have been there for longer.
	throng(t, d, repo, 400, 200, 100, 80*time.Millisecond)
}

// limitFiles makes docket start with so many open files at most.
func (d *daemon) limitFiles(n int) {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	d.program = filepath.Join(d.dir, "limited")
	if err := os.WriteFile(d.program, fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d\nexec '%s' \"$@\"\n", n, exe), 0o700); err != nil {
		d.t.Fatal(err)
	}
}

// halfAHello is the beginning of a TLS handshake.
const halfAHello = "\x16\x03\x01\x00\xf0\x01"

// Ensure that who sends the headers or the TLS handshake too slowly is cut off
// when README says.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, nil, func(d *daemon) {
		cert, key := newPair(t, "ci.example.org", 1)
		mustWrite(t, filepath.Join(d.dir, "tls.key"), key)
		mustWrite(t, filepath.Join(d.dir, "tls.crt"), cert)
		d.config["listen"] = []obj{{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:0", "tls": obj{"cert": "tls.crt", "key": "tls.key"}}}
	})
	d.start()
	c := newCrowd(t)
	plain, secure := d.addresses[0], d.addresses[1]
	conns := map[string]net.Conn{
		"silent": c.join(plain, ""), "slow": c.join(plain, "GET / HTTP/1.1\r\n"),
		"silent over TLS": c.join(secure, ""), "slow over TLS": c.join(secure, halfAHello),
	}
	began := time.Now()
	for what, one := range conns {
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
