package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"slices"
)

//go:embed templates/*.html assets
var embedded embed.FS

// Page is one of this package's page structs. All of them carry a Chrome.
type Page interface {
	// Parts names the page's live parts in the order in which they stand in it.
	// A page that is not live has only the banners.
	Parts() []string

	chrome() *Chrome
	template() string // file name without .html
}

// PartBanners is the live part that every page has.
const PartBanners = "banners"

// Renderer holds the parsed templates and the assets. It is safe for use by
// many goroutines.
type Renderer struct {
	version string
	pages   map[string]*template.Template
	assets  *assets
}

// New parses all templates and takes stock of the assets. It panics if a
// template or a live part is missing or does not parse: that is a fault of the
// build, and no page should be the one that finds it.
func New(version string) *Renderer { return newRenderer(embedded, version) }

func newRenderer(fsys fs.FS, version string) *Renderer {
	r := &Renderer{version: version, pages: map[string]*template.Template{}, assets: mustAssets(fsys)}
	base := template.Must(template.New("").Funcs(r.funcs()).
		ParseFS(fsys, "templates/layout.html", "templates/parts.html"))
	for _, p := range every() {
		t := template.Must(template.Must(base.Clone()).ParseFS(fsys, "templates/"+p.template()+".html"))
		r.pages[p.template()] = t
		for _, name := range append([]string{"layout", "main"}, liveNames(p)...) {
			if t.Lookup(name) == nil {
				panic(fmt.Sprintf("template %s.html does not define %q", p.template(), name))
			}
		}
		// Only executing finds a template that is used and not declared.
		if err := r.Render(io.Discard, p); err != nil {
			panic(err)
		}
	}
	return r
}

// every returns an empty one of each page.
func every() []Page {
	return []Page{&Overview{}, &ProjectPage{}, &RunPage{}, &DeliveriesPage{}, &DeliveryPage{}, &NotificationsPage{},
		&DecisionsPage{}, &SetupPage{}, &LoginPage{}, &LinkPage{}, &ErrorPage{}}
}

func liveNames(p Page) []string {
	var names []string
	for _, n := range p.Parts() {
		names = append(names, liveName(n))
	}
	return names
}

func liveName(part string) string { return "live:" + part }

// Render writes a whole page. On an error nothing has been written to w.
func (r *Renderer) Render(w io.Writer, page Page) error {
	b, err := r.execute(page, "layout")
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// Fragment returns the inside of one live part of a page, one of page.Parts,
// as an event stream sends it.
func (r *Renderer) Fragment(page Page, name string) ([]byte, error) {
	if !slices.Contains(page.Parts(), name) {
		return nil, fmt.Errorf("page %s has no live part %q", page.template(), name)
	}
	return r.execute(page, liveName(name))
}

func (r *Renderer) execute(page Page, name string) ([]byte, error) {
	t := r.pages[page.template()]
	c := page.chrome()
	c.Version = r.version
	switch page.(type) {
	case *LoginPage, *LinkPage:
		c.signingIn = true
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, page); err != nil {
		return nil, fmt.Errorf("render %s: %w", page.template(), err)
	}
	return b.Bytes(), nil
}

// Assets serves what AssetPath names, under AssetPrefix, for ever: the path
// of an asset changes with its content.
func (r *Renderer) Assets() http.Handler { return r.assets }

// AssetPath returns the path of an asset, as in "app.css" or "vendor/htmx.min.js".
// It panics for one that is not there.
func (r *Renderer) AssetPath(name string) string { return r.assets.path(name) }

// LogEvent returns the data of an EventLog for what LogCollector.Take gave of
// one step. Lines that the page has already are not shown twice, and a page
// that finds that it has missed some loads itself again.
func (r *Renderer) LogEvent(s LogStep) ([]byte, error) {
	var b bytes.Buffer
	if err := r.pages[(&RunPage{}).template()].ExecuteTemplate(&b, "log-event", s); err != nil {
		return nil, fmt.Errorf("render log: %w", err)
	}
	return b.Bytes(), nil
}
