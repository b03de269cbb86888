package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

func TestLogin(t *testing.T) {
	p := newPages(t)
	b := p.browser()
	if a := b.get("/login"); a.status != 200 || !strings.Contains(string(a.body), "docket login-link") || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page: %v", a)
	}
	wantGo(t, b.post("/login", "name", " operator ", "password", password, "next", "/runs/api-1?x=1#step"), "/runs/api-1?x=1#step")
	if got := b.who(); got != "user operator operator" {
		t.Errorf("signed in as %q", got)
	}
	wantGo(t, b.get("/login?next=/runs/api-1"), "/runs/api-1")
	wantGo(t, p.browser().login("viewer", password), "/")
	wantGo(t, p.browser().post("/login", "name", "viewer", "password", password, "next", "https://evil.example/"), "/")

	first := b.cookie.Value
	b.mustLogin("admin")
	b.cookie.Value, first = first, b.cookie.Value
	if got := b.who(); got != "nobody" {
		t.Errorf("the session that another took the place of: %q", got)
	}
	b.cookie.Value = first
	if got := b.who(); got != "user admin admin" {
		t.Errorf("signed in as %q", got)
	}
}

// nameField is what the page for signing in repeats of the name.
var nameField = regexp.MustCompile(`name="name" value="[^"]*"`)

// Ensure that nothing in an answer tells whether the name, the password or
// both were wrong, and that the work is the same for all.
func TestLogin_WrongIsWrong(t *testing.T) {
	p := newPages(t)
	var mu sync.Mutex
	var work []server.PasswordWork
	p.server.SetPasswordWork(func(w server.PasswordWork) {
		mu.Lock()
		defer mu.Unlock()
		work = append(work, w)
	})
	var want string
	for i, try := range []struct{ name, password string }{
		{"viewer", "correct horse batterx"}, {"viewer", password + " "}, {"viewer", strings.ToUpper(password)}, {"Viewer", password},
		{"stranger", password}, {"", password}, {"viewer", ""}, {"a\x00b", password}, {strings.Repeat("x", 5000), password},
	} {
		b := p.browser()
		a := b.login(try.name, try.password)
		// What was typed as the name is shown again, and nothing else differs.
		got := nameField.ReplaceAllString(a.String(), "")
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("%.20q: %v, want %v", try, got, want)
		}
		if a.status != 401 || !strings.Contains(want, "name or password is wrong") || b.cookie != nil {
			t.Errorf("%.20q: %v, cookie %v", try, a, b.cookie)
		}
		if len(work) != i+1 || work[i] != (server.PasswordWork{Memory: 64, Passes: 1, Lanes: 1, Password: try.password}) {
			t.Errorf("%.20q: %d times work, %+v", try, len(work), work[len(work)-1])
		}
	}
	if a := p.browser().login("viewer", strings.Repeat("x", 1025)); nameField.ReplaceAllString(a.String(), "") != want {
		t.Errorf("a password that can be nobody's: %v", a)
	}
	if strings.Contains(p.log.String(), "correct horse") {
		t.Errorf("a password is in the log: %s", p.log)
	}
}

func TestLogin_FormsThatAreNone(t *testing.T) {
	p := newPages(t)
	for name, tt := range map[string]struct {
		contentType, body string
		want              int
	}{
		"another type": {"application/json", `{"name":"viewer"}`, 415},
		"no type":      {"", "name=viewer", 415},
		"bad encoding": {"application/x-www-form-urlencoded", "name=%zz", 400},
		"too large":    {"application/x-www-form-urlencoded", "name=" + strings.Repeat("x", 17<<10), 413},
	} {
		for _, path := range []string{"/login", "/login/link", "/logout"} {
			req := mustRequest(t, "POST", p.url+path, tt.body)
			req.Header.Set("Content-Type", tt.contentType)
			if a := p.do(req); a.status != tt.want {
				t.Errorf("%s to %s: %v", name, path, a)
			}
		}
	}
	// What is in the address is no field: it would be in logs and histories.
	if a := p.browser().do("POST", "/login?name=viewer&password="+url.QueryEscape(password), url.Values{}); a.status != 401 {
		t.Errorf("a password in the address: %v", a)
	}
}

