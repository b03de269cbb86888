package main

import (
	"os"
	"strings"
	"testing"
)

// Ensure that a backup is only ever restored into an empty data directory of a
// stopped server, and that the refusal says what is in the way.
func TestRestoreRefusals(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	w.must("token", "create", "--name", "bot", "--role", "viewer")
	w.must("backup", "backup.db")
	r := w.run("restore", "backup.db")
	if r.code != exitFailed || !strings.Contains(r.err, "the data directory "+w.path("d")+" is not empty (docket.db)") {
		t.Errorf("over a store: %+v", r)
	}
	if err := os.Remove(w.path("d/docket.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.path("d/logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := w.run("restore", "backup.db"); r.code != exitFailed || !strings.Contains(r.err, "is not empty (logs)") {
		t.Errorf("beside logs: %+v", r)
	}
	if err := os.RemoveAll(w.path("d")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("restore", "none.db"); r.code != exitFailed || !strings.Contains(r.err, "there is no backup none.db") {
		t.Errorf("no backup: %+v", r)
	}
	if r := w.run("restore"); r.code != exitUsage {
		t.Errorf("no argument: %+v", r)
	}
	out := w.must("restore", "backup.db")
	mustContain(t, "the report", out, w.path("d/docket.db")+": ", " bytes, verified; ", "docket runs resume")
	w.must("verify")
	mustContain(t, "the tokens", w.must("token", "list"), "bot")

	w.serve("d")
	for _, verb := range [][]string{{"restore", "backup.db"}, {"compact"}} {
		if r := w.run(verb...); r.code != exitFailed || !strings.Contains(r.err, "a server runs on "+w.path("d")+"; stop it before `docket "+verb[0]+"`") {
			t.Errorf("beside a server: %+v", r)
		}
	}
}

func TestCompact(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	if r := w.run("compact"); r.code != exitFailed || !strings.Contains(r.err, "there is no store at ") {
		t.Errorf("without a store: %+v", r)
	}
	w.must("token", "create", "--name", "bot", "--role", "viewer")
	mustContain(t, "the report", w.must("compact"), " bytes before, ", " bytes after, verified\n")
	mustContain(t, "the second", w.must("compact"), "a compacted one would not be smaller\n")
	mustContain(t, "the tokens", w.must("token", "list"), "bot")
}
