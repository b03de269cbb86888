package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

const goodPassword = "correct horse battery"

// Ensure that users are added, listed, changed and removed on a stopped
// server, before its first start too.
func TestUsersOfAStoppedServer(t *testing.T) {
	w := newWorld(t)
	w.configure("deep/data")
	if r := w.run("user", "list"); r.code != exitFailed || !strings.Contains(r.err, "there is no store ") {
		t.Errorf("before the first start: got %+v", r)
	}
	w.stdin = goodPassword + "\r\nand more"
	if out := w.must("user", "add", "mona", "--role", "operator"); out != "the user mona is added as operator\n" {
		t.Errorf("got %q", out)
	}
	look := func(name string) (u ci.User, hash string, newest ci.Decision) {
		t.Helper()
		s := mustOpenStore(t, w.path("deep/data/docket.db"))
		defer mustClose(t, s)
		u, hash, err := s.User(name)
		list, _, _ := s.Decisions("", store.Page{})
		if err != nil || len(list) == 0 {
			t.Fatalf("%v, decisions %+v", err, list)
		}
		return u, hash, list[0]
	}
	u, first, d := look("mona")
	if u.Role != ci.Operator || !strings.HasPrefix(first, "$argon2id$v=19$m=47104,t=2,p=1$") || d.By != storeOwner() || d.Kind != ci.DecisionUserAdded {
		t.Errorf("got %+v %q %+v", u, first, d)
	}
	if r := w.run("user", "add", "mona", "--role", "admin"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "there is a user named \"mona\" already") {
		t.Errorf("the same name again: got %+v", r)
	}
	mustContain(t, "the list", w.must("user", "list"), "USER  ROLE      CREATED\nmona  operator  ")
	var list users
	if err := json.Unmarshal([]byte(w.must("user", "list", "-o", "json")), &list); err != nil || len(list.Users) != 1 || list.Users[0] != u {
		t.Errorf("got %+v, %v", list, err)
	}

	w.stdin = "another one entirely"
	mustContain(t, "the answer", w.must("user", "password", "mona"), "the user mona has a new password\n")
	if _, second, d := look("mona"); second == first || d.Kind != ci.DecisionPasswordChanged {
		t.Errorf("got %q %+v", second, d)
	}
	mustContain(t, "the answer", w.must("user", "role", "mona", "--role", "viewer"), "the user mona is viewer\n")
	if u, _, d := look("mona"); u.Role != ci.Viewer || d.Kind != ci.DecisionRoleChanged {
		t.Errorf("got %+v %+v", u, d)
	}
	mustContain(t, "the removal", w.must("user", "remove", "mona"), "the user mona is removed\n")
	for _, args := range [][]string{{"remove", "mona"}, {"password", "mona"}, {"role", "mona", "--role", "admin"}} {
		if r := w.run(append([]string{"user"}, args...)...); r.code != exitFailed || !strings.Contains(r.err, "`docket user list` shows those there are") {
			t.Errorf("%s of nobody: got %+v", args, r)
		}
	}
	mustContain(t, "the empty list", w.must("user", "list", "-o", "json"), `"users": []`)
}

// Ensure that a password that cannot be taken changes nothing and is shown nowhere.
func TestUserPasswordsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	api := w.serve("d")
	for stdin, want := range map[string]string{
		"":                               "too short",
		"\n" + goodPassword:              "too short",
		"elevenchars\n":                  "too short: use at least 12 characters",
		strings.Repeat("x", 1025) + "\n": "too long: use at most 1024 bytes",
		"\xff\xfe is not text at all\n":  "not UTF-8",
	} {
		w.stdin = stdin
		for _, args := range [][]string{{"user", "add", "mona", "--role", "viewer"}, {"user", "password", "mona"}} {
			r := w.run(args...)
			if r.code != exitFailed || r.out != "" || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 || strings.Contains(r.err, "elevenchars") {
				t.Errorf("%.20q: got %+v, want %q", stdin, r, want)
			}
		}
	}
	if got := api.all(); len(got) > 0 {
		t.Errorf("the server was asked %+v", got)
	}
}

