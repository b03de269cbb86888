package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"docket/server"
)

// Bounds of the connections that a listener has at the same time. Go raises
// the soft limit of open files to the hard one at the start, and lowers it
// again for what docket starts.
const (
	mostConnections  = 16384
	leastConnections = 64
	adminConnections = 256 // of the admin socket
	otherFiles       = 256 // for the store, logs and what runs start
)

// openFiles is how many files this process may have open.
func openFiles() uint64 {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return unix.RLIM_INFINITY
	}
	return files.Cur
}

// connectionsFor is how many connections each of n listeners beside the admin
// socket may have with so many open files, so that others can be opened too.
func connectionsFor(n int, files uint64) int {
	share := (int64(min(files, 1<<30)) - otherFiles - adminConnections) / int64(max(n, 1))
	return int(max(leastConnections, min(mostConnections, share)))
}

// accepting is a listener that never ends by an error, and that makes room
// where it has too many connections.
type accepting struct {
	net.Listener
	l *listener
}

const (
	acceptAgain  = 50 * time.Millisecond // after a connection could not be accepted
	roomAgain    = 5 * time.Millisecond  // until room was made
	troubleStays = 5 * time.Second       // for who asks for readiness
)

// Accept implements net.Listener.
func (a accepting) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		if err == nil {
			a.l.waitForRoom()
			return c, nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		a.l.noteTrouble(err, time.Now())
		time.Sleep(acceptAgain)
	}
}

// waitForRoom waits until there is room for one connection more.
func (l *listener) waitForRoom() {
	for !l.ending.Load() {
		l.mu.Lock()
		full := len(l.conns)-l.shutting >= l.most
		l.mu.Unlock()
		if !full {
			return
		}
		if l.makeRoom(1+l.most/100) == 0 {
			time.Sleep(roomAgain)
		}
	}
}

// settling is how long a connection is left alone that has just come, or has
// just been answered: its request may be on its way.
const settling = time.Second

// makeRoom shuts up to n connections that carry no request whose header has
// come (the server counts them as new or idle until then): those of the
// network that has most of them, first who never sent a whole request, and the
// longest silent first. Who is still settling is shut alone, and only where all
// of that network are. Who has sent something that a busy machine has not read
// yet is not silent. It returns how many it shut.
func (l *listener) makeRoom(n int) int {
	type candidate struct {
		c net.Conn
		*conn
		settled, asked bool
	}
	now := time.Now()
	l.mu.Lock()
	from := map[string][]candidate{}
	most := ""
	for c, known := range l.conns {
		if known.shut || known.state != http.StateNew && known.state != http.StateIdle {
			continue
		}
		from[known.from] = append(from[known.from], candidate{c, known, now.Sub(known.since) >= settling, known.state == http.StateIdle})
		if len(from[known.from]) > len(from[most]) {
			most = known.from
		}
	}
	list := from[most]
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(falseFirst(!a.settled, !b.settled), falseFirst(a.asked, b.asked), a.since.Compare(b.since))
	})
	var silent []net.Conn
	for _, c := range list {
		if len(silent) == n || len(silent) > 0 && !c.settled {
			break
		}
		if t, ok := c.c.(*tls.Conn); ok {
			c.c = t.NetConn() // whose Close waits for nobody
		}
		if unread(c.c) {
			continue
		}
		silent = append(silent, c.c)
		c.shut = true
		l.shutting++
		l.shut++
	}
	l.mu.Unlock()
	for _, c := range silent {
		c.Close()
	}
	return len(silent)
}

// unread reports whether a connection has received something that has not been
// read yet.
func unread(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && n > 0
}

// noteTrouble takes down that a connection could not be accepted, and makes
// room where files ran out.
func (l *listener) noteTrouble(err error, now time.Time) {
	l.mu.Lock()
	tell := now.Sub(l.troubled) > troubleStays
	l.trouble, l.troubled = err, now
	l.mu.Unlock()
	if tell {
		l.log.Warn("connections cannot be accepted; docket tries on", keyAddress, l.address, keyError, err)
	}
	if noFiles(err) {
		l.makeRoom(1) // as each is a file: who speaks stays while there are others
	}
}

// notReady says why connections could not be accepted lately, or "".
func (l *listener) notReady(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil || now.Sub(l.troubled) > troubleStays {
		return ""
	}
	if noFiles(l.trouble) {
		return noMoreFiles
	}
	return fmt.Sprintf("connections to %s cannot be accepted: %v", l.address, l.trouble)
}

// falseFirst compares two bools.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func noFiles(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// notAccepting says why one of the listeners could not accept connections
// lately, or "".
func (d *appliance) notAccepting(now time.Time) string {
	for _, l := range d.listeners {
		if reason := l.notReady(now); reason != "" {
			return reason
		}
	}
	return ""
}

// networkOf is what one client has of addresses.
func networkOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return ""
	}
	return server.Network(host)
}
