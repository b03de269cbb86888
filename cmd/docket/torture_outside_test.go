//go:build torture

package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

const (
	tortureGitHubToken  = "torture-token"
	tortureNotifyKey    = "torture-notify-key"
	tortureNotifyPrefix = "whsec_"
	tortureStatusPath   = "/api/v3/repos/{owner}/{repo}/statuses/{commit}"
)

var tortureNotifySecret = tortureNotifyPrefix + base64.StdEncoding.EncodeToString([]byte(tortureNotifyKey))

// tortureOutside is the world around docket: a GitHub and receivers of
// webhooks, which outlive the server. They remember all that reaches them, in
// order, and fail now and then: before they act, or after.
type tortureOutside struct {
	w      *tortureWorld
	github *httptest.Server
	hooks  *httptest.Server
	hub    *forgetest.GitHub // behind github: what it delivered

	mu       sync.Mutex
	rng      *rand.Rand
	open     map[net.Conn]bool
	tries    map[string]int // of one message
	statuses map[tortureContext][]tortureStatus
	messages map[string]*tortureMessage // by webhook-id
	order    []string                   // webhook-ids by their first arrival
	acted    int                        // requests that were acted on
	refused  int                        // and that were not
}

// tortureContext is what GitHub shows one status for.
type tortureContext struct{ repository, commit, context string }

// tortureStatus is one status that reached GitHub.
type tortureStatus struct {
	run         string
	state       string
	description string
	target      string
}

// tortureMessage is one webhook notification.
type tortureMessage struct {
	project string
	body    string
	parsed  ci.NotificationPayload
	arrived int
}

func newTortureOutside(w *tortureWorld) *tortureOutside {
	o := &tortureOutside{
		w: w, rng: w.rng(1000), open: map[net.Conn]bool{}, tries: map[string]int{},
		statuses: map[tortureContext][]tortureStatus{}, messages: map[string]*tortureMessage{},
	}
	serve := func(pattern string, h http.HandlerFunc) *httptest.Server {
		mux := http.NewServeMux()
		mux.Handle("GET /api/v3/", o.hub)
		mux.Handle("POST /api/v3/repos/{owner}/{repo}/hooks/", o.hub)
		mux.HandleFunc(pattern, h)
		mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
			w.fail("docket called %s %s", r.Method, r.URL)
			http.NotFound(rw, r)
		})
		s := httptest.NewUnstartedServer(mux)
		s.Config.ConnState = o.connection
		s.Start()
		w.t.Cleanup(s.Close)
		return s
	}
	o.makeHub()
	o.github = serve("POST "+tortureStatusPath, o.status)
	o.hooks = serve("POST /project/{project}", o.message)
	return o
}

// target is the address of a project's webhook.
func (o *tortureOutside) target(project string) string { return o.hooks.URL + "/project/" + project }

func (o *tortureOutside) connection(c net.Conn, state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew:
		o.open[c] = true
	case http.StateHijacked, http.StateClosed:
		delete(o.open, c)
	}
}

// settleOutside waits until what a dead server sent has been handled: two
// servers that live one after the other never send at the same time.
func (w *tortureWorld) settleOutside() {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); ; <-tick.C {
		w.outside.mu.Lock()
		n := len(w.outside.open)
		w.outside.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			w.fail("%d connections of a dead server stay open", n)
			return
		}
	}
}

// tortureMood is how a receiver treats one request.
type tortureMood int

const (
	tortureWell      tortureMood = iota
	tortureError                 // 500, nothing done
	tortureLimit                 // 429, nothing done
	tortureDoneError             // done, and 500
	tortureDoneGone              // done, and the connection is closed
)

// mood is drawn with the lock held. Only the first two tries of a message go
// wrong: each try, also one that a kill cut short, doubles the wait after the
// next failure.
func (o *tortureOutside) mood(message string) tortureMood {
	if o.tries[message]++; o.tries[message] > 2 {
		o.acted++
		return tortureWell
	}
	m := tortureWell
	switch n := o.rng.IntN(1000); {
	case n < 20:
		m = tortureError
	case n < 24:
		m = tortureLimit
	case n < 34:
		m = tortureDoneError
	case n < 60:
		m = tortureDoneGone
	}
	if m == tortureError || m == tortureLimit {
		o.refused++
	} else {
		o.acted++
	}
	return m
}

func (m tortureMood) answer(rw http.ResponseWriter, ok int) {
	switch m {
	case tortureError, tortureDoneError:
		http.Error(rw, `{"message": "Server Error"}`, http.StatusInternalServerError)
	case tortureLimit:
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, `{"message": "You have exceeded a secondary rate limit"}`, http.StatusTooManyRequests)
	case tortureDoneGone:
		panic(http.ErrAbortHandler)
	default:
		rw.WriteHeader(ok)
		_, _ = io.WriteString(rw, "{}")
	}
}

// status is GitHub's POST /repos/{owner}/{repo}/statuses/{sha}.
func (o *tortureOutside) status(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	var s struct {
		State, Description, Context string
		TargetURL                   string `json:"target_url"`
	}
	if err := json.Unmarshal(body, &s); err != nil {
		o.w.fail("a status that is not JSON: %v: %s", err, body)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+tortureGitHubToken {
		o.w.fail("a status with the authorization %q", got)
	}
	run, _, _ := strings.Cut(s.Description, " ")
	key := tortureContext{r.PathValue("owner") + "/" + r.PathValue("repo"), r.PathValue("commit"), s.Context}
	o.mu.Lock()
	m := o.mood("status " + key.commit + key.context + s.Description)
	if m != tortureError && m != tortureLimit {
		o.statuses[key] = append(o.statuses[key], tortureStatus{run, s.State, s.Description, s.TargetURL})
	}
	o.mu.Unlock()
	o.w.told.event()
	m.answer(rw, http.StatusCreated)
}

// message is a receiver of Standard Webhooks.
func (o *tortureOutside) message(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	id := r.Header.Get(standardwebhooks.HeaderWebhookID)
	verifier, err := standardwebhooks.NewWebhook(tortureNotifySecret)
	if err == nil {
		err = verifier.Verify(body, r.Header)
	}
	if err != nil || id == "" {
		o.w.fail("the message %q is not signed as it should be: %v", id, err)
	}
	o.mu.Lock()
	m := o.mood("message " + id)
	if m != tortureError && m != tortureLimit {
		o.take(id, r.PathValue("project"), body)
	}
	o.mu.Unlock()
	o.w.told.event()
	m.answer(rw, http.StatusOK)
}

// take keeps a message; one that comes again must be the same.
func (o *tortureOutside) take(id, project string, body []byte) {
	if known := o.messages[id]; known != nil {
		if known.body != string(body) || known.project != project {
			o.w.fail("the message %s came again with another body or address:\n%s\n%s", id, known.body, body)
		}
		known.arrived++
		return
	}
	m := &tortureMessage{project: project, body: string(body), arrived: 1}
	if err := json.Unmarshal(body, &m.parsed); err != nil {
		o.w.fail("the message %s is not a notification: %v: %s", id, err, body)
	}
	o.messages[id] = m
	o.order = append(o.order, id)
}

// counts returns how many requests were acted on, and how many not.
func (o *tortureOutside) counts() (acted, refused int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acted, o.refused
}
