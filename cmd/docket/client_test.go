package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asked is one request that a fake server got.
type asked struct {
	line   string // method and escaped path with its query
	key    string
	body   string
	accept string
	last   string
	auth   string
}

// fakeAPI answers on an admin socket and remembers what it was asked.
type fakeAPI struct {
	mu     sync.Mutex
	asked  []asked
	answer map[string]http.HandlerFunc // by method and escaped path
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	path := r.URL.EscapedPath()
	line := r.Method + " " + path
	if r.URL.RawQuery != "" {
		line += "?" + r.URL.RawQuery
	}
	f.mu.Lock()
	f.asked = append(f.asked, asked{
		line, r.Header.Get("Idempotency-Key"), string(body),
		r.Header.Get("Accept"), r.Header.Get("Last-Event-ID"), r.Header.Get("Authorization"),
	})
	h := f.answer[r.Method+" "+path]
	f.mu.Unlock()
	if h == nil {
		problemJSON(http.StatusNotFound, "there is nothing at "+path)(w, r)
		return
	}
	h(w, r)
}

// on sets an answer.
func (f *fakeAPI) on(line string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[line] = h
}

// all returns what was asked so far.
func (f *fakeAPI) all() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// lines returns the method and path of what was asked so far.
func (f *fakeAPI) lines() (l []string) {
	for _, a := range f.all() {
		l = append(l, a.line)
	}
	return l
}

func (f *fakeAPI) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = nil
}

func jsonAnswer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func problemJSON(status int, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
	}
}

// mustListenUnix listens on a socket, however long its path is.
func mustListenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve starts a fake server on the admin socket of the world's configuration,
// whose data directory is dir.
func (w *world) serve(dir string) *fakeAPI {
	w.t.Helper()
	w.configure(dir)
	f := &fakeAPI{answer: map[string]http.HandlerFunc{}}
	s := httptest.NewUnstartedServer(f)
	_ = s.Listener.Close()
	s.Listener = mustListenUnix(w.t, filepath.Join(w.dir, dir, adminSocket))
	s.Start()
	w.t.Cleanup(s.Close)
	return f
}

// configure makes the world's directory the current one, with a configuration.
func (w *world) configure(dir string) {
	w.t.Helper()
	w.t.Chdir(w.dir)
	w.write("docket.yaml", "data_dir: "+dir+"\n")
}

// Ensure that a server is found at the admin socket of the configuration,
// without a token, however long the socket's path is.
func TestClientFindsTheAdminSocket(t *testing.T) {
	long := strings.Repeat("long/", 30) + "data"
	for _, dir := range []string{"d", long} {
		w := newWorld(t)
		api := w.serve(dir)
		api.on("GET /api/v1/runs", jsonAnswer(200, `{"runs": [], "next_cursor": ""}`))
		mustContain(t, "the listing", w.must("runs", "list"), "RUN  STATE")
		if got := api.all(); len(got) != 1 || got[0].auth != "" || got[0].line != "GET /api/v1/runs?limit=50" {
			t.Errorf("asked %+v", got)
		}
	}
}

// Ensure that --server and --token, or their variables, take precedence, and
// that the token goes nowhere else.
func TestClientOverHTTP(t *testing.T) {
	f := &fakeAPI{answer: map[string]http.HandlerFunc{}}
	f.on("GET /api/v1/projects", jsonAnswer(200, `{"projects": [], "next_cursor": ""}`))
	s := httptest.NewServer(f)
	defer s.Close()
	w := newWorld(t)
	w.must("projects", "list", "--server", s.URL+"/", "--token", "flag")
	w.env["DOCKET_SERVER"], w.env["DOCKET_TOKEN"] = s.URL, "env"
	w.must("projects", "list")
	w.must("projects", "list", "--token", "flag")
	var auths []string
	for _, a := range f.all() {
		auths = append(auths, a.auth)
	}
	if want := []string{"Bearer flag", "Bearer env", "Bearer flag"}; !slices.Equal(auths, want) {
		t.Errorf("got %q", auths)
	}

	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	f.on("GET /api/v1/projects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	if r := w.run("projects", "list"); r.code != exitFailed || !strings.Contains(r.err, "not as docket does; check the address") {
		t.Errorf("got %+v", r)
	}
}

// Ensure that each kind of trouble is one sentence, exit code 1.
func TestClientTrouble(t *testing.T) {
	w := newWorld(t)
	w.configure("data")
	check := func(what string, r result, want string) {
		t.Helper()
		if r.code != exitFailed || r.out != "" || !strings.HasPrefix(r.err, "docket: ") || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, want) {
			t.Errorf("%s: got %+v, want %q", what, r, want)
		}
	}
	none := "no server runs on " + w.path("data") + "; start it with `docket serve`, or name another with --server URL"
	check("no data directory", w.run("runs", "list"), none)

	dead := mustListenUnix(t, w.path("data/"+adminSocket))
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	check("a socket that a killed server left", w.run("runs", "list"), none)
	if err := os.Remove(w.path("data/" + adminSocket)); err != nil {
		t.Fatal(err)
	}

	api := w.serve("data")
	api.on("GET /api/v1/runs/x-1", problemJSON(404, "no run \"x-1\""))
	check("a problem", w.run("runs", "show", "x-1"), `docket: no run "x-1"`)
	api.on("GET /api/v1/runs/x-2", jsonAnswer(502, "<html>"))
	check("not a problem", w.run("runs", "show", "x-2"), "answered 502 Bad Gateway, not as docket does; check the address")
	api.on("GET /api/v1/runs/x-3", jsonAnswer(200, "<html>"))
	check("not JSON", w.run("runs", "show", "x-3"), "is not as this docket expects it")
	check("not JSON, as JSON", w.run("runs", "show", "x-3", "-o", "json"), "the server's answer is not JSON")
	api.on("POST /api/v1/projects/p/runs", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	check("a lost answer", w.run("runs", "start", "p", "--key", "k1"), "it may have been done, so repeat it with --key k1")
	api.on("POST /api/v1/projects/p/runs", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(409)
		_, _ = io.WriteString(w, `{"title":"Conflict","status":409,"detail":"the key was used for another request","existing_run":"p-7"}`)
	})
	check("a key used otherwise", w.run("runs", "start", "p", "--key", "k1"), "the key was used for another request (its run is p-7)")
	check("an address where nothing is", w.run("runs", "list", "--server", "http://127.0.0.1:1", "--token", "t"), "the server at http://127.0.0.1:1 did not answer")
}
