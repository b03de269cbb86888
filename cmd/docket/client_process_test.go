package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"docket/store/ci"
)

// answer is what docket said to a request; without a status, err tells why it
// said nothing.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) String() string { return fmt.Sprintf("%d %s %v", a.status, a.body, a.err) }

// hookReply is the body of an answer to a delivery.
type hookReply struct {
	Receipt   string
	Outcome   ci.Outcome
	Duplicate bool
	Reason    string
	Runs      []struct{ ID string }
}

// request sends one request on a connection of its own, so that none
// outlives a killed server.
func request(method, url string, header http.Header, body []byte) answer {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header, req.Close = header, true
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{err: err}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: b}
}

// delivery is one webhook request.
type delivery struct {
	integration string // default "github"
	listener    int
	forge       string // whose headers it comes with; "" for GitHub's
	event, id   string
	body        []byte
}

// deliver signs a payload and sends it. It may be called from any goroutine.
func (d *daemon) deliver(w delivery) answer {
	if w.integration == "" {
		w.integration = "github"
	}
	return request("POST", "http://"+d.addresses[w.listener]+"/hooks/"+w.integration, w.header(), w.body)
}

// mustDeliver delivers a push that must be answered with a status.
func (d *daemon) mustDeliver(status int, id string, body []byte) hookReply {
	d.t.Helper()
	return mustReply(d, d.deliver(delivery{event: ci.EventPush, id: id, body: body}), status)
}

// mustReply decodes an answer that must have a status.
func mustReply(d *daemon, a answer, status int) hookReply {
	d.t.Helper()
	return mustBe[hookReply](d, a, status)
}

// mustBe decodes an answer that must have a status.
func mustBe[T any](d *daemon, a answer, status int) (v T) {
	d.t.Helper()
	if a.status != status {
		d.t.Fatalf("answered %v, want %d", a, status)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		d.t.Fatalf("answered %v: %v", a, err)
	}
	return v
}

// call sends a request with the admin token to the first listener.
func (d *daemon) call(method, path, key string, body any) answer {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			d.t.Fatal(err)
		}
	}
	header := http.Header{"Authorization": {"Bearer " + adminToken}, "Content-Type": {"application/json"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return request(method, "http://"+d.addresses[0]+path, header, b)
}

// get reads a record or listing of the API.
func get[T any](d *daemon, path string) T {
	d.t.Helper()
	return mustBe[T](d, d.call("GET", apiPrefix+path, "", nil), http.StatusOK)
}

func (d *daemon) run(id string) ci.Run { d.t.Helper(); return get[ci.Run](d, "/runs/"+id) }

// all follows a listing to its end.
func all[T any](d *daemon, noun, path string) (list []T) {
	d.t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for cursor := ""; ; {
		page := get[map[string]json.RawMessage](d, path+sep+"limit=200&cursor="+cursor)
		var some []T
		if err := json.Unmarshal(page[noun], &some); err != nil {
			d.t.Fatalf("%s: %v", page[noun], err)
		}
		if err := json.Unmarshal(page["next_cursor"], &cursor); err != nil {
			d.t.Fatal(err)
		}
		if list = append(list, some...); cursor == "" {
			return list
		}
	}
}

func (d *daemon) receipts() []ci.Receipt {
	d.t.Helper()
	return all[ci.Receipt](d, "receipts", "/receipts")
}

func (d *daemon) runs() []ci.Run { d.t.Helper(); return all[ci.Run](d, "runs", "/runs") }

// entries returns the outbox, oldest first.
func (d *daemon) entries() []ci.OutboxEntry {
	d.t.Helper()
	list := all[ci.OutboxEntry](d, "entries", "/outbox")
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

func (d *daemon) decisions(run string) []ci.Decision {
	d.t.Helper()
	return all[ci.Decision](d, "decisions", "/decisions?run="+run)
}

// mustDecide checks that a decision about a run is on record exactly once,
// and returns it.
func (d *daemon) mustDecide(run, kind string) ci.Decision {
	d.t.Helper()
	var found []ci.Decision
	list := d.decisions(run)
	for _, x := range list {
		if x.Kind == kind && x.Run == run {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		d.t.Fatalf("%d decisions %q about %s, want one: %+v", len(found), kind, run, list)
	}
	return found[0]
}

// waitRun waits until a run is in a state, and returns it.
func (d *daemon) waitRun(id string, state ci.State) (run ci.Run) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("%s is %s", id, state), func() bool {
		run = d.run(id)
		if run.State.Final() && run.State != state {
			d.t.Fatalf("%s is %s (%s), want %s", id, run.State, run.Reason, state)
		}
		return run.State == state
	})
	return run
}

// waitSettled waits until nothing in the outbox waits any more, and returns it.
func (d *daemon) waitSettled() (list []ci.OutboxEntry) {
	d.t.Helper()
	eventually(d.t, "the outbox is settled", func() bool {
		list = d.entries()
		for _, e := range list {
			if e.State == ci.OutboxPending {
				return false
			}
		}
		return true
	})
	return list
}

// mustStart starts a run by hand.
func (d *daemon) mustStart(project, key string, body any) ci.Run {
	d.t.Helper()
	return mustBe[ci.Run](d, d.call("POST", apiPrefix+"/projects/"+project+"/runs", key, body), http.StatusCreated)
}

// mustAct does something to a run: cancel, rerun, approve.
func (d *daemon) mustAct(status int, run, action string) ci.Run {
	d.t.Helper()
	key := fmt.Sprintf("%s-%s-%d", run, action, time.Now().UnixNano())
	return mustBe[ci.Run](d, d.call("POST", apiPrefix+"/runs/"+run+"/"+action, key, obj{}), status)
}
