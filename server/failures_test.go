package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store/ci"
)

// freeze puts a server before the rig whose time stands still.
func (r *rig) freeze() {
	r.t.Helper()
	now := time.Now()
	r.server = server.New(server.Options{
		Store: r.store, Config: r.config, Pages: renderer(), Log: slog.New(slog.NewTextHandler(r.log, nil)), Now: func() time.Time { return now },
	})
	r.url = r.mustListen(r.server.Handler())
}

// failUntilLimited makes the address of this machine one that failed too often.
func (r *rig) failUntilLimited() {
	r.t.Helper()
	for range 1000 {
		if a := r.do(mustRequest(r.t, "GET", r.url+"/no/such/path", "")); a.status == http.StatusTooManyRequests {
			return
		}
	}
	r.t.Fatal("the address is not limited")
}

// Ensure that who has a valid token is neither counted among those who fail nor
// refused for what others at the address did, wherever he asks.
func TestAValidTokenIsNoFailure(t *testing.T) {
	r := newRig(t)
	r.freeze()
	ask := func(path, token string) int {
		t.Helper()
		req := mustRequest(t, "GET", r.url+path, "")
		req.Header.Set("Authorization", "Bearer "+token)
		return r.do(req).status
	}
	viewer := r.token(ci.Viewer)
	for i := range 700 {
		for _, path := range []string{"/no/such/path", "/api/v1/runs/api-1"} {
			if got := ask(path, viewer); got != 404 {
				t.Fatalf("%s, time %d: %d", path, i, got)
			}
		}
	}
	if got := ask("/api/v1/runs", "x"); got != 401 {
		t.Errorf("the first to fail: %d", got)
	}
	r.failUntilLimited()
	for _, token := range []string{viewer, adminToken} {
		for path, want := range map[string]int{"/api/v1/runs": 200, "/api/v1/runs/api-1": 404, "/no/such/path": 404, "/api/v1/reload": 405} {
			if got := ask(path, token); got != want {
				t.Errorf("%s: %d, want %d", path, got, want)
			}
		}
	}
}

// Ensure that who is signed in is not refused for what others at the address did.
func TestASessionIsNoFailure(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("viewer")
	p.failUntilLimited()
	for path, want := range map[string]int{"/": 200, "/runs/api-1": 404, "/no/such/path": 404} {
		if a := b.get(path); a.status != want {
			t.Errorf("%s: %v, want %d", path, a, want)
		}
	}
}

// Ensure that an address that fails too often is answered before the body of
// what it does not sign, and that a body is read where there may be a signature.
func TestUnsignedBodiesOfALimitedAddressAreNotRead(t *testing.T) {
	r := newRig(t)
	r.freeze()
	begin := func(header string, patience time.Duration) (*http.Response, error) {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: 100000\r\n\r\n{", header)
		_ = c.SetReadDeadline(time.Now().Add(patience))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			res.Body.Close()
		}
		return res, err
	}
	const brief = 200 * time.Millisecond // the answer to a header alone takes a tenth of it
	if res, err := begin("", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answered before its body, as yet unlimited: %v, %v", res, err)
	}
	r.failUntilLimited()
	if res, err := begin("", 10*time.Second); err != nil || res.StatusCode != http.StatusTooManyRequests || !res.Close {
		t.Errorf("unsigned: %v, %v", res, err)
	}
	if res, err := begin("X-Hub-Signature-256: sha256=00\r\n", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answered before the body that its signature is of: %v, %v", res, err)
	}
}

// Ensure that however many addresses fail, a bounded number is remembered.
func TestRememberedFailuresAreBounded(t *testing.T) {
	r := newRig(t)
	r.freeze()
	for i := range 4200 {
		r.failing(fmt.Sprintf("192.0.%d.%d", i/256, i%256), "/no/such/path", "")
	}
	if n := r.server.RememberedFailures(); n != 4096 {
		t.Errorf("%d addresses are remembered", n)
	}
}