// from is a browser of an address, behind a proxy on this machine.
func (p *pages) from(address string) *browser { return p.browser("X-Forwarded-For", address) }

// Ensure that guesses at an account from one address are limited, that the
// account's owner gets in from another all the while, and that the limit ends.
func TestLogin_GuessesAreLimited(t *testing.T) {
	p := newPages(t)
	guess := func(address, name, password string) answer { return p.from(address).login(name, password) }
	for i := range server.AccountBurst {
		if a := guess("192.0.2.1", "viewer", "wrong"); a.status != 401 {
			t.Fatalf("guess %d: %v", i, a)
		}
	}
	a := guess("192.0.2.1", "viewer", password)
	if a.status != 429 || !strings.Contains(string(a.body), "too many attempts from your address") || a.header.Get("Retry-After") != strconv.Itoa(int(server.AccountEvery.Seconds())) {
		t.Fatalf("one too many: %v, Retry-After %q", a, a.header.Get("Retry-After"))
	}
	if a := guess("192.0.2.2", "viewer", password); a.status != 303 {
		t.Errorf("the owner from another address: %v", a)
	}
	for range server.AddressBurst { // what is refused is no guess
		guess("192.0.2.1", "viewer", "wrong")
	}
	if a := guess("192.0.2.1", "operator", password); a.status != 303 {
		t.Errorf("somebody else at the address of the guesses: %v", a)
	}
	p.clock.add(server.AccountEvery - time.Millisecond)
	if a := guess("192.0.2.1", "viewer", password); a.status != 429 || a.header.Get("Retry-After") != "1" {
		t.Errorf("a moment too early: %v", a)
	}
	p.clock.add(time.Millisecond)
	if a := guess("192.0.2.1", "viewer", password); a.status != 303 {
		t.Errorf("after the wait: %v", a)
	}
}

// Ensure that an address is limited however many names it tries, and that its
// IPv6 network counts as one.
func TestLogin_AnAddressIsLimited(t *testing.T) {
	p := newPages(t)
	for i := range server.AddressBurst {
		if a := p.from("2001:db8::"+strconv.Itoa(i)).login("name-"+strconv.Itoa(i), "wrong"); a.status != 401 {
			t.Fatalf("guess %d: %v", i, a)
		}
	}
	if a := p.from("2001:db8::ffff").login("viewer", password); a.status != 429 {
		t.Errorf("one too many: %v", a)
	}
	if a := p.from("2001:db8:0:1::1").login("viewer", password); a.status != 303 {
		t.Errorf("another network: %v", a)
	}
	p.clock.add(server.AddressEvery)
	if a := p.from("2001:db8::ffff").login("viewer", password); a.status != 303 {
		t.Errorf("after the wait: %v", a)
	}
}

// Ensure that however many addresses guess at an account, a new one gets in.
func TestLogin_NobodyLocksAnAccount(t *testing.T) {
	p := newPages(t)
	for i := range 20 {
		for range server.AccountBurst + 1 {
			p.from("192.0.2."+strconv.Itoa(i)).login("viewer", "wrong")
		}
	}
	if a := p.from("198.51.100.1").login("viewer", password); a.status != 303 {
		t.Errorf("the owner: %v", a)
	}
}

// Ensure that signing in does not count, however often it is done.
func TestLogin_SuccessIsNotAGuess(t *testing.T) {
	p := newPages(t)
	for i := range server.AddressBurst + 1 {
		if a := p.from("192.0.2.1").login("viewer", password); a.status != 303 {
			t.Fatalf("sign-in %d: %v", i, a)
		}
	}
}

