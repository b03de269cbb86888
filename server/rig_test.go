package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
	"docket/web"
)

// renderer is shared by all tests: parsing the templates takes a while.
var renderer = sync.OnceValue(func() *web.Renderer { return web.New("test") })

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	hookSecret = "k-01"
	adminToken = "admin-token"
	commitA    = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	commitB    = "1481a2de7b2a7d02428ad93446ab166be7793fbb"
	repoID     = 186853002
)

// rig is one store with servers on real listeners in front of it.
type rig struct {
	t      *testing.T
	store  *store.Store
	server *server.Server
	url    string // everything
	admin  string // the admin handler
	log    *lockedBuffer
	client *http.Client

	mu     sync.Mutex
	cfg    *ci.Config
	tokens map[ci.Role]string
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// mustConfig is a configuration of one integration and one project; changes
// are applied to it.
func mustConfig(changes ...func(*ci.Config)) *ci.Config {
	cfg := &ci.Config{
		PublicURL:  "https://ci.example.org",
		Limits:     ci.Limits{Body: 1 << 20, ConcurrentRuns: 2},
		AdminToken: ci.NewSecret("admin", adminToken),
		Integrations: []ci.Integration{{
			Name: "github", Provider: "github", APIURL: "https://api.github.com/",
			WebhookSecrets: []ci.Secret{ci.NewSecret("first", hookSecret)},
		}},
		Projects: []ci.Project{mustProject("api", "acme/api")},
	}
	for _, change := range changes {
		change(cfg)
	}
	return cfg
}

func mustProject(name, repository string) ci.Project {
	return ci.Project{
		Name: name, Integration: "github", Repository: repository,
		CloneURL: "https://example.org/" + repository + ".git", DefaultBranch: "main",
		On:        ci.On{Push: &ci.OnPush{Branches: []string{"main"}}, PullRequest: &ci.OnPullRequest{}},
		Supersede: ci.SupersedePending, OnInterrupt: ci.OnInterruptStop, Replays: ci.ReplaysAccept,
		Timeout: time.Minute, Grace: time.Second,
		Inputs: []ci.Input{{Name: "target", Default: "staging", Options: []string{"staging", "production"}}},
		Steps:  []ci.Step{{Name: "test", Run: "true"}, {Name: "deploy", Run: "true"}},
	}
}

func newRig(t *testing.T, changes ...func(*ci.Config)) *rig {
	t.Helper()
	return newRigOver(t, storetest.MustOpen(t), changes...)
}

func newRigOver(t *testing.T, st *store.Store, changes ...func(*ci.Config)) *rig {
	t.Helper()
	r := &rig{t: t, store: st, log: &lockedBuffer{}, cfg: mustConfig(changes...), tokens: map[ci.Role]string{ci.Admin: adminToken}}
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	r.server = r.newServer()
	r.url = r.mustListen(r.server.Handler())
	r.admin = r.mustListen(r.server.AdminHandler())
	return r
}

func (r *rig) newServer() *server.Server {
	return server.New(server.Options{
		Store: r.store, Config: r.config, Version: "test", Pages: renderer(),
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	})
}

func (r *rig) config() *ci.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg
}

// reconfigure puts another configuration in force.
func (r *rig) reconfigure(changes ...func(*ci.Config)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg = mustConfig(changes...)
}

// mustListen serves h on a real listener with docket's own http.Server.
func (r *rig) mustListen(h http.Handler) string {
	r.t.Helper()
	srv := server.NewHTTPServer(h)
	url, done := mustServe(r.t, srv)
	r.t.Cleanup(func() {
		r.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			r.t.Errorf("shutdown: %v", err)
			srv.Close()
		}
		<-done
	})
	return url
}

// mustServe starts a server on a free port; done gets what Serve returned.
func mustServe(t testing.TB, srv *http.Server) (url string, done <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan error, 1)
	go func() { c <- srv.Serve(l) }()
	return "http://" + l.Addr().String(), c
}

