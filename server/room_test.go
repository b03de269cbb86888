package server_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/server"
)

// from sends a delivery that comes from an address, as a proxy on this machine
// says it; signed tells whether its signature is right.
func (r *rig) from(address, id, body string, signed bool) answer {
	r.t.Helper()
	req := r.delivery(r.url, "push", id, body)
	req.Header.Set("X-Forwarded-For", address)
	if !signed {
		req.Header.Set("X-Hub-Signature-256", sign("another secret", body))
	}
	return r.do(req)
}

// failing sends a request without a secret from an address.
func (r *rig) failing(address, path, body string) answer {
	r.t.Helper()
	req := mustRequest(r.t, http.MethodPost, r.url+path, body)
	req.Header.Set("X-Forwarded-For", address)
	req.Header.Set("Authorization", "Bearer x")
	return r.do(req)
}

// Ensure that an address that fails too often is answered 429, that what it
// signs is still taken, and that other addresses are none the worse for it.
func TestFailuresOfAnAddressAreLimited(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.server = server.New(server.Options{
		Store: r.store, Config: r.config, Pages: renderer(), Log: slog.New(slog.NewTextHandler(r.log, nil)), Now: func() time.Time { return now },
	})
	r.url = r.mustListen(r.server.Handler())
	n := 0
	for ; n < 1000; n++ {
		a := r.from("192.0.2.1", fmt.Sprint("bad-", n), mainPush(), false)
		if a.status == http.StatusTooManyRequests {
			if a.header.Get("Retry-After") == "" || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("header %v", a.header)
			}
			break
		}
		if a.status != http.StatusUnauthorized {
			t.Fatalf("answer %v", a)
		}
	}
	if n != 600 {
		t.Fatalf("429 after %d", n)
	}
	for _, path := range []string{"/hooks/github", "/hooks/nobody", "/no/such/path", "/api/v1/runs/api-1/cancel"} {
		wantProblem(t, r.failing("192.0.2.1", path, mainPush()), http.StatusTooManyRequests)
	}
	if a := r.from("192.0.2.1", "good", mainPush(), true); a.status != 202 {
		t.Errorf("a signed one: %v", a)
	}
	wantProblem(t, r.from("192.0.2.2", "other", mainPush(), false), 401)
	if log := r.log.String(); strings.Count(log, "fails too often") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// slowBodies opens n connections whose bodies have begun and do not go on, from
// addresses that a proxy names by a pattern; "" for none.
func (r *rig) slowBodies(n int, pattern string) {
	r.t.Helper()
	host := strings.TrimPrefix(r.url, "http://")
	for i := range n {
		c, err := net.Dial("tcp", host)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { c.Close() })
		by := ""
		if pattern != "" {
			by = "X-Forwarded-For: " + fmt.Sprintf(pattern, i) + "\r\n"
		}
		fmt.Fprintf(c, "POST /hooks/github HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\n"+
			"X-Hub-Signature-256: sha256=00\r\nContent-Length: 200000\r\n\r\n{", by)
	}
}

// Ensure that bodies that come slowly and fill the room are cut off as soon as
// another has to wait.
func TestSlowBodiesMakeWay(t *testing.T) {
	r := newRig(t)
	r.slowBodies(600, "192.0.%d.1")
	if a := r.from("198.51.100.1", "good", mainPush(), true); a.status != 202 {
		t.Errorf("signed: %v", a)
	}
}

// Ensure that more slow bodies than make way in time do not keep a signed
// delivery out that comes from where they come from.
func TestSlowBodiesOfTheSameAddressMakeWay(t *testing.T) {
	r := newRig(t)
	r.slowBodies(2500, "")
	for i := range 3 {
		if a := r.deliver("push", fmt.Sprint("good-", i), mainPush()); a.status != 202 {
			t.Errorf("signed: %v", a)
		}
	}
}
