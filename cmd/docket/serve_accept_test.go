package main

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newSmall starts a listener that has room for few connections, and its answers wait
// until open is closed where the path says so.
func newSmall(t *testing.T, most int) (l *listener, open chan struct{}) {
	t.Helper()
	ln, err := listenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open = make(chan struct{})
	l = newListener("it", ln.Addr().String(), "everything", ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-open
		}
		_, _ = io.WriteString(w, "yes")
	}), slog.New(slog.DiscardHandler))
	l.most = most
	served := make(chan error, 1)
	go func() { served <- l.serve() }()
	t.Cleanup(func() {
		l.ending.Store(true)
		l.http.Close()
		<-served
	})
	return l, open
}

// age makes every connection of the listener that much older.
func (l *listener) age(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.since = c.since.Add(-by)
	}
}

// join opens a connection that the listener knows of, and sends text on it. One
// that sends a whole request has its answer, or is being served.
func (l *listener) join(t *testing.T, text string, state http.ConnState) net.Conn {
	t.Helper()
	before := l.count(func(c *conn) bool { return c.state == state && !c.shut })
	c, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is known", func() bool {
		return l.count(func(c *conn) bool { return c.state == state && !c.shut }) > before
	})
	return c
}

const (
	wholeRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	halfARequest = "GET / HTTP/1.1\r\nHo"
	longRequest  = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
)

// isShut reports whether the other side has closed a connection.
func isShut(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := io.Copy(io.Discard, c)
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// Ensure that a full listener shuts those first that never sent a request,
// half a one counting for none, then those that wait for their next, the
// longest silent first; that a request under way is never cut off; and that
// who has just come is let be.
func TestWhoIsShutAtAFullListener(t *testing.T) {
	l, open := newSmall(t, 20)
	busy := l.join(t, longRequest, http.StateActive)
	var kept, silent []net.Conn
	for range 4 {
		kept = append(kept, l.join(t, wholeRequest, http.StateIdle))
		l.age(time.Minute)
	}
	for i := range 4 {
		silent = append(silent, l.join(t, []string{"", halfARequest}[i%2], http.StateNew))
		l.age(settling)
	}
	fresh := l.join(t, "", http.StateNew)
	for i, want := range append(silent, kept...) {
		if n := l.makeRoom(1); n != 1 || !isShut(t, want) {
			t.Fatalf("shut %d, and not the one of turn %d", n, i)
		}
	}
	if isShut(t, fresh) {
		t.Error("who has just come was shut while others were silent for longer")
	}
	if n := l.makeRoom(10); n != 1 || !isShut(t, fresh) {
		t.Errorf("shut %d, and not the last that carries no request", n)
	}
	if n := l.makeRoom(10); n != 0 {
		t.Errorf("shut %d that carry a request", n)
	}
	close(open)
	resp, err := http.ReadResponse(bufio.NewReader(busy), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("the request under way: %v", err)
	}
}

// Ensure that a connection whose request has come, and was not read yet because
// the machine is busy, is not taken for a silent one.
func TestWhoHasSpokenIsNotSilent(t *testing.T) {
	l, _ := newSmall(t, 20)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // which reads nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.mu.Lock()
	l.conns[c] = &conn{state: http.StateNew, since: time.Now().Add(-time.Minute)}
	l.mu.Unlock()
	if _, err := io.WriteString(client, halfARequest); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request has come", func() bool { return unread(c) })
	if n := l.makeRoom(1); n != 0 {
		t.Fatalf("shut %d that had spoken", n)
	}
	if _, err := io.ReadFull(c, make([]byte, len(halfARequest))); err != nil {
		t.Fatal(err)
	}
	if n := l.makeRoom(1); n != 1 || !isShut(t, client) {
		t.Errorf("shut %d, and not the one that is silent now", n)
	}
}

// Ensure that of many at once only those are shut that have settled, and that
// the network is thinned that has most.
func TestRoomIsMadeWhereMostAre(t *testing.T) {
	l, _ := newSmall(t, 100)
	var alone []net.Conn
	for range 20 {
		alone = append(alone, l.join(t, "", http.StateNew))
	}
	l.mu.Lock()
	for c, known := range l.conns {
		known.from = c.RemoteAddr().String()
	}
	l.mu.Unlock()
	l.age(time.Hour)
	for range 3 {
		l.join(t, "", http.StateNew)
	}
	l.age(settling)
	for range 3 {
		l.join(t, "", http.StateNew)
	}
	for _, want := range []int{3, 1, 1} {
		if n := l.makeRoom(100); n != want {
			t.Errorf("shut %d of those that come from where most are, want %d", n, want)
		}
	}
	for i, c := range alone {
		if isShut(t, c) {
			t.Errorf("connection %d was shut, the only one from its network", i)
		}
	}
}

// Ensure that a listener never has more connections than it may, and takes
// every request meanwhile, however many come to say nothing.
func TestAFullListenerTakesRequests(t *testing.T) {
	l, _ := newSmall(t, 50)
	c := newCrowd(t)
	for i := range 400 {
		c.join(l.address, []string{"", halfARequest}[i%2])
		if i%4 != 0 {
			continue
		}
		if a := request("GET", "http://"+l.address+"/", nil, nil); a.status != 200 {
			t.Fatalf("request %d: %v", i, a)
		}
		if n := l.count(func(c *conn) bool { return !c.shut }); n > l.most+1 {
			t.Fatalf("%d connections", n)
		}
	}
}

// Ensure that listeners share the files that there are, and leave some.
func TestConnectionsForListeners(t *testing.T) {
	for _, row := range []struct {
		listeners int
		files     uint64
		want      int
	}{
		{1, unix.RLIM_INFINITY, 16384}, {3, 65536, 16384}, {1, 1024, 512}, {2, 1024, 256}, {4, 65536, 16256}, {1, 100, 64}, {0, 1 << 20, 16384},
	} {
		if got := connectionsFor(row.listeners, row.files); got != row.want {
			t.Errorf("%d listeners with %d files have %d connections each, want %d", row.listeners, row.files, got, row.want)
		}
	}
}

// Ensure that where files run out the longest silent connection is shut for one
// that comes, that no request is, and that other trouble shuts nobody.
func TestTheSilentMakeRoomWhereFilesRunOut(t *testing.T) {
	l, open := newSmall(t, 20)
	defer close(open)
	l.join(t, longRequest, http.StateActive)
	silent := l.join(t, "", http.StateNew)
	l.age(time.Minute)
	kept := l.join(t, "", http.StateNew)
	l.age(settling)
	l.noteTrouble(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ECONNABORTED)}, time.Now())
	if isShut(t, silent) {
		t.Error("a connection was shut although files are left")
	}
	l.noteTrouble(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}, time.Now())
	if !isShut(t, silent) || isShut(t, kept) {
		t.Error("not the longest silent connection alone made room")
	}
	for range 3 {
		l.noteTrouble(syscall.ENFILE, time.Now())
	}
	if n := l.count(func(c *conn) bool { return c.state == http.StateActive && !c.shut }); n != 1 {
		t.Error("a request under way was cut off")
	}
}
