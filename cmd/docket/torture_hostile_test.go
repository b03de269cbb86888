//go:build torture

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/store/ci"
)

// Ensure that with 10,000 idle connections and a flood of unsigned deliveries
// signed ones are taken within a second, in bounded memory: whatever the flood
// looks like, and also where it comes from the address that they come from, as
// it does behind a proxy that docket does not know of.
func TestTortureFlood(t *testing.T) {
	for name, s := range map[string]siege{
		"large bodies with wrong signatures":                    {senders: 8, size: 25 << 20},
		"large bodies with wrong signatures from their address": {senders: 8, size: 25 << 20, near: true},
		"large bodies without signatures from their address":    {senders: 8, size: 25 << 20, near: true, bare: true},
		"small bodies with wrong signatures from their address": {senders: 64, size: 8 << 10, near: true},
		"small bodies without signatures from their address":    {senders: 64, size: 8 << 10, near: true, bare: true},
		"middling bodies with wrong signatures":                 {senders: 128, size: 256 << 10, near: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.idle, s.signed, s.limit, s.most = 10_000, 500, time.Second, 768
			s.withstand(t)
		})
	}
}

// Ensure that the same is so of a listener that is full.
func TestTortureFullListener(t *testing.T) {
	if files := openFiles(); files < 19_000 {
		t.Skipf("this process may open %d files; raise `ulimit -n` to 19000 to fill a listener", files)
	}
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"on": obj{"push": obj{"branches": []string{"none"}}}})
	})
	d.start()
	took := throng(t, d, repo, mostConnections+1000, mostConnections, 500, 0)
	slices.Sort(took)
	t.Logf("%d signed deliveries: median %s, p99 %s, slowest %s; %d MiB", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], d.memory())
	if slowest := took[len(took)-1]; slowest > time.Second {
		t.Errorf("the slowest took %s", slowest)
	}
}

// Ensure that a body of a byte a second is cut off when README says.
func TestTortureSlowBody(t *testing.T) {
	d := newDaemon(t, nil, func(*daemon) {})
	d.start()
	c := newCrowd(t)
	began := time.Now()
	one := c.join(d.addresses[0], "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := one.Write([]byte{' '}); err != nil {
					return
				}
			case <-end:
				return
			}
		}
	})
	_ = one.SetReadDeadline(began.Add(90 * time.Second))
	said, _ := io.ReadAll(one)
	close(end)
	wg.Wait()
	if took := time.Since(began); took < 55*time.Second || took > 70*time.Second || !strings.HasPrefix(string(said), "HTTP/1.1 400") {
		t.Errorf("cut off after %s with %q", took, said)
	}
}

// slowly reads an answer with 1 KB a second until stop is called.
func slowly(t *testing.T, address, request string) (stop func()) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReaderSize(c, 1024).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("%q: %q %v", request, line, err)
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := io.CopyN(io.Discard, c, 1024); err != nil {
					return
				}
			case <-end:
				return
			}
		}
	})
	return func() { close(end); c.Close(); wg.Wait() }
}

// Ensure that slow readers of a log, of a page's stream and of a backup do not
// slow intake down: its p99 stays within twice of what it is without them, and
// within a bound that says that something is measured.
func TestTortureSlowReaders(t *testing.T) {
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"public": true, "on": obj{"push": obj{"branches": []string{"none"}}}},
			step("talk", `i=0; while [ $i -lt 60000 ]; do echo "a line of the log, number $i, that is long enough to fill it"; i=$((i+1)); done; : >"$ROOM/talked"
until [ -e "$ROOM/open.all" ]; do sleep 0.1; done`))
	})
	d.start()
	commit := repo.commit("refs/heads/main")
	d.mustStart("api", "K", obj{"commit": commit})
	d.waitRoom("talked")
	body, n := repo.push("refs/heads/main", "", commit), 0
	block := func() time.Duration {
		t.Helper()
		took := make([]time.Duration, 300)
		for i := range took {
			n++
			w := delivery{event: ci.EventPush, id: fmt.Sprint("d-", n), body: body}
			began := time.Now()
			if a := d.deliver(w); a.status != http.StatusAccepted {
				t.Fatalf("delivery %d: %v", n, a)
			}
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	block() // warm
	var idle, slow []time.Duration
	for range 3 {
		idle = append(idle, block())
		var stops []func()
		for i := range 10 {
			for _, line := range []string{
				"POST /api/v1/backup", "GET /api/v1/runs/api-1/logs?follow=1", "GET /runs/api-1\nAccept: text/event-stream",
			}[min(i, 1):] { // one backup
				line, header, _ := strings.Cut(line, "\n")
				if header != "" {
					header += "\r\n"
				}
				stops = append(stops, slowly(t, d.addresses[0],
					line+" HTTP/1.1\r\nHost: docket.test\r\nAuthorization: Bearer "+adminToken+"\r\n"+header+"\r\n"))
			}
		}
		slow = append(slow, block())
		for _, stop := range stops {
			stop()
		}
	}
	t.Logf("p99 of intake: idle %v, with 21 slow readers %v", idle, slow)
	if best, worst := slices.Min(idle), slices.Min(slow); worst > 2*best {
		t.Errorf("p99 with slow readers is %s, without %s", worst, best)
	}
	d.open("all")
	d.waitRun("api-1", ci.Succeeded)
}
