package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"docket/server"
)

// Bounds of a shutdown. The first two are for what may be on its way here
// when a connection is closed; nobody can know of that.
const (
	idleGrace = 2 * time.Second  // for a connection that waits for another request
	newGrace  = 2 * time.Second  // for one that has not sent anything yet
	httpGrace = 10 * time.Second // for a request under way
)

// listener is one address and the server behind it.
type listener struct {
	name    string // as it is handed over
	address string
	what    string
	ln      net.Listener
	http    *http.Server
	secure  *secure // nil: plain HTTP
	handler http.Handler
	ended   chan struct{} // closed when it accepts no more
	grace   time.Duration // idleGrace

	ending atomic.Bool // each answer is the last of its connection
	since  time.Time   // of ending
	mu     sync.Mutex
	conns  map[net.Conn]*conn

	log      *slog.Logger
	most     int       // connections; see serve_accept.go
	shutting int       // connections that were shut to make room and are not gone yet
	shut     uint64    // how many ever were
	trouble  error     // why the last one could not be accepted
	troubled time.Time // when that was
}

// conn is one connection.
type conn struct {
	state http.ConnState
	since time.Time // when it came into that state
	from  string    // the network that it comes from
	shut  bool      // to make room
	told  bool      // came when every answer said that it is the last
}

func newListener(name, address, what string, ln net.Listener, h http.Handler, log *slog.Logger) *listener {
	l := &listener{name: name, address: address, what: what, ln: ln, handler: h, log: log, most: mostConnections, ended: make(chan struct{}), grace: idleGrace, conns: map[net.Conn]*conn{}}
	l.http = server.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		l.handler.ServeHTTP(w, r)
	}))
	l.http.ConnState = l.note
	l.http.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // of clients that break off
	return l
}

// note keeps account of the connections that there are.
func (l *listener) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.conns[c] = &conn{state: state, since: time.Now(), from: networkOf(c.RemoteAddr()), told: l.ending.Load()}
	case http.StateClosed, http.StateHijacked:
		if known := l.conns[c]; known != nil && known.shut {
			l.shutting--
		}
		delete(l.conns, c)
	default:
		if known := l.conns[c]; known != nil {
			known.state, known.since = state, time.Now()
		}
	}
}

// count returns how many connections are of a kind.
func (l *listener) count(is func(*conn) bool) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		if is(c) {
			n++
		}
	}
	return n
}

// none waits until no connection is of a kind, at most for a while.
func (l *listener) none(limit time.Duration, is func(*conn) bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); l.count(is) > 0; <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// serve answers until the listener is shut down.
func (l *listener) serve() error {
	defer close(l.ended)
	var ln net.Listener = accepting{l.ln, l}
	if l.secure != nil {
		ln = tls.NewListener(ln, l.secure.config)
	}
	err := l.http.Serve(ln)
	if l.ending.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("listener %s: %w", l.address, err)
}

// end makes each answer from now on the last of its connection, so that none
// is left when docket no longer answers. Connections are still taken.
func (l *listener) end() {
	l.since = time.Now()
	l.ending.Store(true)
}

// shutDown answers every request that was sent on a connection that was
// accepted, and says on each that no other may follow. Connections that come
// later wait for whoever holds the socket, if somebody does. end comes first.
//
// The server's own Shutdown is no help: it closes connections whose request
// it has not read yet.
func (l *listener) shutDown(log *slog.Logger) {
	l.none(time.Until(l.since.Add(l.grace)), func(c *conn) bool { return !c.told })
	l.ln.Close()
	<-l.ended
	server.EndStreams(l.http)
	if !l.none(httpGrace, func(c *conn) bool {
		return c.state == http.StateActive || c.state == http.StateNew && time.Since(c.since) < newGrace
	}) {
		log.Warn("requests under way were cut off", keyAddress, l.address)
	}
	l.http.Close()
}

// shutDown shuts all of them down at once.
func shutDown(list []*listener, log *slog.Logger) {
	var wg sync.WaitGroup
	for _, l := range list {
		wg.Go(func() { l.shutDown(log) })
	}
	wg.Wait()
}
