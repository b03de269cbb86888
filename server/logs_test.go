package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

// event is one event of a stream; comments are left out.
type event struct {
	id, kind, data string
	comment        string
}

// eventReader reads a stream as a browser does.
type eventReader struct {
	t      *testing.T
	body   io.ReadCloser
	lines  *bufio.Scanner
	header http.Header
}

func (r *rig) follow(path, lastEventID string) *eventReader {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/api/v1"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token(ci.Viewer))
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cancel(); res.Body.Close() })
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		r.t.Fatalf("follow: %d %v", res.StatusCode, res.Header)
	}
	return &eventReader{t: r.t, body: res.Body, lines: bufio.NewScanner(res.Body), header: res.Header}
}

// next returns the next event or comment; ok is false at the stream's end.
func (e *eventReader) next() (ev event, ok bool) {
	e.t.Helper()
	for e.lines.Scan() {
		line := e.lines.Text()
		if line == "" {
			return ev, true
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			ev.comment = value
		case "id":
			ev.id = value
		case "event":
			ev.kind = value
		case "data":
			ev.data = value
		}
	}
	return ev, false
}

type logData struct {
	Step   string
	Offset int64
	Time   string
	Text   string
	State  string
}

// mustNext returns the next event's data, comments passed over.
func (e *eventReader) mustNext() (event, logData) {
	e.t.Helper()
	for {
		ev, ok := e.next()
		if !ok {
			e.t.Fatalf("the stream ended: %v", e.lines.Err())
		}
		if ev.comment != "" {
			continue
		}
		var d logData
		if err := json.Unmarshal([]byte(ev.data), &d); err != nil {
			e.t.Fatalf("data %q: %v", ev.data, err)
		}
		return ev, d
	}
}

// rest returns the texts up to the end event, joined, and the state there.
func (e *eventReader) rest() (text, state string) {
	e.t.Helper()
	for {
		ev, d := e.mustNext()
		if ev.kind == "end" {
			if more, ok := e.next(); ok {
				e.t.Errorf("after the end came %+v", more)
			}
			return text, d.State
		}
		text += d.Text
	}
}

// mustClaim makes a queued run and claims it.
func (r *rig) mustClaim() ci.Run {
	r.t.Helper()
	if a := r.deliver("push", "d-log", mainPush()); a.status != 202 {
		r.t.Fatal(a)
	}
	return r.mustClaimNext()
}

func (r *rig) mustCreateLog(run ci.Run) *store.LogWriter {
	r.t.Helper()
	w, err := r.store.Logs().Create(run.ID, run.Attempt)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { w.Close() })
	return w
}

func (r *rig) mustAppend(w *store.LogWriter, step int, text string) {
	r.t.Helper()
	if err := w.Append(step, time.Unix(1700000000, 0), []byte(text), false); err != nil {
		r.t.Fatal(err)
	}
}

func TestLogText(t *testing.T) {
	r := newRig(t)
	run := r.mustClaim()
	logs := "/runs/" + run.ID + "/logs"
	if a := r.call(ci.Viewer, "GET", logs, ""); a.status != 200 || len(a.body) != 0 {
		t.Errorf("before anything is written: %v", a)
	}
	w := r.mustCreateLog(run)
	r.mustAppend(w, -1, "cloning\n")
	r.mustAppend(w, 0, "a\x82\x1f\x8b\x00\r\n")
	r.mustAppend(w, 1, "<script>")
	if err := w.Append(1, time.Now(), []byte("\n[docket] left behind\n"), true); err != nil {
		t.Fatal(err)
	}
	r.mustAppend(w, 1, "é")
	for path, want := range map[string]string{
		logs: "a\x82\x1f\x8b\x00\r\n<script>\n[docket] left behind\né", logs + "?step=test": "a\x82\x1f\x8b\x00\r\n",
		logs + "?step=deploy": "<script>\n[docket] left behind\né", logs + "?step=@checkout": "cloning\n",
	} {
		a := r.call(ci.Viewer, "GET", path, "")
		if a.status != 200 || string(a.body) != want || a.header.Get("Content-Type") != "text/plain; charset=UTF-8" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q %v", path, a.body, a.header)
		}
	}
	wantProblem(t, r.call(ci.Viewer, "GET", logs+"?step=none", ""), 404)
	wantProblem(t, r.call(ci.Viewer, "GET", logs+"?step=", ""), 404)
	wantProblem(t, r.call(ci.Viewer, "GET", "/runs/api-99/logs", ""), 404)
	wantProblem(t, r.call(ci.Viewer, "GET", "/runs/api-99/logs?follow=1", ""), 404)
}

