package forgetest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Answer is one scripted answer. The zero Answer is what GitHub would say.
type Answer struct {
	Status int // 0: the call is carried out as if nothing were scripted
	Header map[string]string
	Body   string // as it is; "" is an empty JSON object
	// Lose carries the call out, or answers with Status, and breaks the
	// connection instead of telling.
	Lose bool
	// Hang gives no answer before the caller leaves.
	Hang bool
}

type scripted struct {
	prefix string
	answer Answer
}

// Script sets the answers to the next calls whose "METHOD path" begins with
// prefix, one a call; "" stands for every call. The path is without the API's
// own beginning, as in "POST /repos/acme/api/statuses/".
func (g *GitHub) Script(prefix string, answers ...Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range answers {
		g.script = append(g.script, scripted{prefix, a})
	}
}

// scripted takes the next answer for a call off the script. The caller holds mu.
func (g *GitHub) scripted(call string) (Answer, bool) {
	for i, s := range g.script {
		if strings.HasPrefix(call, s.prefix) {
			g.script = append(g.script[:i:i], g.script[i+1:]...)
			return s.answer, true
		}
	}
	return Answer{}, false
}

// Message is a refusal with GitHub's text.
func Message(status int, text string) Answer {
	return Answer{Status: status, Body: `{"message":` + strconv.Quote(text) + `}`}
}

// PrimaryLimit is the answer to a caller whose hour's calls are used up.
func (g *GitHub) PrimaryLimit(reset time.Duration) Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := Message(http.StatusForbidden, "API rate limit exceeded for installation ID 12345.")
	a.Header = map[string]string{
		"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0",
		"X-RateLimit-Reset": strconv.FormatInt(g.now().Add(reset).Unix(), 10),
	}
	return a
}

// SecondaryLimit is the answer to too many calls at once, with or (0) without
// a time.
func SecondaryLimit(retryAfter time.Duration) Answer {
	a := Message(http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
	if retryAfter > 0 {
		a.Header = map[string]string{"Retry-After": strconv.Itoa(int(retryAfter / time.Second))}
	}
	return a
}

// TooMany is the limit that comes as 429.
func TooMany(retryAfter time.Duration) Answer {
	a := SecondaryLimit(retryAfter)
	a.Status = http.StatusTooManyRequests
	return a
}

// ServeHTTP implements http.Handler: the API below /api/v3, and what git asks.
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, api := strings.CutPrefix(r.URL.Path, "/api/v3")
	body, err := io.ReadAll(r.Body) // a caller that leaves is only noticed after it
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	a, ok := g.scripted(r.Method + " " + path)
	at := len(g.calls)
	g.calls = append(g.calls, Call{Method: r.Method, Path: path, Token: bearer(r)})
	g.calls[at].App = strings.Count(g.calls[at].Token, ".") == 2
	g.mu.Unlock()

	rec := httptest.NewRecorder()
	switch {
	case a.Hang:
		<-r.Context().Done()
		return
	case ok && a.Status != 0:
		g.mu.Lock()
		now := g.now()
		g.mu.Unlock()
		rec.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		for k, v := range a.Header {
			rec.Header().Set(k, v)
		}
		rec.WriteHeader(a.Status)
		body := a.Body
		if body == "" {
			body = "{}"
		}
		_, _ = rec.WriteString(body)
	case api:
		g.api(rec, r, path)
	default:
		g.git(rec, r)
	}
	if a.Lose {
		if hijacker, ok := w.(http.Hijacker); ok {
			if c, _, err := hijacker.Hijack(); err == nil {
				_ = c.Close()
			}
		}
		return
	}
	g.mu.Lock()
	g.calls[at].Status = rec.Code
	g.mu.Unlock()
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func bearer(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	_, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return value
}

// route is one call that the fake knows.
type route struct {
	app        bool   // for the App itself
	permission string // else what the token needs in the repository; "" for none
	level      string
	answer     func(g *GitHub, r *http.Request, c caller, repo *repository) answer
}

// api answers a call of the API.
func (g *GitHub) api(w http.ResponseWriter, r *http.Request, path string) {
	mux := http.NewServeMux()
	for pattern, rt := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			a, now := g.route(rt, r), g.now()
			g.mu.Unlock()
			a.write(w, r, now)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		now := g.now()
		g.mu.Unlock()
		notFound.write(w, r, now)
	})
	r2 := r.Clone(r.Context())
	r2.URL.Path, r2.URL.RawPath = path, ""
	mux.ServeHTTP(w, r2)
}

// route signs the caller in, looks what it may do, and lets the call happen.
func (g *GitHub) route(rt route, r *http.Request) answer {
	c, refused := g.signIn(r)
	if refused != nil {
		return *refused
	}
	if rt.app {
		if !c.app {
			return refusal(http.StatusUnauthorized, "A JSON web token could not be decoded")
		}
		return rt.answer(g, r, c, nil)
	}
	repo := g.repository(r.PathValue("owner") + "/" + r.PathValue("repo"))
	if repo == nil {
		return notFound
	}
	if no := c.may(repo, rt.permission, rt.level); no != nil {
		return *no
	}
	return rt.answer(g, r, c, repo)
}

// routes are the calls that docket makes.
var routes = map[string]route{
	"POST /app/installations/{id}/access_tokens": {app: true, answer: func(g *GitHub, r *http.Request, c caller, _ *repository) answer { return g.createToken(r, c) }},
	"GET /repos/{owner}/{repo}/installation":     {app: true, answer: func(g *GitHub, r *http.Request, c caller, _ *repository) answer { return g.findInstallation(r, c) }},
	"GET /app/hook/config":                       {app: true, answer: (*GitHub).getAppHook},
	"GET /app/hook/deliveries":                   {app: true, answer: (*GitHub).listDeliveries},
	"POST /app/hook/deliveries/{delivery}/attempts": {
		app: true, answer: (*GitHub).redeliver,
	},
	"POST /repos/{owner}/{repo}/statuses/{commit}":          {permission: "statuses", level: "write", answer: (*GitHub).createStatus},
	"POST /repos/{owner}/{repo}/check-runs":                 {permission: "checks", level: "write", answer: (*GitHub).createCheck},
	"PATCH /repos/{owner}/{repo}/check-runs/{check}":        {permission: "checks", level: "write", answer: (*GitHub).updateCheck},
	"GET /repos/{owner}/{repo}/commits/{commit}/check-runs": {permission: "checks", level: "read", answer: (*GitHub).listChecks},
	"GET /repos/{owner}/{repo}":                             {permission: "metadata", level: "read", answer: (*GitHub).getRepository},
	"GET /repos/{owner}/{repo}/git/commits/{commit}":        {permission: "contents", level: "read", answer: (*GitHub).getCommit},
	"GET /repos/{owner}/{repo}/branches":                    {permission: "contents", level: "read", answer: (*GitHub).listBranches},
	"GET /repos/{owner}/{repo}/tags":                        {permission: "contents", level: "read", answer: (*GitHub).listTags},
	"GET /repos/{owner}/{repo}/pulls":                       {permission: "pull_requests", level: "read", answer: (*GitHub).listPulls},
	"GET /repos/{owner}/{repo}/hooks":                       {permission: "repository_hooks", level: "read", answer: (*GitHub).listHooks},
	"GET /repos/{owner}/{repo}/hooks/{hook}/deliveries":     {permission: "repository_hooks", level: "read", answer: (*GitHub).listDeliveries},
	"POST /repos/{owner}/{repo}/hooks/{hook}/deliveries/{delivery}/attempts": {
		permission: "repository_hooks", level: "write", answer: (*GitHub).redeliver,
	},
}