// Ensure that hashes are computed a few at a time, that a bounded number
// waits, and that who comes then is told to try again.
func TestLogin_WorkIsBounded(t *testing.T) {
	p := newPages(t)
	var mu sync.Mutex
	running, most := 0, 0
	started, release := make(chan struct{}, server.Workers+server.Waiters), make(chan struct{})
	p.server.SetPasswordWork(func(server.PasswordWork) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		started <- struct{}{}
		<-release
		mu.Lock()
		running--
		mu.Unlock()
	})
	var in sync.WaitGroup
	codes := make(chan int, server.Workers+server.Waiters+1)
	for i := range server.Workers + server.Waiters + 1 {
		in.Go(func() { codes <- p.from("192.0.2."+strconv.Itoa(i)).login("viewer", password).status })
	}
	for range server.Workers {
		<-started
	}
	if code := <-codes; code != 503 {
		t.Errorf("one too many: %d", code)
	}
	close(release)
	in.Wait()
	close(codes)
	for code := range codes {
		if code != 303 {
			t.Errorf("one who waited: %d", code)
		}
	}
	if most != server.Workers {
		t.Errorf("%d hashes at once, want %d", most, server.Workers)
	}
}

// Ensure that what another site makes a browser send does nothing.
func TestPages_CrossSiteRequestsAreRefused(t *testing.T) {
	p := newPages(t)
	host := strings.TrimPrefix(p.url, "http://")
	for name, tt := range map[string]struct {
		headers []string
		refused bool
	}{
		"another site":            {[]string{"Sec-Fetch-Site", "cross-site"}, true},
		"a sister site":           {[]string{"Sec-Fetch-Site", "same-site"}, true},
		"another origin":          {[]string{"Origin", "https://evil.example"}, true},
		"no origin":               {[]string{"Origin", "null"}, true},
		"the public name as http": {[]string{"Origin", "http://ci.example.org"}, true},
		"the same origin":         {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + host}, false},
		"typed by hand":           {[]string{"Sec-Fetch-Site", "none"}, false},
		"an old browser":          {[]string{"Origin", "http://" + host}, false},
		"through the proxy":       {[]string{"Origin", "https://ci.example.org"}, false},
		"no browser":              {nil, false},
	} {
		for path, form := range map[string]url.Values{
			"/login":             {"name": {"viewer"}, "password": {password}},
			"/login/link":        {"token": {"x"}},
			"/logout":            {},
			"/logout-everywhere": {},
			"/page/viewer":       {},
		} {
			b := p.browser(tt.headers...)
			b.cookie = p.browser().mustLogin("viewer").cookie
			a := b.do("POST", path, form)
			if (a.status == 403) != tt.refused {
				t.Errorf("%s to %s: %v", name, path, a)
			}
			if a := b.get("/page/any"); a.status != 200 {
				t.Errorf("%s opens a page: %v", name, a)
			}
			if tt.refused && b.who() != "user viewer viewer" {
				t.Errorf("%s to %s: signed out", name, path)
			}
		}
	}
}

// Ensure that where the form sends people is on this server, whatever it says.
func TestLocalPath(t *testing.T) {
	base, err := url.Parse("https://ci.example.org/login")
	if err != nil {
		t.Fatal(err)
	}
	for next, want := range map[string]string{
		"/": "/", "/runs/api-1?a=b&c=%2F#test-120": "/runs/api-1?a=b&c=%2F#test-120", "/deliveries/github/-/a%2Fb%3F": "/deliveries/github/-/a%2Fb%3F",
		"/a//b": "/a//b", "/loginx": "/loginx", "/ü": "/%C3%BC",
		"": "/", "runs": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "https://evil.example": "/",
		"https:evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/\n/evil.example": "/", "\t//evil.example": "/", " //evil.example": "/",
		"/x\r\nSet-Cookie: a=b": "/", "/%zz": "/", "/login": "/", "/login?next=/": "/", "/login/link?token=x": "/", "/logout": "/", "/logout-everywhere": "/",
		"/" + strings.Repeat("x", 2000): "/",
	} {
		got := server.LocalPath(next)
		if got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
		if u, err := base.Parse(got); err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			t.Errorf("%q leads to %v, %v", next, u, err)
		}
	}
}

