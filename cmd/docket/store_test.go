package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docket/store"
	"docket/store/ci"
)

// mustOpenStore opens the store of a stopped server.
func mustOpenStore(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that tokens are made, listed and revoked on a stopped server, before
// its first start too.
func TestTokensOfAStoppedServer(t *testing.T) {
	w := newWorld(t)
	w.configure("deep/data")
	if r := w.run("token", "list"); r.code != exitFailed || !strings.Contains(r.err, "there is no store "+w.path("deep/data/docket.db")+" yet; ") {
		t.Errorf("before the first start: got %+v", r)
	}
	value := w.must("token", "create", "--name", "bot", "--role", "operator")
	if !regexp.MustCompile(`^dkt_[A-Za-z0-9_-]{43}\n$`).MatchString(value) {
		t.Errorf("got %q", value)
	}
	if info, err := os.Stat(w.path("deep/data")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory: %v, %v", info, err)
	}
	s := mustOpenStore(t, w.path("deep/data/docket.db"))
	tok, err := s.Authenticate(strings.TrimSpace(value))
	mustClose(t, s)
	if err != nil || tok.Name != "bot" || tok.Role != ci.Operator {
		t.Errorf("got %+v, %v", tok, err)
	}

	if r := w.run("token", "create", "--name", "bot", "--role", "admin"); r.code != exitFailed || r.out != "" || !strings.HasPrefix(r.err, "docket: ") {
		t.Errorf("the same name again: got %+v", r)
	}
	mustContain(t, "the list", w.must("token", "list"), "TOKEN  ROLE      CREATED\nbot    operator  ")
	var list tokens
	if err := json.Unmarshal([]byte(w.must("token", "list", "-o", "json")), &list); err != nil || len(list.Tokens) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	mustContain(t, "the revocation", w.must("token", "revoke", "bot"), "the token bot is revoked\n")
	if r := w.run("token", "revoke", "bot"); r.code != exitFailed {
		t.Errorf("revoked twice: got %+v", r)
	}
	mustContain(t, "the empty list", w.must("token", "list", "-o", "json"), `"tokens": []`)
}

// Ensure that tokens go through a running server.
func TestTokensOfARunningServer(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	api.on("POST /api/v1/tokens", jsonAnswer(201, `{"token": "dkt_x", "name": "bot", "role": "viewer"}`))
	api.on("GET /api/v1/tokens", jsonAnswer(200, `{"tokens": [{"name": "bot", "role": "viewer", "created_at": "2026-01-02T03:04:05.000Z"}], "next_cursor": ""}`))
	api.on("DELETE /api/v1/tokens/a%2Fb", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if out := w.must("token", "create", "--name", "bot", "--role", "viewer"); out != "dkt_x\n" {
		t.Errorf("got %q", out)
	}
	mustContain(t, "the list", w.must("token", "list"), "bot    viewer  "+local(t, "2026-01-02T03:04:05Z")+"\n")
	w.must("token", "revoke", "a/b")
	if got := api.all(); got[0].body != `{"name":"bot","role":"viewer"}` || len(got) != 3 {
		t.Errorf("asked %+v", got)
	}
	if _, err := os.Stat(w.path("d/docket.db")); err == nil {
		t.Error("a store was made beside the running server")
	}
}

// Ensure that verify checks a stopped server's store, and is a failure with a
// list when something is broken.
func TestVerify(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	if r := w.run("verify"); r.code != exitFailed || !strings.Contains(r.err, "there is no store ") {
		t.Errorf("without a store: got %+v", r)
	}
	w.must("token", "create", "--name", "bot", "--role", "viewer")
	if out := w.must("verify"); out != "the store is sound\n" {
		t.Errorf("got %q", out)
	}
	mustContain(t, "the JSON", w.must("verify", "-o", "json"), `"broken": []`)

	api := w.serve("d")
	api.on("POST /api/v1/verify", jsonAnswer(200, `{"broken": ["run x-1: no record", "page 3"]}`))
	r := w.run("verify")
	if r.code != exitFailed || r.out != "run x-1: no record\npage 3\n" || !strings.HasPrefix(r.err, "docket: 2 things in the store are broken; ") {
		t.Errorf("got %+v", r)
	}
	if r := w.run("verify", "-o", "json"); r.code != exitFailed || r.err != "" || !strings.Contains(r.out, `"page 3"`) {
		t.Errorf("got %+v", r)
	}
	api.on("POST /api/v1/verify", jsonAnswer(200, `{"broken": []}`))
	w.must("verify")
}

// Ensure that a backup, of a stopped server or a running one, is a whole and
// sound store for its owner alone, and leaves nothing else behind.
func TestBackup(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	w.must("token", "create", "--name", "bot", "--role", "viewer")
	out := w.must("backup", "stopped.db")
	mustContain(t, "the output", out, "stopped.db: ", " bytes, verified\n")

	source := mustOpenStore(t, w.path("stopped.db"))
	t.Cleanup(func() { mustClose(t, source) })
	api := w.serve("d")
	api.on("POST /api/v1/backup", func(rw http.ResponseWriter, r *http.Request) {
		if _, err := source.Backup(r.Context(), rw); err != nil {
			t.Error(err)
		}
	})
	w.must("backup", "running.db")
	s := mustOpenStore(t, w.path("running.db"))
	list, err := s.Tokens()
	mustClose(t, s)
	if err != nil || len(list) != 1 || list[0].Name != "bot" {
		t.Errorf("got %+v, %v", list, err)
	}
	if info, err := os.Stat(w.path("running.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	w.mustNotLeave(".docket-backup-")
}

// Ensure that a backup overwrites nothing and keeps no copy that is not whole.
func TestBackupRefusals(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	w.write("there.db", "mine")
	if r := w.run("backup", "there.db"); r.code != exitFailed || !strings.Contains(r.err, "there.db exists and is not overwritten; ") || mustRead(t, w.path("there.db")) != "mine" {
		t.Errorf("an existing file: got %+v", r)
	}
	if n := len(api.all()); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	if r := w.run("backup", "no/such/dir.db"); r.code != exitFailed || !strings.Contains(r.err, "name a file in a directory that exists") {
		t.Errorf("no directory: got %+v", r)
	}

	api.on("POST /api/v1/backup", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if r := w.run("backup", "half.db"); r.code != exitFailed || !strings.Contains(r.err, "the copy broke off after 10 bytes, so nothing was kept") {
		t.Errorf("a broken connection: got %+v", r)
	}
	api.on("POST /api/v1/backup", jsonAnswer(200, strings.Repeat("not a store ", 4096)))
	if r := w.run("backup", "other.db"); r.code != exitFailed || !strings.Contains(r.err, "the copy cannot be opened, so it was not kept") {
		t.Errorf("something else: got %+v", r)
	}
	api.on("POST /api/v1/backup", problemJSON(403, "this needs the role admin"))
	if r := w.run("backup", "refused.db"); r.code != exitFailed || r.err != "docket: this needs the role admin\n" {
		t.Errorf("a refusal: got %+v", r)
	}
	w.mustNotLeave(".docket-backup-")
	for _, name := range []string{"half.db", "other.db", "refused.db"} {
		if _, err := os.Stat(w.path(name)); err == nil {
			t.Errorf("%s was kept", name)
		}
	}
}

// mustNotLeave checks that no name in the world's directory begins so.
func (w *world) mustNotLeave(prefix string) {
	w.t.Helper()
	left, err := filepath.Glob(w.path(prefix + "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(left) > 0 {
		slices.Sort(left)
		w.t.Errorf("left behind: %q", left)
	}
}
