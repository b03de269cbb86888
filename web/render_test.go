package web_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"docket/web"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	out    = flag.String("out", "", "also write every page and asset into this directory, to look at them")
)

// mustRender renders a page as a browser gets it.
func mustRender(t testing.TB, r *web.Renderer, p web.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Render(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func all() map[string]web.Page {
	m := pages(friendly())
	for name, p := range empty() {
		m[name] = p
	}
	for name, p := range pages(hostile()) {
		if name != "run-large" { // its words are those of the others, a thousand times
			m["hostile-"+name] = p
		}
	}
	return m
}

// Ensure that every page, full, empty and full of hostile words, is sound: no
// script or style of its own, no id twice, no control without a label, headings in order.
func TestPages(t *testing.T) {
	r := web.New("1.2.3")
	for _, name := range []string{"app.css", "app.js", "favicon.svg", "vendor/htmx.min.js", "vendor/htmx-sse.min.js"} {
		b, err := os.ReadFile(filepath.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, r.AssetPath(name), b)
	}
	for name, p := range all() {
		t.Run(name, func(t *testing.T) {
			b := mustRender(t, r, p)
			write(t, name+".html", b)
			checkSound(t, b, true)
			for _, part := range p.Parts() {
				f, err := r.Fragment(p, part)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(b, f) {
					t.Errorf("part %q is not what the page shows in its place", part)
				}
			}
		})
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if *out == "" {
		return
	}
	file := filepath.Join(*out, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkSound parses HTML as a browser does and holds it to the rules.
func checkSound(t *testing.T, b []byte, page bool) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := checker{t: t, ids: map[string]bool{}, labels: map[string]bool{}}
	c.walk(doc, false)
	for _, ref := range c.refs {
		if !c.ids[ref] {
			t.Errorf("there is no id %q, which something refers to", ref)
		}
	}
	for _, id := range c.controls {
		if !c.labels[id] {
			t.Errorf("the control %q has no label", id)
		}
	}
	if page && c.h1 != 1 {
		t.Errorf("%d h1, want one", c.h1)
	}
}

type checker struct {
	t        testing.TB
	ids      map[string]bool
	labels   map[string]bool
	controls []string
	refs     []string
	h1       int
	level    int
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func (c *checker) walk(n *html.Node, labelled bool) {
	if n.Type == html.ElementNode {
		c.element(n, labelled)
		labelled = labelled || n.Data == "label"
	}
	for k := n.FirstChild; k != nil; k = k.NextSibling {
		c.walk(k, labelled)
	}
}

func (c *checker) element(n *html.Node, labelled bool) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			c.t.Errorf("<%s> has the attribute %s=%q", n.Data, a.Key, a.Val)
		case a.Key == "id":
			if c.ids[a.Val] {
				c.t.Errorf("id %q stands twice", a.Val)
			}
			if strings.ContainsAny(a.Val, " \t\n\"<>") || a.Val == "" {
				c.t.Errorf("id %q", a.Val)
			}
			c.ids[a.Val] = true
		case a.Key == "href" || a.Key == "src" || a.Key == "action":
			if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "?") && !strings.HasPrefix(a.Val, "https://") {
				c.t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		case a.Key == "aria-labelledby" || a.Key == "aria-describedby" || a.Key == "data-copy":
			c.refs = append(c.refs, a.Val)
		}
	}
	id, _ := attr(n, "id")
	switch n.Data {
	case "script":
		src, _ := attr(n, "src")
		if !strings.HasPrefix(src, web.AssetPrefix) || n.FirstChild != nil {
			c.t.Errorf("a script that is not an asset: %q", src)
		}
	case "style", "iframe", "object", "embed", "base":
		c.t.Errorf("<%s>", n.Data)
	case "img":
		if alt, _ := attr(n, "alt"); alt == "" {
			c.t.Error("an image without words")
		}
	case "label":
		if to, ok := attr(n, "for"); ok {
			c.labels[to] = true
		}
	case "input", "select", "textarea":
		kind, _ := attr(n, "type")
		_, named := attr(n, "aria-label")
		if kind != "hidden" && !labelled && !named {
			c.controls = append(c.controls, id)
		}
	case "button":
		if _, ok := attr(n, "type"); !ok {
			c.t.Error("a button without a type")
		}
	case "h1", "h2", "h3", "h4":
		level := int(n.Data[1] - '0')
		if level == 1 {
			c.h1++
		}
		if level > c.level+1 {
			c.t.Errorf("<%s> comes after h%d", n.Data, c.level)
		}
		c.level = level
	}
}

// Ensure that the pages that people know by heart do not change unseen.
func TestGolden(t *testing.T) {
	r := web.New("1.2.3")
	for _, name := range []string{"overview", "run-failed"} {
		t.Run(name, func(t *testing.T) {
			got := regexp.MustCompile(`/assets/[0-9a-f]+/`).ReplaceAllString(string(mustRender(t, r, pages(friendly())[name])), "/assets/HASH/")
			file := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("other than %s (-want +got), write it anew with -update if that is right:\n%s", file, d)
			}
		})
	}
}

// Ensure that a template that is not there is found at the start.
func TestNewPanicsWithoutATemplate(t *testing.T) {
	for name, change := range web.BrokenTemplates() {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			web.NewRenderer(change, "")
		})
	}
}

// Ensure that a fragment that no page has is an error.
func TestFragmentUnknown(t *testing.T) {
	if _, err := web.New("").Fragment(&web.Overview{}, "nonsense"); err == nil {
		t.Error("no error")
	}
}

// Ensure that who may not act sees nothing to act with.
func TestViewerSeesNoForms(t *testing.T) {
	r := web.New("")
	p := runPage(friendly(), run(friendly(), 44, "running"))
	p.Cancel, p.Rerun, p.Approve = nil, nil, nil
	b := mustRender(t, r, p)
	for _, word := range []string{"/cancel", "/rerun", "/approve"} {
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("the page has %s", word)
		}
	}
}

// Ensure that the outside of a public run has neither inputs nor people.
func TestRedacted(t *testing.T) {
	w := friendly()
	w.actor, w.input = "secretperson", "secretinput"
	b := mustRender(t, web.New(""), pages(w)["run-public"])
	for _, word := range []string{w.actor, w.input} {
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("the page has %s", word)
		}
	}
}

// Ensure that a file's mistakes stand on the run's page as they are, with a
// caret under its column, and in a list as one line.
func TestRunPage_FaultyFile(t *testing.T) {
	r := faultyFile(friendly())
	b := mustRender(t, web.New(""), runPage(friendly(), r))
	if !bytes.Contains(b, []byte(">"+html.EscapeString(r.Reason)+"</pre>")) || bytes.Contains(b, []byte(`<p class="reason">.docket`)) {
		t.Errorf("the page lacks the block\n%s", r.Reason)
	}
	if row := web.NewRunRow(r); strings.Contains(row.Reason, "\n") || !strings.HasPrefix(row.Reason, ".docket.yml:3:5: ") {
		t.Errorf("the row says %q", row.Reason)
	}
}
