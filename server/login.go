package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

const (
	loginPath = "/login"
	linkPath  = "/login/link"
)

// loginView is what the page for signing in shows.
type loginView struct {
	Name string    // as given before
	Next string    // where to go then, a local path
	Err  *ci.Error // why the last try failed, and how long to wait where that is why; or nil
}

// linkView is what the page shows that asks whether to sign in with a link.
type linkView struct {
	Token string // the link's value, for the form
	Link  ci.LoginLink
	Next  string
	Err   *ci.Error // why the link is no good, or nil; then there is neither
}

// GET /login
func (s *Server) loginPage(c echo.Context) error {
	next := localPath(c.QueryParam("next"), "/")
	if _, ok := s.signedIn(c); ok {
		return seeOther(c, next)
	}
	return s.showLogin(c, loginView{Next: next})
}

// POST /login: name, password, next.
func (s *Server) login(c echo.Context) error {
	form, err := postForm(c, maxLoginForm)
	if err != nil {
		return err
	}
	v := loginView{Name: strings.TrimSpace(form.Get("name")), Next: localPath(form.Get("next"), "/")}
	err = s.signIn(c, v.Name, form.Get("password"))
	switch ci.CodeOf(err) {
	case "":
		return seeOther(c, v.Next)
	case ci.CodeUnauthenticated, ci.CodeTooMany:
		v.Err = asError(err, c)
		return s.showLogin(c, v)
	}
	return err
}

// signIn compares a password and begins a session. CodeUnauthenticated, with
// one sentence whatever is wrong; CodeTooMany, with one that says how long to
// wait, after too many that were.
func (s *Server) signIn(c echo.Context, name, password string) error {
	wrong := ci.Errorf(ci.CodeUnauthenticated, "name or password is wrong")
	if len(password) > maxPassword {
		return wrong
	}
	remote := s.clientAddress(c.Request())
	attempt, wait := s.door.enter(name, remote, s.now())
	if wait > 0 {
		s.log.Warn("sign-in refused", keyReason, "too many attempts", keyRemote, remote)
		wait = (wait + time.Second - 1).Truncate(time.Second)
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(wait.Seconds())))
		return ci.Errorf(ci.CodeTooMany, "too many attempts from your address; try again in %s, or use a link from `docket login-link`", wait)
	}
	hash, ok, err := s.checkPassword(c.Request().Context(), name, password)
	if err != nil {
		s.door.forget(attempt, s.now())
		return err
	}
	if ok {
		err = s.beginSession(c, name, hash)
	}
	if !ok || ci.CodeOf(err) == ci.CodeUnauthenticated { // it was changed meanwhile
		// The name is left out: people type passwords there.
		s.log.Warn("sign-in refused", keyReason, "name or password is wrong", keyRemote, remote)
		return wrong
	}
	s.door.forget(attempt, s.now())
	if err != nil {
		return err
	}
	s.log.Info("signed in", keyUser, name, keyRemote, remote)
	return nil
}

// checkPassword reports whether a user has a password, and the hash that says
// so. It takes as long for a user that there is not.
func (s *Server) checkPassword(ctx context.Context, name, password string) (hash string, ok bool, err error) {
	_, hash, err = s.store.User(name)
	if err != nil && ci.CodeOf(err) != ci.CodeNotFound {
		return "", false, err
	}
	ok, err = s.passwords.matches(ctx, hash, password)
	return hash, ok, err
}

// GET /login/link?token=: what a mail program or a chat opens for a preview
// uses nothing up.
func (s *Server) linkPage(c echo.Context) error {
	v := linkView{Token: c.QueryParam("token"), Next: localPath(c.QueryParam("next"), "/")}
	link, err := s.store.LoginLink(v.Token)
	if err != nil {
		return s.noLink(c, v.Next, err)
	}
	v.Link = link
	return s.showLink(c, v)
}

// noLink shows why a link is no good.
func (s *Server) noLink(c echo.Context, next string, err error) error {
	if ci.CodeOf(err) != ci.CodeUnauthenticated {
		return err
	}
	return s.showLink(c, linkView{Next: next, Err: asError(err, c)})
}

// POST /login/link: token, next.
func (s *Server) loginByLink(c echo.Context) error {
	form, err := postForm(c, maxLoginForm)
	if err != nil {
		return err
	}
	next, remote := localPath(form.Get("next"), "/"), s.clientAddress(c.Request())
	token, link, err := s.store.UseLoginLink(c.Request().Context(), form.Get("token"), remote)
	if err != nil {
		return s.noLink(c, next, err)
	}
	if err := s.replaceSession(c, token); err != nil {
		return err
	}
	s.log.Info("signed in with a link", keyUser, link.User, keyRemote, remote)
	return seeOther(c, next)
}

// POST /logout: next.
func (s *Server) logout(c echo.Context) error {
	form, err := postForm(c, maxLoginForm)
	if err != nil {
		return err
	}
	if err := s.endSession(c); err != nil {
		return err
	}
	return seeOther(c, localPath(form.Get("next"), loginPath))
}

// POST /logout-everywhere: next.
func (s *Server) logoutEverywhere(c echo.Context) error {
	form, err := postForm(c, maxLoginForm)
	if err != nil {
		return err
	}
	if _, err := s.store.EndSessionsOf(c.Request().Context(), by(c).Name, by(c)); err != nil {
		return err
	}
	s.clearSession(c)
	return seeOther(c, localPath(form.Get("next"), loginPath))
}

// privatePage sets the headers of a page that is kept nowhere and whose
// address is told to nobody, and returns its status.
func privatePage(c echo.Context, e *ci.Error) (status int) {
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	if e == nil {
		return http.StatusOK
	}
	return statusOf(e.Code)
}

// seeOther ends a form: the browser goes on with a GET of path, a local one.
func seeOther(c echo.Context, path string) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Redirect(http.StatusSeeOther, path)
}

// localPath returns a path of this server that a request named, and fallback
// for anything that a browser could take for another server's, or that would
// only lead back to signing in.
func localPath(next, fallback string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, "\\") || len(next) > 2000 {
		return fallback
	}
	u, err := url.Parse(next) // which takes no control characters: browsers pass over some
	if err != nil || u.Scheme != "" || u.Host != "" {
		return fallback
	}
	for _, p := range []string{loginPath, "/logout"} {
		if u.Path == p || strings.HasPrefix(u.Path, p+"/") || strings.HasPrefix(u.Path, p+"-") {
			return fallback
		}
	}
	return u.String()
}
