package server_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store/ci"
)

// seat is a stream on a connection of its own.
type seat struct {
	net.Conn
	answer
}

// sit asks for a stream; headers are name, value pairs.
func (r *rig) sit(path string, headers ...string) seat {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	req := mustRequest(r.t, http.MethodGet, r.url+path, "")
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if err := req.Write(c); err != nil {
		r.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		r.t.Fatal(err)
	}
	s := seat{c, answer{status: res.StatusCode, header: res.Header}}
	if s.status != http.StatusOK {
		if s.body, err = io.ReadAll(res.Body); err != nil {
			r.t.Fatal(err)
		}
	}
	return s
}

// mustSit opens n streams.
func (r *rig) mustSit(n int, path string, headers ...string) (list []seat) {
	r.t.Helper()
	for i := range n {
		s := r.sit(path, headers...)
		if s.status != http.StatusOK {
			r.t.Fatalf("stream %d of %s %v: %v", i, path, headers, s.answer)
		}
		list = append(list, s)
	}
	return list
}

// wantNoSeat checks that a stream is refused by a status, and says when to try again.
func (r *rig) wantNoSeat(status int, path string, headers ...string) {
	r.t.Helper()
	s := r.sit(path, headers...)
	wantProblem(r.t, s.answer, status)
	if s.header.Get("Retry-After") == "" {
		r.t.Errorf("%s %v: no Retry-After in %v", path, headers, s.header)
	}
}

// Ensure that readers of a public project have a bounded number of streams, one
// address a part of them; that who is signed in and signed deliveries get
// through beside them, and so does the page itself; and that a stream that has
// ended leaves its seat to another.
func TestStreamsAreBounded(t *testing.T) {
	p := newPages(t, isPublic)
	run := p.mustClaim()
	w := p.mustCreateLog(run)
	at := func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }
	first := p.mustSit(32, "/projects/api", "X-Forwarded-For", at(0))
	p.wantNoSeat(http.StatusTooManyRequests, "/projects/api", "X-Forwarded-For", at(0))
	for i := 1; i < 8; i++ {
		p.mustSit(32, []string{"/projects/api", "/runs/" + run.ID}[i%2], "X-Forwarded-For", at(i))
	}
	p.wantNoSeat(http.StatusServiceUnavailable, "/projects/api", "X-Forwarded-For", at(8))
	p.wantNoSeat(http.StatusServiceUnavailable, "/runs/"+run.ID, "X-Forwarded-For", at(8))
	p.wantNoSeat(http.StatusServiceUnavailable, "/runs/"+run.ID+"/logs", "X-Forwarded-For", at(8))

	wantPage(t, p.browser().get("/projects/api"), 200)
	wantPage(t, p.browser().get("/runs/"+run.ID), 200)
	if a := p.deliver("push", "beside", mainPush()); a.status != 202 {
		t.Errorf("a signed delivery: %v", a)
	}
	b := p.browser().mustLogin("viewer")
	p.mustSit(1, "/projects/api", "Cookie", b.cookie.Name+"="+b.cookie.Value, "X-Forwarded-For", at(0))
	p.mustSit(128, "/api/v1/runs/"+run.ID+"/logs?follow=1", "Authorization", "Bearer "+p.token(ci.Viewer))
	p.wantNoSeat(http.StatusTooManyRequests, "/api/v1/runs/"+run.ID+"/logs?follow=1", "Authorization", "Bearer "+p.token(ci.Viewer))
	p.mustSit(1, "/api/v1/runs/"+run.ID+"/logs?follow=1", "Authorization", "Bearer "+p.token(ci.Operator))
	metrics := string(p.do(mustRequest(t, "GET", p.url+"/metrics", "")).body)
	wantIn(t, metrics, `docket_streams{reader="open"} 256`, `docket_streams{reader="signed_in"} 130`,
		`docket_streams_refused_total{bound="all",reader="open"} 3`, `docket_streams_refused_total{bound="reader",reader="signed_in"} 1`)

	first[0].Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		s := p.sit("/projects/api", "X-Forwarded-For", at(8))
		if s.status == http.StatusOK {
			break
		}
		s.Close()
		if time.Now().After(deadline) {
			t.Fatal("a seat that was left stays taken")
		}
	}
	p.mustFinish(run, w)
}

// Ensure that where a listener takes few connections, streams take no more than
// half of them, and that refusals are logged once in a while.
func TestStreamsLeaveConnections(t *testing.T) {
	r := newRig(t, isPublic)
	now := time.Now()
	r.server = server.New(server.Options{
		Store: r.store, Config: r.config, Pages: renderer(), Log: slog.New(slog.NewTextHandler(r.log, nil)), Now: func() time.Time { return now }, Connections: 64,
	})
	r.url = r.mustListen(r.server.Handler())
	for i := range 2 {
		from := fmt.Sprintf("192.0.2.%d", i)
		r.mustSit(8, "/projects/api", "X-Forwarded-For", from)
		r.wantNoSeat(http.StatusTooManyRequests, "/projects/api", "X-Forwarded-For", from)
	}
	for range 20 {
		r.wantNoSeat(http.StatusServiceUnavailable, "/projects/api", "X-Forwarded-For", "192.0.2.9")
	}
	r.wantLogged(1, "streams")
	now = now.Add(time.Second)
	r.wantNoSeat(http.StatusServiceUnavailable, "/projects/api", "X-Forwarded-For", "192.0.2.9")
	r.wantLogged(2, "streams")
	wantIn(t, r.log.String(), "left_out=19")
}

// wantLogged checks how many lines of the log have a text.
func (r *rig) wantLogged(n int, text string) {
	r.t.Helper()
	if got := strings.Count(r.log.String(), text); got != n {
		r.t.Errorf("%d lines with %q, want %d:\n%s", got, text, n, r.log.String())
	}
}

// Ensure that deliveries for which there is no room are logged and listed at
// most once a second, with the number of those left out, and all counted.
func TestWantOfRoomIsLoggedSeldom(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.server = server.New(server.Options{
		Store: r.store, Config: r.config, Pages: renderer(), Log: slog.New(slog.NewTextHandler(r.log, nil)), Now: func() time.Time { return now },
	})
	r.url = r.mustListen(r.server.Handler())
	leave := r.server.FillRooms(time.Millisecond)
	refused := func(n int) {
		t.Helper()
		for i := range n {
			a := r.deliver("push", fmt.Sprint("d-", i), mainPush())
			if wantProblem(t, a, http.StatusServiceUnavailable); a.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After in %v", a.header)
			}
		}
	}
	refused(20)
	r.wantLogged(1, "delivery refused")
	now = now.Add(999 * time.Millisecond)
	refused(1)
	r.wantLogged(1, "delivery refused")
	now = now.Add(time.Millisecond)
	refused(5)
	r.wantLogged(2, "delivery refused")
	wantIn(t, r.log.String(), "left_out=0", "left_out=20")
	if list := mustDecode[struct{ Refusals []any }](t, r.call(ci.Viewer, "GET", "/refusals", "")).Refusals; len(list) != 2 {
		t.Errorf("%d are listed", len(list))
	}
	wantIn(t, string(r.do(mustRequest(t, "GET", r.url+"/metrics", "")).body), `docket_refusals_total{integration="github",reason="body"} 26`)
	leave()
	if a := r.deliver("push", "good", mainPush()); a.status != 202 {
		t.Errorf("with room: %v", a)
	}
}
