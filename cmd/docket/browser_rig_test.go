//go:build browser

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"docket/store/ci"
)

// violationBinding is what pages call when something in them breaks the policy.
const violationBinding = "docketTestViolation"

// watchPolicy runs in every document before anything else in it.
const watchPolicy = `document.addEventListener('securitypolicyviolation', e => ` + violationBinding +
	`([e.violatedDirective, e.blockedURI, e.sourceFile, e.sample].join(' ')))`

// browser is a real one that looks at a docket. When the test ends, nothing in
// any of its pages may have broken the content security policy, thrown an
// error or written one to the console.
type browser struct {
	t   *testing.T
	d   *daemon
	ctx context.Context

	mu      sync.Mutex
	faults  []string
	severed bool // see sever
}

func newBrowser(t *testing.T, d *daemon) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("these tests need chromium: %v; `make setup-test` installs it", err)
	}
	b := &browser{t: t, d: d}
	ctx, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(time.Minute),
	)
	t.Cleanup(stop)
	quiet := func(string, ...any) {} // of protocol events newer than the library
	b.ctx, stop = chromedp.NewContext(ctx, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet), chromedp.WithListener(b.notice))
	t.Cleanup(stop)
	t.Cleanup(b.end)
	// The browser's life is that of the first context that it is run with.
	if err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		if _, err := cdp.Call(ctx, tab, log.Enable, cdp.Empty{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, tab, runtime.AddBinding, runtime.AddBindingParams{Name: violationBinding}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy})
		return err
	})); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return b
}

// notice keeps what a page complains about.
func (b *browser) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var fault string
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		fault = "policy: " + e.Payload
	case *runtime.EventExceptionThrown:
		fault = "exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" && !b.severed {
			fault = "console: " + consoleText(e)
		}
	case *log.EventEntryAdded:
		// A page that is refused, or whose server is away, is no fault of the page.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			fault = "log: " + e.Entry.Text
		}
	}
	if fault != "" {
		b.faults = append(b.faults, fault)
	}
}

// sever says that the server will go away under a page, of which htmx writes to
// the console.
func (b *browser) sever() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.severed = true
}

func consoleText(e *runtime.EventConsoleAPICalled) string {
	var words []string
	for _, arg := range e.Args {
		words = append(words, string(arg.Value)+arg.Description)
	}
	return strings.Join(words, " ")
}

// end is what holds after every test.
func (b *browser) end() {
	b.t.Helper()
	if b.t.Failed() {
		b.t.Logf("the page was %s", b.sight())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("a page complained: %s", f)
	}
}

// sight is what the page shows, for a person who looks for a fault.
func (b *browser) sight() string {
	ctx, stop := context.WithTimeout(b.ctx, 2*time.Second)
	defer stop()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 2000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// do does something that must be possible soon.
func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *browser) address(path string) string { return "http://" + b.d.addresses[0] + path }

// open goes to a page and waits until it is there.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.address(path)))
}

// click clicks with the mouse on what a CSS selector finds first, when it can
// be seen.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.waitSeen(selector)
	at := eval[struct{ X, Y float64 }](b, fmt.Sprintf(`(() => {
		const el = document.querySelector(%s);
		el.scrollIntoView({ block: "center", behavior: "instant" });
		const box = el.getBoundingClientRect();
		return { X: box.x + box.width / 2, Y: box.y + box.height / 2 };
	})()`, quoted(selector)))
	b.do("click "+selector, chromedp.MouseClickXY(at.X, at.Y))
}

// waitSeen waits until what a selector finds can be seen.
func (b *browser) waitSeen(selector string) {
	b.t.Helper()
	b.wait(selector+" can be seen", fmt.Sprintf(`document.querySelector(%s)?.checkVisibility({ visibilityProperty: true })`, quoted(selector)))
}

// fill replaces what a field holds, by typing.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.waitSeen(selector)
	eval[any](b, fmt.Sprintf(`(el => { el.focus(); el.select(); })(document.querySelector(%s))`, quoted(selector)))
	b.press(kb.Delete + text)
}

