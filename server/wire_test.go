package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/server"
)

// raw sends bytes on a connection of its own, says that no more will come, and
// returns the statuses of all answers.
func (r *rig) raw(text string) (statuses []int) {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Logf("the server closed early: %v", err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	in := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
	}
}

// Ensure that a request whose end two readers could see in two places is
// refused or ends its connection, so that what follows it is never taken for a
// request of its own.
func TestNoRequestIsSmuggled(t *testing.T) {
	r := newRig(t)
	const smuggled = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	for name, row := range map[string]struct {
		text string
		want string
	}{
		"two lengths":              {post("Content-Length: 0\r\nContent-Length: 35\r\n", smuggled), "[400]"},
		"a length with a sign":     {post("Content-Length: +0\r\n", smuggled), "[400]"},
		"an encoding nobody knows": {post("Transfer-Encoding: x, chunked\r\n", "0\r\n\r\n"+smuggled), "[501]"},
		"chunked twice":            {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), "[501]"},
		"a space before the colon": {post("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled), "[400]"},
		"a folded header":          {post("X-A: b\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""), "[401]"},
		"no host":                  {"GET /healthz HTTP/1.1\r\n\r\n" + smuggled, "[400]"},
		"two hosts":                {"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + smuggled, "[400]"},
		"a chunk of a wrong size":  {post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"+smuggled), "[400]"},
		"a length and chunks":      {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled), "[401]"},
		"one after the other":      {smuggled + smuggled, "[200 200]"},
	} {
		if got := fmt.Sprint(r.raw(row.text)); got != row.want {
			t.Errorf("%s: answered %s, want %s", name, got, row.want)
		}
	}
}

// Ensure that headers are bounded, and that a connection ends on which a body
// was refused that may still come.
func TestHeadersAreBounded(t *testing.T) {
	r := newRig(t)
	header := func(n int) string {
		return "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", n) + "\r\n\r\n"
	}
	for n, want := range map[int]string{60 << 10: "[200]", 80 << 10: "[431]", 1 << 20: "[431]"} {
		if got := fmt.Sprint(r.raw(header(n))); got != want {
			t.Errorf("a header of %d bytes: answered %s, want %s", n, got, want)
		}
	}
	late := "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	if got := fmt.Sprint(r.raw(late)); got != "[413]" {
		t.Errorf("a body that is refused unread: answered %s", got)
	}
}

// Ensure that the time-outs of a listener are those that README.md promises,
// and that a TLS handshake has one: the server gives it the least of three.
func TestTimeoutsAreThosePromised(t *testing.T) {
	s := server.NewHTTPServer(http.NotFoundHandler())
	for what, row := range map[string][2]any{
		"headers": {s.ReadHeaderTimeout, 10 * time.Second}, "a request": {s.ReadTimeout, time.Minute}, "an answer": {s.WriteTimeout, 2 * time.Minute},
		"the next request": {s.IdleTimeout, 2 * time.Minute}, "bytes of headers": {s.MaxHeaderBytes, 64 << 10},
	} {
		if row[0] != row[1] {
			t.Errorf("%s: %v, promised are %v", what, row[0], row[1])
		}
	}
}