func TestUserUsage(t *testing.T) {
	for line, want := range map[string]string{
		"user":                       "docket user needs one of add, list, password, remove, role",
		"user add":                   "docket user add needs NAME",
		"user add mona":              `--role "" is not a role`,
		"user add mona --role king":  `--role "king" is not a role`,
		"user role mona --role king": `--role "king" is not a role`,
		"user remove":                "docket user remove needs NAME",
		"login-link a b":             `docket login-link does not take "b"`,
	} {
		if r := newWorld(t).run(strings.Fields(line)...); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("docket %s: got %+v, want %q", line, r, want)
		}
	}
}

// serveReal runs a real server's admin socket in a world, and its pages on
// a listener that is its public address.
func (w *world) serveReal(dir string) (s *store.Store, pages string) {
	w.t.Helper()
	w.configure(dir)
	if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
		w.t.Fatal(err)
	}
	s = storetest.MustOpenAt(w.t, w.path(filepath.Join(dir, storeFile)), store.Options{})
	cfg := &ci.Config{}
	srv := server.New(server.Options{Store: s, Config: func() *ci.Config { return cfg }})
	public := httptest.NewServer(srv.Handler())
	w.t.Cleanup(public.Close)
	cfg.PublicURL = public.URL
	admin := httptest.NewUnstartedServer(srv.AdminHandler())
	_ = admin.Listener.Close()
	admin.Listener = mustListenUnix(w.t, w.path(filepath.Join(dir, adminSocket)))
	admin.Start()
	w.t.Cleanup(admin.Close)
	return s, public.URL
}

// Ensure that users go through a running server, and that what its commands
// say opens its page.
func TestUsersOfARunningServer(t *testing.T) {
	w := newWorld(t)
	s, pages := w.serveReal("d")
	w.stdin = goodPassword + "\n"
	w.must("user", "add", "mona", "--role", "operator")
	mustContain(t, "the list", w.must("user", "list"), "mona  operator  ")
	list, _, err := s.Decisions("", store.Page{})
	if err != nil || len(list) != 1 || list[0].By != (ci.By{Kind: ci.ByToken, Name: "admin socket"}) {
		t.Errorf("decisions %+v, %v", list, err)
	}

	client := &http.Client{CheckRedirect: noRedirect}
	post := func(path string, form url.Values) *http.Response {
		t.Helper()
		res, err := client.PostForm(pages+path, form)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res
	}
	if res := post("/login", url.Values{"name": {"mona"}, "password": {goodPassword}}); res.StatusCode != 303 || len(res.Cookies()) != 1 {
		t.Errorf("signing in: %s", res.Status)
	}
	for _, args := range [][]string{{"login-link"}, {"login-link", "mona"}} {
		out := w.must(args...)
		link, err := url.Parse(strings.TrimSuffix(out, "\n"))
		if err != nil || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, pages+"/login/link?token=") {
			t.Fatalf("%s printed %q", args, out)
		}
		for _, want := range []int{303, 401} {
			if res := post("/login/link", url.Values{"token": {link.Query().Get("token")}}); res.StatusCode != want {
				t.Errorf("%s: %s, want %d", args, res.Status, want)
			}
		}
	}
	if r := w.run("login-link", "lisa"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, `no user is named "lisa"`) {
		t.Errorf("a link for nobody: got %+v", r)
	}

	w.stdin = "another one entirely\n"
	w.must("user", "password", "mona")
	w.must("user", "role", "mona", "--role", "viewer")
	for password, want := range map[string]int{goodPassword: 401, "another one entirely": 303} {
		if res := post("/login", url.Values{"name": {"mona"}, "password": {password}}); res.StatusCode != want {
			t.Errorf("signing in with %q: %s, want %d", password, res.Status, want)
		}
	}
	if u, _, err := s.User("mona"); err != nil || u.Role != ci.Viewer {
		t.Errorf("got %+v, %v", u, err)
	}
	w.must("user", "remove", "mona")
	if r := w.run("user", "remove", "mona"); r.code != exitFailed || !strings.Contains(r.err, `no user is named "mona"`) {
		t.Errorf("removed twice: got %+v", r)
	}
}

// Ensure that a login link of a stopped server is refused: nothing would take it.
func TestLoginLinkOfAStoppedServer(t *testing.T) {
	w := newWorld(t)
	w.configure("d")
	w.stdin = goodPassword
	w.must("user", "add", "mona", "--role", "admin")
	if r := w.run("login-link"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "start it with `docket serve`") {
		t.Errorf("got %+v", r)
	}
}
