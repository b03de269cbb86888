package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
	"docket/web"
)

// wantsPage reports whether an error is to be shown to a person: a browser
// asked for a path that is neither the API's nor a webhook's.
func wantsPage(r *http.Request) bool {
	for _, p := range []string{"/api/", "/hooks/", "/healthz", "/readyz", "/metrics", web.AssetPrefix} {
		if strings.HasPrefix(r.URL.Path, p) {
			return false
		}
	}
	return strings.Contains(r.Header.Get(echo.HeaderAccept), echo.MIMETextHTML)
}

// errorPage answers with an error as a page. It does without anything that may
// be what is broken.
func (s *Server) errorPage(c echo.Context, status int, e *ci.Error) error {
	pageHeaders(c)
	r := c.Request()
	back := backTo(r)
	p := &web.ErrorPage{
		Chrome: web.Chrome{Title: http.StatusText(status), Now: s.now(), Path: back},
		Status: status, Message: e.Message, ExistingRun: e.ExistingRun,
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.Back = back
	}
	if who, ok := s.signedIn(c); ok {
		p.User = &web.User{Name: who.by.Name, Role: who.role}
	}
	if status == http.StatusUnauthorized {
		p.SignIn = loginPath + "?next=" + url.QueryEscape(localPath(back, "/"))
	}
	return s.render(c, status, p)
}

// backTo is the page that a form was on: its path without what the form does.
func backTo(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return r.URL.RequestURI()
	}
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, "/notifications/"):
		return "/notifications"
	case strings.HasPrefix(path, "/runs/"), strings.HasPrefix(path, "/projects/"), strings.HasPrefix(path, "/deliveries/"):
		return path[:strings.LastIndexByte(path, '/')]
	}
	return path
}