// press presses keys, one after the other.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do("press keys", chromedp.KeyEvent(keys))
}

// wait waits until an expression is true in whatever page there is.
func (b *browser) wait(what, expression string) {
	b.t.Helper()
	eventually(b.t, what, func() bool {
		ctx, stop := context.WithTimeout(b.ctx, 5*time.Second)
		defer stop()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && ok // a page that is about to go has no say
	})
}

// waitAt waits until the browser is at a path.
func (b *browser) waitAt(path string) {
	b.t.Helper()
	b.wait("the browser is at "+path, `document.readyState === "complete" && location.pathname === `+quoted(path))
}

// waitText waits until what a selector finds shows a text.
func (b *browser) waitText(selector, text string) {
	b.t.Helper()
	b.wait(selector+" shows "+text, fmt.Sprintf(`(document.querySelector(%s)?.textContent ?? "").includes(%s)`, quoted(selector), quoted(text)))
}

// eval returns what an expression is, or what its promise becomes.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression[:min(len(expression), 200)], err)
	}
	return v
}

// quoted is a text as JavaScript.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// mark leaves something in the page that does not outlive it.
func (b *browser) mark() {
	b.t.Helper()
	eval[string](b, `window.marked = "still this one"`)
}

// mustBeMarked checks that the page was not loaded again since mark.
func (b *browser) mustBeMarked() {
	b.t.Helper()
	if !eval[bool](b, `window.marked === "still this one"`) {
		b.t.Error("the page was loaded again")
	}
}

// docket runs a command line of the binary against the server.
func (b *browser) docket(stdin string, args ...string) string {
	b.t.Helper()
	cmd := b.d.command(append(args, "-c", b.d.configPath())...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("docket %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// link returns the path of a link that signs in, once.
func (b *browser) link() string {
	b.t.Helper()
	u, err := url.Parse(b.docket("", "login-link"))
	if err != nil {
		b.t.Fatal(err)
	}
	return u.RequestURI()
}

// signIn signs in as the administrator.
func (b *browser) signIn() {
	b.t.Helper()
	b.open(b.link())
	b.click(`main form button[type=submit]`)
	b.waitAt("/")
}

// browse starts a docket and a browser that is signed in to it.
func browse(t *testing.T, hub *fakeGitHub, change func(d *daemon)) (*daemon, *browser) {
	t.Helper()
	d := newDaemon(t, hub, change)
	d.start()
	b := newBrowser(t, d)
	b.signIn()
	return d, b
}

// startByForm opens a project's form and sends it.
func (b *browser) startByForm(project string) {
	b.t.Helper()
	b.open("/projects/" + project)
	b.click("#start > summary")
	b.click("#start button[type=submit]")
}

// pullFromFork is the payload of a pull request that comes from a fork.
func (r *repository) pullFromFork(number int, title, head, commit string) []byte {
	r.t.Helper()
	return mustMarshal(r.t, obj{
		"action": "opened", "number": number,
		"pull_request": obj{
			"number": number, "title": title, "state": "open", "draft": false, "updated_at": "2026-01-02T03:04:05Z",
			"head": obj{"ref": head, "sha": commit, "repo": obj{"id": r.id + 1000, "full_name": "stranger/fork", "fork": true}},
			"base": obj{"ref": "main", "sha": commit, "repo": obj{"id": r.id, "full_name": r.fullName}},
		},
		"repository": obj{"id": r.id, "full_name": r.fullName, "default_branch": "main"},
		"sender":     obj{"login": "stranger"},
	})
}

// deliverPull delivers a pull request, which must be accepted.
func (d *daemon) deliverPull(id string, body []byte) {
	d.t.Helper()
	mustReply(d, d.deliver(delivery{event: ci.EventPullRequest, id: id, body: body}), http.StatusAccepted)
}

// mustReadAxe returns the source of axe-core.
func mustReadAxe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DOCKET_AXE")
	if path == "" {
		t.Fatal("DOCKET_AXE names no axe.min.js of axe-core; `make browser` fetches it and sets it")
	}
	return mustRead(t, path)
}