// Ensure that nobody but the browser, and the browser to nobody else, sends the
// session's cookie.
func TestSessionCookie(t *testing.T) {
	public := func(url string) func(*ci.Config) { return func(c *ci.Config) { c.PublicURL = url } }
	for name, tt := range map[string]struct {
		public string
		tls    bool
		want   string
		secure bool
	}{
		"public over https": {"https://ci.example.org", false, "__Host-docket_session", true},
		"public over HTTPS": {"HTTPS://ci.example.org", false, "__Host-docket_session", true},
		"public over http":  {"http://ci.example.org", false, "docket_session", false},
		"not public":        {"", false, "docket_session", false},
		"not public, TLS":   {"", true, "docket_session", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPages(t, public(tt.public))
			b := p.browser()
			if tt.tls {
				srv := httptest.NewTLSServer(p.server.PagesHandler())
				t.Cleanup(srv.Close)
				b.base = srv.URL
				p.client.Transport = srv.Client().Transport
			}
			b.mustLogin("viewer")
			k := b.cookie
			if k.Name != tt.want || k.Secure != tt.secure || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || k.MaxAge != 30*24*3600 || len(k.Value) < 43 {
				t.Errorf("the cookie: %+v", k)
			}
			if got := b.who(); got != "user viewer viewer" {
				t.Errorf("signed in as %q", got)
			}
			a := b.post("/logout")
			if k := (&http.Response{Header: a.header}).Cookies()[0]; k.Name != tt.want || k.Value != "" || k.MaxAge >= 0 || k.Path != "/" || k.Secure != tt.secure {
				t.Errorf("the cookie's end: %+v", k)
			}
		})
	}
}

// Ensure that the browser keeps its cookie as long as the session is used.
func TestSessionCookie_IsRenewed(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("viewer")
	if a := b.get("/page/viewer"); a.header.Get("Set-Cookie") != "" {
		t.Errorf("renewed at once: %v", a)
	}
	for range 3 {
		p.clock.add(store.SessionLife - time.Minute)
		if a := b.get("/page/viewer"); a.status != 200 || !strings.Contains(a.header.Get("Set-Cookie"), b.cookie.Value) || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=2592000") {
			t.Fatalf("not renewed: %v, %q", a, a.header.Get("Set-Cookie"))
		}
	}
	p.clock.add(store.SessionLife)
	wantGo(t, b.get("/page/viewer"), "/login?next=%2Fpage%2Fviewer")
}

func TestLogout(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("viewer")
	old := *b.cookie
	wantGo(t, b.post("/logout"), "/login")
	if b.cookie != nil {
		t.Error("the browser keeps its cookie")
	}
	b.cookie = &old
	if got := b.who(); got != "nobody" {
		t.Errorf("the session goes on as %q", got)
	}
	wantGo(t, p.browser().post("/logout", "next", "/"), "/")

	one, two, other := p.browser().mustLogin("viewer"), p.browser().mustLogin("viewer"), p.browser().mustLogin("admin")
	wantGo(t, one.post("/logout-everywhere", "next", "//evil.example"), "/login")
	if one.cookie != nil || two.who() != "nobody" || other.who() != "user admin admin" {
		t.Errorf("after signing out everywhere: %v, %s, %s", one.cookie, two.who(), other.who())
	}
	list, _, err := p.store.Decisions("", store.Page{})
	if err != nil || list[0].Kind != ci.DecisionSignedOut || list[0].By != (ci.By{Kind: ci.ByUser, Name: "viewer"}) {
		t.Errorf("the decision: %+v, %v", list[0], err)
	}
}

// Ensure that who changes is signed out at once.
func TestSessionEndsWithItsUser(t *testing.T) {
	p := newPages(t)
	b := p.browser().mustLogin("operator")
	if a := p.call(ci.Admin, "PUT", "/users/operator/role", `{"role":"viewer"}`); a.status != 204 {
		t.Fatalf("role: %v", a)
	}
	if got := b.who(); got != "nobody" {
		t.Errorf("after another role: %q", got)
	}
	if got := b.mustLogin("operator").who(); got != "user operator viewer" {
		t.Errorf("signed in again: %q", got)
	}
	if a := p.call(ci.Admin, "DELETE", "/users/operator", ""); a.status != 204 {
		t.Fatalf("remove: %v", a)
	}
	if got := b.who(); got != "nobody" {
		t.Errorf("after the removal: %q", got)
	}
}
