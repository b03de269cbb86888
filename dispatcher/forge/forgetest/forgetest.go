// Package forgetest is a GitHub to test against: a listener that answers the
// calls docket makes and enforces what GitHub enforces, by a clock of its own.
// What it answers can be scripted call by call, and what it was told is on
// record.
package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The fake's one App, and the installation of it that it begins with.
const (
	AppID        = 678
	Installation = 12345
)

// GitHub is a fake GitHub. Its methods may be called while it serves.
type GitHub struct {
	URL string // of the listener, without a slash at its end; repositories are cloned below it

	t      testing.TB
	server *httptest.Server

	mu            sync.Mutex
	clock         func() time.Time
	skew          time.Duration
	open          bool
	lifetime      time.Duration
	tokens        map[string]*grant
	installations map[int64]*installation
	repositories  map[string]*repository // by lower-case owner/name
	script        []scripted
	calls         []Call
	statuses      []Status
	checks        []*checkRun
	appHook       *Hook
	hooks         []*Hook
	deliveries    []*delivery
	nextID        int64
	delivering    sync.WaitGroup
}

// repository is one repository and what GitHub lists of it.
type repository struct {
	id       int64
	name     string // owner/name
	private  bool
	dir      string          // a bare git repository; "" if it cannot be cloned
	commits  map[string]bool // nil: every commit is known
	unknown  map[string]bool // not known yet, whatever commits says
	tagObj   map[string]bool
	messages map[string]string // of commits
	branches []named
	tags     []named
	pulls    []Pull
}

type named struct{ name, commit string }

// Pull is an open pull request.
type Pull struct {
	Number         int
	Title          string
	Base, Head     string // short branch names
	Commit         string // of the head
	HeadRepository string // owner/name; "" for the repository itself
	HeadID         int64  // of the head repository; 0: it was deleted, where HeadRepository is set
	Author         string
	Draft          bool
	Labels         []string
}

// Call is one request as it came.
type Call struct {
	Method, Path string // the path without the API's own beginning
	Token        string // what it signed in with
	App          bool   // signed in as the App itself
	Status       int    // of the answer; 0: none was given
}

