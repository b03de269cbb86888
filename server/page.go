package server

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
	"docket/web"
)

// pagePolicy is the content security policy of every page: what a page needs
// comes from this server, and nothing in it is inline.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pageHeaders sets what holds for every answer of a page.
func pageHeaders(c echo.Context) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, pagePolicy)
	h.Set(echo.HeaderXFrameOptions, "DENY")
	h.Set(echo.HeaderReferrerPolicy, "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set(echo.HeaderVary, echo.HeaderAccept) // the same path is the page's stream
}

// visit is one look at a page.
type visit struct {
	c    echo.Context
	who  *principal // nil: nobody is signed in
	now  time.Time
	path string // the page's own, with its query
	keys formKeys
	live bool // it is for a stream, which brings the log by itself

	// settled is set by whoever fills the page: nothing in it will change.
	settled bool
}

// fill makes a page from the store. It keeps nothing of it open.
type fill func(*visit) (web.Page, error)

func (s *Server) visit(c echo.Context) *visit {
	v := &visit{c: c, now: s.now(), path: c.Request().URL.RequestURI(), keys: formKeys{}}
	if p, ok := s.signedIn(c); ok {
		v.who = &p
	}
	return v
}

// may reports whether who looks has a role.
func (v *visit) may(need ci.Role) bool { return v.who != nil && v.who.role.Allows(need) }

// action is a form that does something, or nil where it would be refused.
func (v *visit) action(name string) *web.RunAction {
	if !v.may(ci.Operator) {
		return nil
	}
	return &web.RunAction{Key: v.keys.of(name)}
}

// formKeys are the idempotency keys of the forms in a page. One that is filled
// again for a stream keeps them.
type formKeys map[string]string

func (k formKeys) of(form string) string {
	if k[form] == "" {
		k[form] = rand.Text()
	}
	return k[form]
}

// show answers with a page, or where that is asked for with its stream.
func (s *Server) show(c echo.Context, fill fill) error {
	if wantsStream(c.Request()) {
		return s.streamPage(c, fill, nil)
	}
	page, err := fill(s.visit(c))
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, page)
}

// render writes a page. It is whole before the first byte leaves.
func (s *Server) render(c echo.Context, status int, page web.Page) error {
	var b strings.Builder
	if err := s.pages.Render(&b, page); err != nil {
		return err
	}
	return c.HTML(status, b.String())
}

// chrome is what the page has around its own matter. live says that it is one
// that changes.
func (s *Server) chrome(v *visit, title string, section web.Section, live bool) (web.Chrome, error) {
	ch := web.Chrome{Title: title, Section: section, Now: v.now, Path: v.path}
	if live {
		ch.Stream = v.path
	}
	if v.who == nil {
		return ch, nil
	}
	ch.User = &web.User{Name: v.who.by.Name, Role: v.who.role}
	var err error
	if ch.Banners, err = s.banners(v.now); err != nil {
		return ch, err
	}
	paused, err := s.pauseBanners(v)
	ch.Banners = append(paused, ch.Banners...)
	return ch, err
}

// refusedLately is how long a refusal is worth a banner.
const refusedLately = 24 * time.Hour

// banners say what needs a person.
func (s *Server) banners(now time.Time) ([]web.Banner, error) {
	var list []web.Banner
	if err := s.store.Health(); err != nil {
		list = append(list, web.Banner{Kind: web.BannerStore, Detail: ci.MessageOf(err)})
	}
	if need := s.config().Limits.FreeSpace; need > 0 {
		if free, err := freeSpace(s.store.Path()); err == nil && free < need {
			list = append(list, web.Banner{Kind: web.BannerDisk, Detail: fmt.Sprintf("%d MiB are free, and limits.free_space asks for %d.", free>>20, need>>20)})
		}
	}
	if s.backups != nil {
		if why := s.backups().Failed; why != "" {
			list = append(list, web.Banner{Kind: web.BannerBackup, Detail: why + "."})
		}
	}
	needs, err := s.store.Attention()
	if err != nil {
		return nil, err
	}
	if needs.Held > 0 {
		list = append(list, web.Banner{Kind: web.BannerHeld, Count: needs.Held})
	}
	if needs.Dead > 0 {
		list = append(list, web.Banner{Kind: web.BannerDead, Count: needs.Dead})
	}
	refused := 0
	for _, r := range s.refusals.last(keptRefusals) {
		// What knocks at an address that nobody was given is no news.
		if r.Integration != "" && r.Reason != refusedMethod && now.Sub(r.At.Time) < refusedLately {
			refused++
		}
	}
	if refused > 0 {
		list = append(list, web.Banner{Kind: web.BannerRefused, Count: refused})
	}
	return list, nil
}

// baseURL is where a provider and people reach this server: as configured,
// else as this request did.
func (s *Server) baseURL(c echo.Context) (base string, configured bool) {
	if u := s.config().PublicURL; u != "" {
		return u, true
	}
	return c.Scheme() + "://" + c.Request().Host, false
}

// pager makes the links of a list's page from where the next one begins.
func pager(path string, q url.Values, cursor, next string) (newest, older string) {
	if cursor != "" {
		newest = withQuery(path, q)
	}
	if next != "" {
		q = cloneValues(q)
		q.Set("cursor", next)
		older = withQuery(path, q)
	}
	return newest, older
}

// withQuery is a path with the parameters that are set.
func withQuery(path string, q url.Values) string {
	q = cloneValues(q)
	for k, v := range q {
		if len(v) == 0 || v[0] == "" {
			q.Del(k)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func cloneValues(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = slices.Clone(v)
	}
	return out
}

func runPath(id string) string       { return "/runs/" + url.PathEscape(id) }
func projectPath(name string) string { return "/projects/" + url.PathEscape(name) }

// assets answers with what the pages name, for ever.
func (s *Server) assets(c echo.Context) error {
	c.Response().Header().Del(echo.HeaderVary)
	s.pages.Assets().ServeHTTP(assetWriter{c.Response()}, c.Request())
	return nil
}

// assetWriter keeps an answer that is none from being kept for ever.
type assetWriter struct{ *echo.Response }

func (w assetWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.Header().Set(echo.HeaderCacheControl, "no-store")
	}
	w.Response.WriteHeader(status)
}
