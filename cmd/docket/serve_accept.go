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
	otherFiles       = 256 // for the store, logs and what runs start
)

// connectionsFor is how many connections each of n listeners may have, so that
// files can be opened besides.
func connectionsFor(n int) int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections
	}
	share := (int64(min(files.Cur, 1<<30)) - otherFiles) / int64(n)
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

// makeRoom shuts up to n connections that carry no request: those of the
// network that has most of them, first who never sent a request, and the
// longest silent first. It returns how many it shut.
func (l *listener) makeRoom(n int) int {
	type candidate struct {
		c net.Conn
		*conn
	}
	l.mu.Lock()
	from := map[string][]candidate{}
	most := ""
	for c, known := range l.conns {
		if known.shut || known.state != http.StateNew && known.state != http.StateIdle {
			continue
		}
		from[known.from] = append(from[known.from], candidate{c, known})
		if len(from[known.from]) > len(from[most]) {
			most = known.from
		}
	}
	list := from[most]
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.state, b.state), a.since.Compare(b.since)) // StateNew is the least
	})
	list = list[:min(n, len(list))]
	for _, c := range list {
		c.shut = true
		l.shutting++
		l.shut++
	}
	l.mu.Unlock()
	for _, c := range list {
		if t, ok := c.c.(*tls.Conn); ok {
			c.c = t.NetConn() // whose Close waits for nobody
		}
		c.c.Close()
	}
	return len(list)
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