// New starts a fake GitHub with the App AppID and its one Installation, which
// may do everything and has every repository that is added. It ends with the
// test.
func New(t testing.TB) *GitHub {
	t.Helper()
	g := &GitHub{
		t: t, clock: time.Now, lifetime: time.Hour, nextID: 1000,
		tokens: map[string]*grant{}, installations: map[int64]*installation{}, repositories: map[string]*repository{},
	}
	g.installations[Installation] = &installation{id: Installation, all: true}
	g.server = httptest.NewServer(g)
	g.URL = g.server.URL
	t.Cleanup(func() {
		g.delivering.Wait()
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// API returns the address to configure as api_url.
func (g *GitHub) API() string { return g.URL + "/api/v3/" }

// CloneURL returns where a repository is cloned from.
func (g *GitHub) CloneURL(name string) string { return g.URL + "/" + name + ".git" }

// Clock makes GitHub go by another clock than this machine's.
func (g *GitHub) Clock(now func() time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock = now
}

// Skew sets how far GitHub is ahead of its clock.
func (g *GitHub) Skew(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.skew = d
}

// now is GitHub's time. The caller holds mu.
func (g *GitHub) now() time.Time { return g.clock().Add(g.skew) }

// Open makes every repository that is asked for exist, with every commit.
func (g *GitHub) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// AddRepository adds a repository in which every commit is known.
func (g *GitHub) AddRepository(name string, id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repositories[strings.ToLower(name)] = &repository{id: id, name: name, unknown: map[string]bool{}, tagObj: map[string]bool{}}
}

// RemoveRepository makes a repository unknown.
func (g *GitHub) RemoveRepository(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.repositories, strings.ToLower(name))
}

// change calls f with a repository that was added.
func (g *GitHub) change(name string, f func(*repository)) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.repository(name)
	if r == nil {
		g.t.Errorf("forgetest: no repository %s was added", name)
		return
	}
	f(r)
}

// SetBranch puts a branch at a commit; "" deletes it.
func (g *GitHub) SetBranch(repository_, branch, commit string) {
	g.t.Helper()
	g.change(repository_, func(r *repository) { r.branches = set(r.branches, branch, commit) })
}

// SetTag puts a tag at the commit that it comes down to; "" deletes it.
func (g *GitHub) SetTag(repository_, tag, commit string) {
	g.t.Helper()
	g.change(repository_, func(r *repository) { r.tags = set(r.tags, tag, commit) })
}

func set(list []named, name, commit string) []named {
	list = slices.DeleteFunc(list, func(n named) bool { return n.name == name })
	if commit != "" {
		list = append(list, named{name, commit})
	}
	return list
}

// SetPull opens a pull request, or takes the place of the one of its number.
func (g *GitHub) SetPull(repository_ string, p Pull) {
	g.t.Helper()
	g.change(repository_, func(r *repository) {
		r.pulls = append(slices.DeleteFunc(r.pulls, func(o Pull) bool { return o.Number == p.Number }), p)
	})
}

// ClosePull closes a pull request.
func (g *GitHub) ClosePull(repository_ string, number int) {
	g.t.Helper()
	g.change(repository_, func(r *repository) {
		r.pulls = slices.DeleteFunc(r.pulls, func(o Pull) bool { return o.Number == number })
	})
}

// KnowCommits makes these the only commits that a repository has.
func (g *GitHub) KnowCommits(repository_ string, commits ...string) {
	g.t.Helper()
	g.change(repository_, func(r *repository) {
		r.commits = map[string]bool{}
		for _, c := range commits {
			r.commits[c] = true
		}
	})
}

// HideCommit makes a commit unknown in every repository, or known again.
func (g *GitHub) HideCommit(commit string, hidden bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.repositories {
		r.unknown[commit] = hidden
	}
}

// AddTagObject says that an id is an annotated tag's and no commit's.
func (g *GitHub) AddTagObject(repository_, id string) {
	g.t.Helper()
	g.change(repository_, func(r *repository) { r.tagObj[id] = true })
}

// repository finds one by name. The caller holds mu.
func (g *GitHub) repository(name string) *repository {
	r := g.repositories[strings.ToLower(strings.TrimSuffix(name, ".git"))]
	if r == nil && g.open {
		g.nextID++
		r = &repository{id: g.nextID, name: name, unknown: map[string]bool{}, tagObj: map[string]bool{}}
		g.repositories[strings.ToLower(name)] = r
	}
	return r
}

// has reports whether a commit is known.
func (r *repository) has(commit string) bool {
	return !r.unknown[commit] && !r.tagObj[commit] && (r.commits == nil || r.commits[commit])
}

// Calls returns the requests so far whose "METHOD path" begins so, in order.
func (g *GitHub) Calls(prefix string) (list []Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.calls {
		if strings.HasPrefix(c.Method+" "+c.Path, prefix) {
			list = append(list, c)
		}
	}
	return list
}

// id returns a number that nothing has yet. The caller holds mu.
func (g *GitHub) id() int64 {
	g.nextID++
	return g.nextID
}

// answer is what a call is answered with.
type answer struct {
	status int
	body   any
	next   string // the query of the next page, "" for none
}

// refusal is an answer with GitHub's shape of an error.
func refusal(status int, format string, args ...any) answer {
	return answer{status: status, body: map[string]any{"message": fmt.Sprintf(format, args...), "documentation_url": "https://docs.github.com/rest"}}
}

// invalid is a 422 that names what is wrong.
func invalid(format string, args ...any) answer {
	return answer{status: http.StatusUnprocessableEntity, body: map[string]any{
		"message": "Validation Failed", "errors": []map[string]string{{"code": "custom", "message": fmt.Sprintf(format, args...)}},
	}}
}

var notFound = refusal(http.StatusNotFound, "Not Found")

// write sends an answer by GitHub's clock.
func (a answer) write(w http.ResponseWriter, r *http.Request, now time.Time) {
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if a.next != "" {
		u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: a.next}
		w.Header().Set("Link", "<"+u.String()+`>; rel="next"`)
	}
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body)
	}
}

// page cuts the part out of a list that page and per_page ask for.
func page[T any](r *http.Request, list []T) (part []T, next string) {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	if size < 1 || size > 100 {
		size = 30
	}
	n, _ := strconv.Atoi(q.Get("page"))
	from := min(max(n-1, 0)*size, len(list))
	to := min(from+size, len(list))
	if to < len(list) {
		q.Set("page", strconv.Itoa(max(n, 1)+1))
		next = q.Encode()
	}
	return list[from:to], next
}
