package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docket/store/ci"
)

// status is one commit status as GitHub took it.
type status struct{ Repository, Commit, Context, State, Description, URL string }

// fakeAnswer is one answer of the fake GitHub other than 201.
type fakeAnswer struct {
	status int
	header map[string]string
	body   string
}

// fakeGitHub takes commit statuses as GitHub does: with a token, for commits
// that it knows, with a description of at most 140 characters.
type fakeGitHub struct {
	URL string

	mu       sync.Mutex
	statuses []status
	first    time.Time // of the first status that it took
	calls    int
	script   []fakeAnswer    // given first, one a call
	unknown  map[string]bool // commits that it has not seen yet
}

func newFakeGitHub(t *testing.T) *fakeGitHub {
	t.Helper()
	hub := &fakeGitHub{unknown: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/repos/{owner}/{repo}/statuses/{commit}", hub.createStatus)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	hub.URL = srv.URL + "/api/"
	return hub
}

func (hub *fakeGitHub) createStatus(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, format string, args ...any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(github.ErrorResponse{Message: fmt.Sprintf(format, args...)})
	}
	var s github.RepoStatus
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		refuse(http.StatusBadRequest, "Problems parsing JSON: %v", err)
		return
	}
	hub.mu.Lock()
	defer hub.mu.Unlock()
	hub.calls++
	commit := r.PathValue("commit")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+statusToken:
		refuse(http.StatusUnauthorized, "Bad credentials")
	case len(hub.script) > 0:
		a := hub.script[0]
		hub.script = hub.script[1:]
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		refuse(a.status, "%s", a.body)
	case hub.unknown[commit]:
		refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", commit)
	case utf8.RuneCountInString(s.GetDescription()) > 140:
		refuse(http.StatusUnprocessableEntity, "Validation Failed: description is too long (maximum is 140 characters)")
	case !slices.Contains([]string{"pending", "success", "failure", "error"}, s.GetState()):
		refuse(http.StatusUnprocessableEntity, "Validation Failed: state %q", s.GetState())
	default:
		if hub.first.IsZero() {
			hub.first = time.Now()
		}
		hub.statuses = append(hub.statuses, status{
			r.PathValue("owner") + "/" + r.PathValue("repo"), commit, s.GetContext(), s.GetState(), s.GetDescription(), s.GetTargetURL(),
		})
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&s)
	}
}

// on returns the statuses of a commit, in order; of all commits for "".
func (hub *fakeGitHub) on(commit string) (list []status) {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	for _, s := range hub.statuses {
		if commit == "" || s.Commit == commit {
			list = append(list, s)
		}
	}
	return list
}

func (hub *fakeGitHub) called() int {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	return hub.calls
}

// last returns the newest status of a commit.
func (hub *fakeGitHub) last(commit string) status {
	if list := hub.on(commit); len(list) > 0 {
		return list[len(list)-1]
	}
	return status{}
}

// waitFor waits until a commit's newest status is that of a run, among those
// of the run's own project: another one's context is another line at GitHub.
func (hub *fakeGitHub) waitFor(t *testing.T, commit, run, state, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("GitHub is told that %s %s", run, text), func() bool {
		project, _, _ := ci.ParseRunID(run)
		var s status
		for _, x := range hub.on(commit) {
			if x.Context == "docket/"+project || x.Context == "docket/"+project+"/pr" {
				s = x
			}
		}
		return s.State == state && strings.HasPrefix(s.Description, run+" ") && strings.Contains(s.Description, text)
	})
}

// message is one notification as its receiver took it.
type message struct {
	id, kind, run string
}

// receiver takes notifications and checks their signatures.
type receiver struct {
	URL string

	mu     sync.Mutex
	seen   []message
	status int // its answer, default 200
	t      *testing.T
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, status: http.StatusOK}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	r.URL = srv.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	verify, err := standardwebhooks.NewWebhookRaw([]byte(notifySecret))
	if err == nil {
		err = verify.Verify(body, req.Header)
	}
	var m struct {
		Type string
		Data struct{ ID string }
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		r.t.Errorf("a notification cannot be read: %v: %s", err, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, message{req.Header.Get("Webhook-Id"), m.Type, m.Data.ID})
	w.WriteHeader(r.status)
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// notify is the entry of a project's configuration that tells r.
func (r *receiver) notify(events ...string) []obj {
	return []obj{{"webhook": r.URL, "secret": obj{"file": "notify.secret"}, "events": events}}
}

// blackHole accepts connections and never answers. It returns its host:port.
func blackHole(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var held []net.Conn
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			held = append(held, c)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		accepting.Wait()
		for _, c := range held {
			c.Close()
		}
	})
	return ln.Addr().String()
}

// repository is a bare git repository on this machine, and what a provider
// calls it.
type repository struct {
	t        *testing.T
	dir      string
	fullName string
	id       int64
	label    string // tells its commits from those of others
	n        int
}

func newRepository(t *testing.T, fullName string, id int64) *repository {
	t.Helper()
	r := &repository{t: t, dir: filepath.Join(shortDir(t), "it.git"), fullName: fullName, id: id, label: fullName}
	r.git("", "init", "--quiet", "--bare", "--initial-branch=main", r.dir)
	return r
}

// git runs git in the repository and returns what it says.
func (r *repository) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Dir(r.dir)
	if args[0] != "init" {
		cmd.Dir = r.dir
	}
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a commit and points a full ref at it, "" for none. Its file
// "name" says which one it is.
func (r *repository) commit(ref string, parents ...string) string {
	r.t.Helper()
	r.n++
	name := fmt.Sprintf("commit %d of %s", r.n, r.label)
	blob := r.git(name, "hash-object", "-w", "--stdin")
	tree := r.git("100644 blob "+blob+"\tname\n", "mktree")
	args := []string{"commit-tree", tree, "-m", name}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	commit := r.git("", args...)
	if ref != "" {
		r.git("", "update-ref", ref, commit)
	}
	return commit
}

// push is the payload of a push that moved a ref from one commit to another;
// before "" makes the ref new.
func (r *repository) push(ref, before, after string) []byte {
	r.t.Helper()
	zero := strings.Repeat("0", 40)
	created := before == ""
	if created {
		before = zero
	}
	return mustMarshal(r.t, obj{
		"ref": ref, "before": before, "after": after, "created": created, "deleted": after == zero, "forced": false,
		"repository":  obj{"id": r.id, "full_name": r.fullName, "default_branch": "main", "pushed_at": 1_700_000_000 + r.n},
		"pusher":      obj{"name": "octocat"},
		"sender":      obj{"login": "octocat"},
		"head_commit": obj{"id": after, "message": "Change it"},
		"commits":     []obj{{"id": after, "message": "Change it"}},
	})
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
