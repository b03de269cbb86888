package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"docket/store/ci"
)

// slowLine is a line of the log that slow readers read.
const slowLine = "a line of the log that is long enough to fill what lies between two programs\n"

// slowRequests are what slow readers ask a server for.
func slowRequests(run string) map[string]string {
	return map[string]string{
		"a backup":             "POST /api/v1/backup",
		"a log":                "GET /api/v1/runs/" + run + "/logs",
		"a followed log":       "GET /api/v1/runs/" + run + "/logs?follow=1",
		"a run's live stream":  "GET /runs/" + run + "\r\nAccept: text/event-stream",
		"a project's":          "GET /projects/api\r\nAccept: text/event-stream",
		"what is read at once": "GET /api/v1/runs",
	}
}

// askSlowly sends a request and takes no more of its answer than its first line.
func askSlowly(tb testing.TB, url, request string) net.Conn {
	tb.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		tb.Fatal(err)
	}
	line, header, _ := strings.Cut(request, "\r\n")
	if header != "" {
		header += "\r\n"
	}
	fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n", line, adminToken, header)
	status, err := bufio.NewReaderSize(c, 1024).ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		c.Close()
		tb.Fatalf("%q: %q, %v", request, status, err)
	}
	return c
}

// Ensure that who does not take an answer holds neither a read of the store nor
// anything that a delivery needs: while many stall, deliveries are taken, and no
// read stays open, which would keep pages from being filled again and, where
// the file must grow, stop every write.
func TestStalledReadersHoldNothing(t *testing.T) {
	r := newRig(t, func(c *ci.Config) { c.Projects[0].Public = true })
	for i := range 8 { // more than lies between two programs, so that a backup stalls
		noise := make([]byte, 700_000)
		for j := range noise {
			noise[j] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rand.IntN(64)]
		}
		if a := r.deliver("ping", fmt.Sprint("noise-", i), `{"zen":"`+string(noise)+`"}`); a.status != 202 {
			t.Fatal(a)
		}
	}
	if a := r.deliver("push", "d-1", mainPush()); a.status != 202 {
		t.Fatal(a)
	}
	run := r.mustClaimNext()
	w, err := r.store.Logs().Create(run.ID, run.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte(slowLine), 6<<20/len(slowLine))
	if err := w.Append(0, time.Now(), text, false); err != nil {
		t.Fatal(err)
	}
	for what, request := range slowRequests(run.ID) {
		for range 3 {
			c := askSlowly(t, r.url, request)
			t.Cleanup(func() { c.Close() })
		}
		r.noOpenReads(what)
	}
	for i := range 50 {
		if a := r.deliver("push", fmt.Sprint("s-", i), pushBody("refs/heads/other", commitB, commitA)); a.status != 202 {
			t.Fatalf("a delivery: %v", a)
		}
	}
	r.noOpenReads("all of them together")
	r.mustFinish(run, w)
}

// noOpenReads waits until nobody reads the store. Streams look at it from time
// to time, and briefly.
func (r *rig) noOpenReads(what string) {
	r.t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.store.OpenReads() != 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Errorf("%s holds %d reads of the store open", what, r.store.OpenReads())
			return
		}
	}
}