// Ensure that a log is followed live from before the run starts to its end.
func TestFollow(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(time.Minute, 20*time.Millisecond)
	r.deliver("push", "d-1", mainPush())
	f := r.follow("/runs/api-1/logs?follow=1", "")
	if f.header.Get("X-Accel-Buffering") != "no" || f.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", f.header)
	}
	run := r.mustClaimNext()
	w := r.mustCreateLog(run)
	r.mustAppend(w, -1, "cloning\n")
	if ev, d := f.mustNext(); d.Step != "@checkout" || d.Text != "cloning\n" || d.Offset != 0 || d.Time != "2023-11-14T22:13:20.000Z" || ev.kind != "" {
		t.Errorf("%+v %+v", ev, d)
	}
	r.mustAppend(w, 0, "one \xc3")
	if _, d := f.mustNext(); d.Step != "test" || d.Text != "one " || d.Offset != 8 {
		t.Errorf("%+v", d)
	}
	r.mustAppend(w, 0, "\xa9 two")
	if _, d := f.mustNext(); d.Text != "é two" || d.Offset != 12 {
		t.Errorf("%+v", d)
	}
	r.mustAppend(w, 0, "\xf0\x9f")
	r.mustAppend(w, 1, "next step")
	if _, d := f.mustNext(); d.Step != "test" || d.Text != "\uFFFD" {
		t.Errorf("a character that is never completed: %+v", d)
	}
	if _, d := f.mustNext(); d.Step != "deploy" || d.Text != "next step" || d.Offset != 20 {
		t.Errorf("%+v", d)
	}
	r.mustAppend(w, 1, "cut\xe2")
	r.mustFinish(run, w)
	if text, state := f.rest(); text != "cut\uFFFD" || state != "succeeded" {
		t.Errorf("the end: %q %q", text, state)
	}
}

// Ensure that who comes back gets exactly what he has not had, wherever the
// stream broke off.
func TestFollowResumes(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(time.Minute, 20*time.Millisecond)
	run := r.mustClaim()
	w := r.mustCreateLog(run)
	for _, text := range []string{"one\n", "tw\xc3", "\xa9\n", "thr\xf0\x9f", "\x98\x8a", "four\n"} {
		r.mustAppend(w, 0, text)
	}
	r.mustAppend(w, 1, "five\n")
	r.mustFinish(run, w)
	const whole = "one\ntwé\nthr😊four\nfive\n"

	ids, texts := []string{""}, []string{""}
	f := r.follow("/runs/"+run.ID+"/logs?follow=1", "")
	for {
		ev, d := f.mustNext()
		if ev.kind == "end" {
			break
		}
		ids, texts = append(ids, ev.id), append(texts, texts[len(texts)-1]+d.Text)
	}
	if got := texts[len(texts)-1]; got != whole {
		t.Fatalf("the whole log is %q", got)
	}
	for i, id := range ids {
		rest, state := r.follow("/runs/"+run.ID+"/logs?follow=1", id).rest()
		if texts[i]+rest != whole || state != "succeeded" {
			t.Errorf("after event %d (id %s): %q then %q", i, id, texts[i], rest)
		}
	}
	for _, id := range []string{"nonsense", "-1:-1", "99:0", "1:x"} {
		if text, _ := r.follow("/runs/"+run.ID+"/logs?follow=1", id).rest(); text != whole {
			t.Errorf("an id %q of nobody's: %q", id, text)
		}
	}
	if text, _ := r.follow("/runs/"+run.ID+"/logs?follow=1&step=deploy", "").rest(); text != "five\n" {
		t.Errorf("one step: %q", text)
	}
}

