package server_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// password is everybody's.
const password = "correct horse battery"

// clock is a time that only moves when it is told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// pages is a rig with users, one of each role and named so, whose clock stands
// still and whose listener has the pages of PagesHandler.
type pages struct {
	*rig
	clock *clock
}

func newPages(t *testing.T, changes ...func(*ci.Config)) *pages {
	t.Helper()
	c := &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	p := &pages{clock: c, rig: newRigOver(t, storetest.MustOpenAt(t, t.TempDir()+"/docket.db", store.Options{Now: c.now}), changes...)}
	p.server = server.New(server.Options{Store: p.store, Config: p.config, Version: "test", Now: c.now, Pages: renderer()})
	p.server.SetPasswordWork(nil)
	p.url = p.mustListen(p.server.PagesHandler())
	for _, role := range []ci.Role{ci.Viewer, ci.Operator, ci.Admin} {
		p.mustAddUser(string(role), role)
	}
	return p
}

func (r *rig) mustAddUser(name string, role ci.Role) {
	r.t.Helper()
	if err := r.store.AddUser(r.t.Context(), name, role, server.HashCheaply(password), ci.By{Kind: ci.ByToken, Name: "test"}); err != nil {
		r.t.Fatal(err)
	}
}

// browser keeps a session's cookie, and follows no redirect. A real one would
// not send what is meant for https to a test's address.
type browser struct {
	rig    *rig
	base   string
	header http.Header
	cookie *http.Cookie
}

func (r *rig) browser(headers ...string) *browser {
	b := &browser{rig: r, base: r.url, header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		b.header.Set(headers[i], headers[i+1])
	}
	return b
}

func (b *browser) do(method, path string, form url.Values, headers ...string) answer {
	b.rig.t.Helper()
	req := mustRequest(b.rig.t, method, b.base+path, form.Encode())
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range b.header {
		req.Header[k] = v
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if b.cookie != nil {
		req.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.cookie.Value})
	}
	client := &http.Client{Transport: b.rig.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		b.rig.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.rig.t.Fatal(err)
	}
	for _, k := range res.Cookies() {
		if b.cookie = k; k.MaxAge < 0 {
			b.cookie = nil
		}
	}
	return answer{res.StatusCode, res.Header, body}
}

func (b *browser) get(path string, headers ...string) answer {
	b.rig.t.Helper()
	return b.do("GET", path, nil, headers...)
}

// post sends a form of name, value pairs.
func (b *browser) post(path string, fields ...string) answer {
	b.rig.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.do("POST", path, form)
}

func (b *browser) login(name, password string) answer {
	b.rig.t.Helper()
	return b.post("/login", "name", name, "password", password)
}

func (b *browser) mustLogin(name string) *browser {
	b.rig.t.Helper()
	if a := b.login(name, password); a.status != 303 || b.cookie == nil {
		b.rig.t.Fatalf("sign in as %s: %v", name, a)
	}
	return b
}

// who says who is signed in, as a page sees it.
func (b *browser) who() string {
	b.rig.t.Helper()
	return string(b.get("/page/any").body)
}

// wantGo checks that an answer sends a browser on with a GET of a path.
func wantGo(t *testing.T, a answer, path string) {
	t.Helper()
	if a.status != 303 || a.header.Get("Location") != path || !strings.Contains(a.header.Get("Cache-Control"), "no-store") {
		t.Errorf("answer %v to %q (%s), want 303 to %q", a, a.header.Get("Location"), a.header.Get("Cache-Control"), path)
	}
}