// token returns a token with a role, made at its first use.
func (r *rig) token(role ci.Role) string {
	r.t.Helper()
	if r.tokens[role] == "" {
		v, err := r.store.CreateToken(r.t.Context(), "the-"+string(role), role)
		if err != nil {
			r.t.Fatal(err)
		}
		r.tokens[role] = v
	}
	return r.tokens[role]
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// mustDecode reads an answer's JSON.
func mustDecode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("answer %v: %v", a, err)
	}
	return v
}

func (r *rig) do(req *http.Request) answer {
	r.t.Helper()
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, b}
}

// call asks the API with a role's token; headers are name, value pairs.
func (r *rig) call(role ci.Role, method, path, body string, headers ...string) answer {
	r.t.Helper()
	req := mustRequest(r.t, method, r.url+"/api/v1"+path, body)
	if role != "" {
		req.Header.Set("Authorization", "Bearer "+r.token(role))
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return r.do(req)
}

func mustRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// delivery builds a signed delivery.
func (r *rig) delivery(base, event, id, body string) *http.Request {
	r.t.Helper()
	req := mustRequest(r.t, http.MethodPost, base+"/hooks/github", body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-Hub-Signature-256", sign(hookSecret, body))
	return req
}

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// deliver sends a signed delivery.
func (r *rig) deliver(event, id, body string) answer {
	r.t.Helper()
	return r.do(r.delivery(r.url, event, id, body))
}

// pushBody is a push's payload with what docket reads.
func pushBody(ref, before, after string) string {
	return fmt.Sprintf(`{"ref":%q,"before":%q,"after":%q,"deleted":%t,"head_commit":{"id":%q,"message":"fix … 😊"},"repository":{"id":%d,"full_name":"acme/api","pushed_at":1700000000},"sender":{"login":"octocat"},"pusher":{"name":"octocat"}}`,
		ref, before, after, after == zeros, after, repoID)
}

const zeros = "0000000000000000000000000000000000000000"

func mainPush() string { return pushBody("refs/heads/main", commitB, commitA) }

// hookAnswer is the reply to a delivery.
type hookAnswer struct {
	Receipt   string
	Outcome   string
	Duplicate bool
	Reason    string
	Runs      []struct {
		ID, Project, URL string
		Number           int
	}
}

// problemAnswer is a problem+json.
type problemAnswer struct {
	Type, Title, Detail string
	Status              int
	ExistingRun         string `json:"existing_run"`
	Reasons             []string
}

// wantProblem checks that an answer is a whole problem+json of a status.
func wantProblem(t *testing.T, a answer, status int) problemAnswer {
	t.Helper()
	if a.status != status {
		t.Fatalf("answer %v, want %d", a, status)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q, want problem+json", ct)
	}
	p := mustDecode[problemAnswer](t, a)
	if p.Type == "" || p.Title == "" || p.Detail == "" || p.Status != status {
		t.Errorf("problem %+v lacks a field", p)
	}
	return p
}

// receipts returns all receipts, newest first.
func (r *rig) receipts() []ci.Receipt {
	r.t.Helper()
	list, _, err := r.store.Receipts("", store.Page{Limit: 200})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func (r *rig) runs() []ci.Run {
	r.t.Helper()
	list, _, err := r.store.Runs(store.RunFilter{}, store.Page{Limit: 200})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// mustClaimNext claims the next queued run, as the scheduler does: after it
// has decided that nobody gives way.
func (r *rig) mustClaimNext() ci.Run {
	r.t.Helper()
	scopes, err := r.store.Scopes(10)
	for _, sc := range scopes {
		err = errors.Join(err, r.store.Supersede(r.t.Context(), sc, nil))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	run, ok, err := r.store.Claim(r.t.Context(), "boot", 10)
	if err != nil || !ok {
		r.t.Fatalf("claim: %t %v", ok, err)
	}
	return run
}

// mustFinish ends a run's log, then the run.
func (r *rig) mustFinish(run ci.Run, w *store.LogWriter) {
	r.t.Helper()
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.FinishRun(r.t.Context(), run.ID, run.Attempt, store.Result{State: ci.Succeeded}); err != nil {
		r.t.Fatal(err)
	}
}