// Ensure that a run that is queued again is followed into its next attempt.
func TestFollowIntoTheNextAttempt(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(time.Minute, 20*time.Millisecond)
	run := r.mustClaim()
	w := r.mustCreateLog(run)
	r.mustAppend(w, 0, "first\n\xc3")
	f := r.follow("/runs/"+run.ID+"/logs?follow=1", "")
	first, d := f.mustNext()
	if d.Text != "first\n" {
		t.Fatalf("%+v", d)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Lost(t.Context(), run.ID, run.Attempt, true, "lost"); err != nil {
		t.Fatal(err)
	}
	run = r.mustClaimNext()
	w = r.mustCreateLog(run)
	r.mustAppend(w, 0, "second and longer\n")
	r.mustFinish(run, w)
	const want = "\uFFFDsecond and longer\n"
	if text, state := f.rest(); text != want || state != "succeeded" {
		t.Errorf("%q %q", text, state)
	}
	if text, _ := r.follow("/runs/"+run.ID+"/logs?follow=1", first.id).rest(); text != want {
		t.Errorf("resumed: %q", text)
	}
	if text, _ := r.follow("/runs/"+run.ID+"/logs?follow=1", "").rest(); text != "second and longer\n" {
		t.Errorf("from the start: %q", text)
	}
}

// Ensure that a silent stream says that it lives, and that a shutdown ends it.
func TestFollowHeartbeatAndShutdown(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(10*time.Millisecond, time.Minute)
	run := r.mustClaim()
	r.mustCreateLog(run)
	f := r.follow("/runs/"+run.ID+"/logs?follow=1", "")
	for range 2 {
		if ev, ok := f.next(); !ok || ev.comment == "" {
			t.Fatalf("no sign of life: %+v", ev)
		}
	}

	srv := server.NewHTTPServer(r.server.Handler())
	url, done := mustServe(t, srv)
	req := mustRequest(t, "GET", url+"/api/v1/runs/"+run.ID+"/logs?follow=1", "")
	req.Header.Set("Authorization", "Bearer "+adminToken)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Errorf("a follower holds up the shutdown: %v", err)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
	<-done
}

// Ensure that the time-outs for requests and short answers do not end a stream.
func TestFollowOutlivesTheTimeouts(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(20*time.Millisecond, time.Minute)
	run := r.mustClaim()
	w := r.mustCreateLog(run)
	srv := server.NewHTTPServer(r.server.Handler())
	srv.ReadTimeout, srv.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	url, done := mustServe(t, srv)
	req := mustRequest(t, "GET", url+"/api/v1/runs/"+run.ID+"/logs?follow=1", "")
	req.Header.Set("Authorization", "Bearer "+adminToken)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	f := &eventReader{t: t, body: res.Body, lines: bufio.NewScanner(res.Body)}
	for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
		if _, ok := f.next(); !ok {
			t.Fatalf("the stream was cut after %v", time.Since(start))
		}
	}
	r.mustAppend(w, 0, "alive")
	r.mustFinish(run, w)
	if text, state := f.rest(); text != "alive" || state != "succeeded" {
		t.Errorf("%q %q", text, state)
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-done
}

// Ensure that a run cancelled before it began ends its followers.
func TestFollowACancelledRun(t *testing.T) {
	r := newRig(t)
	r.server.SetStreamTimes(time.Minute, time.Minute) // the wakeup must do
	r.deliver("push", "d-1", mainPush())
	f := r.follow("/runs/api-1/logs?follow=1", "")
	if a := r.call(ci.Operator, "POST", "/runs/api-1/cancel", "", "Idempotency-Key", "k"); a.status != 200 {
		t.Fatal(a)
	}
	if text, state := f.rest(); text != "" || state != "cancelled" {
		t.Errorf("%q %q", text, state)
	}
}

func TestCutCharacter(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "a": 0, "é": 0, "\xc3": 1, "a\xe2\x82": 2, "\xf0\x9f\x98": 3, "😊": 0, "\x80\x80\x80\x80": 0, "\xff": 0, "\xc3\xc3": 1, "a\x80": 0,
	} {
		if got := server.CutCharacter([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}
