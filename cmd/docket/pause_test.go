package main

import (
	"testing"

	"docket/store/ci"
)

// Ensure that runs and notifications are paused and resumed in a running
// server, and in the store of a stopped one.
func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	w.must("token", "create", "--name", "bot", "--role", "viewer")
	mustContain(t, "the pause", w.must("runs", "pause", "--reason", "new disk"), "runs are held back until `docket runs resume`\n")
	w.must("outbox", "pause")
	s := mustOpenStore(t, w.path("d/docket.db"))
	p, err := s.Pauses()
	mustClose(t, s)
	if err != nil || p.Runs == nil || p.Runs.Reason != "new disk" || p.Outbox == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	mustContain(t, "the end", w.must("outbox", "resume"), "notifications are sent again\n")
	w.must("runs", "resume")
	s = mustOpenStore(t, w.path("d/docket.db"))
	p, err = s.Pauses()
	mustClose(t, s)
	if err != nil || p != (ci.Pauses{}) {
		t.Fatalf("%+v, %v", p, err)
	}

	api := w.serve("d")
	for _, path := range []string{"runs/pause", "runs/resume", "outbox/pause", "outbox/resume"} {
		api.on("POST /api/v1/"+path, jsonAnswer(200, `{"runs": null, "outbox": null}`))
	}
	w.must("runs", "pause", "--reason", "so")
	w.must("runs", "resume")
	w.must("outbox", "pause")
	w.must("outbox", "resume")
	if got := api.all(); len(got) != 4 || got[0].body != `{"reason":"so"}` || got[3].line != "POST /api/v1/outbox/resume" {
		t.Errorf("asked %+v", got)
	}
}
