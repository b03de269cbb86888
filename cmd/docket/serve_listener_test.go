package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// Ensure that a shutdown answers the request that comes on a connection that
// was kept open, or that was accepted before it sent anything, and says on the
// answer that it is the last.
func TestShutdownAnswersWhatIsOnItsWay(t *testing.T) {
	for name, used := range map[string]bool{"a kept connection": true, "a silent one": false} {
		t.Run(name, func(t *testing.T) {
			ln, err := listenTCP("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := newListener("it", ln.Addr().String(), "everything", ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "yes")
			}), slog.New(slog.DiscardHandler))
			l.grace = patience
			served, down := make(chan error, 1), make(chan struct{})
			go func() { served <- l.serve() }()

			c, err := net.Dial("tcp", l.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			answers := bufio.NewReader(c)
			if used {
				mustAsk(t, c, answers, false)
			}
			eventually(t, "the connection is accepted and waits", func() bool {
				return l.count(func(c *conn) bool { return c.state == http.StateIdle || !used }) == 1
			})
			l.end()
			go func() {
				l.shutDown(slog.New(slog.DiscardHandler))
				close(down)
			}()
			mustAsk(t, c, answers, true)
			<-down
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// mustAsk sends a request that must be answered, on the last time a
// connection is used or not.
func mustAsk(t *testing.T, c net.Conn, answers *bufio.Reader, last bool) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "yes" || resp.Close != last {
		t.Errorf("answered %q %v, as the last %t", body, err, resp.Close)
	}
}

// Ensure that who is silent in the TLS handshake is cut off within the time for
// headers, and gives up the place that a connection has.
func TestASilentHandshakeIsCutOff(t *testing.T) {
	cert, key := newPair(t, "ci.example.org", 1)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := listenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newListener("it", ln.Addr().String(), "everything", ln, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	l.secure = &secure{config: &tls.Config{Certificates: []tls.Certificate{pair}}}
	l.http.ReadHeaderTimeout = 200 * time.Millisecond
	served := make(chan error, 1)
	go func() { served <- l.serve() }()
	t.Cleanup(func() {
		l.ending.Store(true)
		l.http.Close()
		<-served
	})
	c := newCrowd(t)
	for what, text := range map[string]string{"silent": "", "slow": halfAHello} {
		one := c.join(l.address, text)
		_ = one.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, one); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s one was left alone", what)
		}
	}
	eventually(t, "no place is taken", func() bool { return l.count(func(*conn) bool { return true }) == 0 })
}
