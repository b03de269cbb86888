package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/store/ci"
)

const runJSON = `{"id": "hello-42", "project": "hello", "number": 42, "state": "failed", "attempt": 1, "reason": "timed out",
 "cause": {"kind": "delivery", "receipt": "github/-/72d3", "event": "push", "actor": "octocat"},
 "source": {"repository": "acme/hello", "ref": "refs/heads/main", "branch": "main", "commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e"},
 "spec": "sha256:00", "inputs": {"target": "staging"}, "future": {"unknown": true},
 "steps": [{"name": "test", "state": "failed", "exit_code": 2, "started_at": "2026-01-02T03:04:05.000Z", "finished_at": null}],
 "created_at": "2026-01-02T03:04:05.678Z", "started_at": "2026-01-02T03:04:05.000Z", "finished_at": null, "url": "/runs/hello-42"}`

// local writes a UTC time as people here see it.
func local(t *testing.T, s string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

func TestRunsList(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/runs", jsonAnswer(200, `{"runs": [`+runJSON+`], "next_cursor": "c2"}`))
	r := w.run("runs", "list", "--project", "hello", "--state", "failed", "--branch", "a/b#c", "--limit", "7", "--cursor", "c1")
	at := local(t, "2026-01-02T03:04:05Z")
	want := "RUN       STATE   CAUSE  REF   COMMIT   CREATED              FINISHED\n" +
		"hello-42  failed  push   main  6dcb09b  " + at + "  -\n"
	if r.code != 0 || r.out != want || r.err != "there are more: add --cursor c2\n" {
		t.Errorf("got %+v, want %q", r, want)
	}
	if got := api.lines(); !slices.Equal(got, []string{"GET /api/v1/runs?branch=a%2Fb%23c&cursor=c1&limit=7&project=hello&state=failed"}) {
		t.Errorf("asked %q", got)
	}
	out := w.must("runs", "list", "-o", "json")
	if !json.Valid([]byte(out)) || !strings.Contains(out, `"unknown": true`) || !strings.Contains(out, `"next_cursor": "c2"`) {
		t.Errorf("JSON is not the server's own: %s", out)
	}
}

func TestRunsShow(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/runs/hello-42", jsonAnswer(200, runJSON))
	api.on("GET /api/v1/decisions", jsonAnswer(200, `{"decisions": [{"id": "1", "at": "2026-01-02T03:04:05.000Z", "kind": "timed_out",
		"run": "hello-42", "by": {"kind": "scheduler", "name": ""}, "reason": "ran over 30m"}], "next_cursor": ""}`))
	out := w.must("runs", "show", "hello-42")
	mustContain(t, "the run", out, "run:           hello-42\n", "reason:        timed out\n", "cause:         push by octocat\n",
		"input target:  staging\n", "test  failed  2 ", "timed_out  scheduler  ran over 30m\n")
	if got := api.lines(); !slices.Equal(got, []string{"GET /api/v1/runs/hello-42", "GET /api/v1/decisions?run=hello-42"}) {
		t.Errorf("asked %q", got)
	}
	var run ci.Run
	if err := json.Unmarshal([]byte(w.must("runs", "show", "hello-42", "-o", "json")), &run); err != nil || run.ID != "hello-42" {
		t.Errorf("got %+v, %v", run, err)
	}
}

// Ensure that start prints the id alone and sends what was asked for.
func TestRunsStart(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("POST /api/v1/projects/hello/runs", jsonAnswer(201, runJSON))
	if out := w.must("runs", "start", "hello"); out != "hello-42\n" {
		t.Errorf("got %q", out)
	}
	w.must("runs", "start", "hello", "--branch", "b", "--commit", "c", "--input", "x=1=2", "--input", "y=", "--reason", "why", "--key", "k")
	w.must("runs", "start", "hello", "--tag", "v1")
	got := api.all()
	for i, want := range []string{`{}`, `{"branch":"b","commit":"c","inputs":{"x":"1=2","y":""},"reason":"why"}`, `{"tag":"v1"}`} {
		if got[i].body != want {
			t.Errorf("sent %s, want %s", got[i].body, want)
		}
	}
	if got[1].key != "k" || len(got[0].key) != 32 || got[0].key == got[2].key {
		t.Errorf("keys %q %q %q", got[0].key, got[1].key, got[2].key)
	}
}

// Ensure that --wait ends with the run and tells how it ended.
func TestRunsStartWait(t *testing.T) {
	for state, code := range map[string]int{"succeeded": exitDone, "failed": exitFailed} {
		w := newWorld(t)
		api := w.serve("d")
		api.on("POST /api/v1/projects/hello/runs", jsonAnswer(201, strings.Replace(runJSON, `"failed"`, `"queued"`, 1)))
		api.on("GET /api/v1/runs/hello-42", jsonAnswer(200, strings.Replace(runJSON, `"failed"`, `"`+state+`"`, 1)))
		r := w.run("runs", "start", "hello", "--wait")
		if r.code != code || r.out != "hello-42\n" {
			t.Errorf("%s: got %+v", state, r)
		}
		if code != 0 {
			mustContain(t, "stderr", r.err, "docket: hello-42 failed - timed out; `docket runs logs hello-42` shows why\n")
		}
	}
}

func TestRunActions(t *testing.T) {
	for _, c := range []struct{ verb, state, want string }{
		{"cancel", "cancelled", "hello-42 cancelled\n"},
		{"cancel", "running", "hello-42 is being stopped\n"},
		{"rerun", "queued", "hello-42\n"},
		{"approve", "queued", "hello-42 queued\n"},
	} {
		w := newWorld(t)
		api := w.serve("d")
		api.on("POST /api/v1/runs/hello-41/"+c.verb, jsonAnswer(200, strings.Replace(runJSON, `"failed"`, `"`+c.state+`"`, 1)))
		if out := w.must("runs", c.verb, "hello-41", "--reason", "because", "--key", "k"); out != c.want {
			t.Errorf("%s: got %q, want %q", c.verb, out, c.want)
		}
		if got := api.all()[0]; got.key != "k" || got.body != `{"reason":"because"}` {
			t.Errorf("%s: sent %+v", c.verb, got)
		}
		w.must("runs", c.verb, "hello-41")
		if got := api.all()[1]; len(got.key) != 32 || got.body != "{}" {
			t.Errorf("%s: sent %+v", c.verb, got)
		}
		api.on("POST /api/v1/runs/hello-41/"+c.verb, problemJSON(409, "the run has ended"))
		if r := w.run("runs", c.verb, "hello-41"); r.code != exitFailed || r.err != "docket: the run has ended\n" {
			t.Errorf("%s: got %+v", c.verb, r)
		}
	}
}

// Ensure that a log is printed byte for byte.
func TestRunsLogs(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/runs/hello-42/logs", jsonAnswer(200, "\x82\x1f\x8b\x00é\r\nno newline"))
	if out := w.must("runs", "logs", "hello-42"); out != "\x82\x1f\x8b\x00é\r\nno newline" {
		t.Errorf("got %q", out)
	}
	w.must("runs", "logs", "hello-42", "--step", "a b")
	if got := api.all(); got[0].line != "GET /api/v1/runs/hello-42/logs" || got[0].accept != "text/plain" ||
		got[1].line != "GET /api/v1/runs/hello-42/logs?step=a+b" {
		t.Errorf("asked %+v", got)
	}
	mustContain(t, "the JSON", w.must("runs", "logs", "hello-42", "-o", "json"), `"run": "hello-42"`, `no newline"`)
}

// chunk is one event of a followed log.
func chunk(id int, text string) string {
	b, _ := json.Marshal(map[string]any{"step": "test", "offset": id, "time": "2026-01-02T03:04:05.000Z", "text": text})
	return fmt.Sprintf("id: %d\ndata: %s\n\n", id, b)
}

// Ensure that a followed log goes on behind the last whole event when the
// connection breaks, passes over comments, and ends with the run.
func TestRunsLogsFollow(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	streams := []string{
		": hello\n\n" + "id: 0\ndata: {\"step\": \"@checkout\", \"text\": \"fetching\\n\"}\n\n" + chunk(1, "one\n") + chunk(2, "two <é>\n") + "id: 3\ndata: {\"text\": \"half",
		"", "",
		chunk(3, "three\n") + "event: end\ndata: {}\n\n",
	}
	api.on("GET /api/v1/runs/hello-42/logs", func(w http.ResponseWriter, r *http.Request) {
		n := len(api.all())
		switch n {
		case 2: // the server is restarting
			problemJSON(503, "shutting down")(w, r)
			return
		case 3: // others have taken its place meanwhile
			problemJSON(429, "as many streams as there may be")(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, streams[n-1])
	})
	if r := w.run("runs", "logs", "-f", "hello-42", "--step", "test"); r.code != 0 || r.out != "one\ntwo <é>\nthree\n" || r.err != "fetching\n" {
		t.Errorf("got %+v", r)
	}
	var lasts []string
	for _, a := range api.all() {
		lasts = append(lasts, a.last)
		if a.line != "GET /api/v1/runs/hello-42/logs?follow=1&step=test" || a.accept != "text/event-stream" {
			t.Errorf("asked %+v", a)
		}
	}
	if !slices.Equal(lasts, []string{"", "2", "2", "2"}) {
		t.Errorf("went on behind %q", lasts)
	}
}

// Ensure that following ends at once with a refusal, and when interrupted.
func TestRunsLogsFollowEnds(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("GET /api/v1/runs/x-1/logs", problemJSON(404, "no run x-1"))
	if r := w.run("runs", "logs", "-f", "x-1"); r.code != exitFailed || r.err != "docket: no run x-1\n" {
		t.Errorf("got %+v", r)
	}

	ctx, cancel := context.WithCancel(t.Context())
	api.on("GET /api/v1/runs/hello-42/logs", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, chunk(1, "one\n"))
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	if r := w.runCtx(ctx, "runs", "logs", "-f", "hello-42"); r.code != exitFailed || r.err != "docket: interrupted\n" {
		t.Errorf("got %+v", r)
	}
}

// Ensure that events are read as the standard has them.
func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	er := newEventReader(strings.NewReader(":c\n\nid:1\r\ndata: a\r\ndata:  b\r\n\r\nevent: end\nretry: 5\ndata\n\ndata: " + long + "\n\nid: 9\ndata: half"))
	for _, want := range []event{{"1", "message", "a\n b"}, {"", "end", ""}, {"", "message", long}} {
		if got, err := er.next(); err != nil || got != want {
			t.Errorf("got %.50v, %v", got, err)
		}
	}
	if got, err := er.next(); err == nil {
		t.Errorf("half an event came through: %+v", got)
	}
}
