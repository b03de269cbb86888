package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that streams of a docket with few open files take a part of its
// connections, and that deliveries get through beside them.
func TestStreamsLeaveConnectionsToDeliveries(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, obj{"public": true, "on": obj{"push": obj{"branches": []string{"none"}}}})
		d.limitFiles(otherFiles + adminConnections + 200)
	})
	d.start()
	if _, n := d.takeSeats(); n != 200/4/2 {
		t.Errorf("one address has %d streams of 200 connections", n)
	}
	body := repo.push("refs/heads/main", "", repo.commit("refs/heads/main"))
	for i := range 10 {
		d.mustDeliver(http.StatusAccepted, fmt.Sprint("d-", i), body)
	}
	if list := d.receipts(); len(list) != 10 || list[0].Outcome != ci.Ignored {
		t.Errorf("%d receipts", len(list))
	}
}

// takeSeats opens all the streams that one address may have, and returns how
// many these are.
func (d *daemon) takeSeats() (leave func(), n int) {
	t := d.t
	t.Helper()
	var open []io.Closer
	leave = func() {
		for _, s := range open {
			s.Close()
		}
		open = nil
	}
	t.Cleanup(leave)
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.addresses[0]+"/projects/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusTooManyRequests || len(open) == 0 || !strings.Contains(string(text), "streams are open") {
				t.Fatalf("after %d streams: %d %s", len(open), resp.StatusCode, text)
			}
			return leave, len(open)
		}
		open = append(open, resp.Body)
	}
}
