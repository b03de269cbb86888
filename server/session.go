package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// cookie returns the session's cookie without a value. Behind https its name
// lets browsers take it from this host over https alone.
func (s *Server) cookie(c echo.Context) *http.Cookie {
	k := &http.Cookie{Name: "docket_session", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: c.IsTLS()}
	if strings.HasPrefix(strings.ToLower(s.config().PublicURL), "https://") {
		k.Name, k.Secure = "__Host-docket_session", true
	}
	return k
}

// sessionToken returns the token that a browser sent, or "".
func (s *Server) sessionToken(c echo.Context) string {
	k, err := c.Cookie(s.cookie(c).Name)
	if err != nil {
		return ""
	}
	return k.Value
}

// setSession gives the browser a session's token.
func (s *Server) setSession(c echo.Context, token string) {
	k := s.cookie(c)
	k.Value, k.MaxAge = token, int(store.SessionLife.Seconds())
	c.SetCookie(k)
}

// signedIn returns who is signed in, on page routes.
func (s *Server) signedIn(c echo.Context) (principal, bool) {
	p, err := s.whoIs(c)
	return p, err == nil
}

// whoIs is signedIn with the reason why nobody is: CodeUnauthenticated, or
// what is wrong with the store.
func (s *Server) whoIs(c echo.Context) (principal, error) {
	if p, ok := c.Get(principalKey).(principal); ok {
		return p, nil
	}
	token := s.sessionToken(c)
	if token == "" {
		return principal{}, ci.Errorf(ci.CodeUnauthenticated, "you are not signed in; sign in at /login")
	}
	se, renewed, err := s.store.Session(c.Request().Context(), token, s.clientAddress(c.Request()))
	if err != nil {
		return principal{}, err
	}
	if renewed {
		s.setSession(c, token)
	}
	p := principal{ci.By{Kind: ci.ByUser, Name: se.User}, se.Role}
	setPrincipal(c, p)
	return p, nil
}

// beginSession signs the browser in as a user whose password hash was found to
// match, in place of whoever was signed in with it.
func (s *Server) beginSession(c echo.Context, user, passwordHash string) error {
	ctx := c.Request().Context()
	token, err := s.store.CreateSession(ctx, store.NewSession{User: user, Address: s.clientAddress(c.Request()), PasswordHash: passwordHash})
	if err != nil {
		return err
	}
	return s.replaceSession(c, token)
}

// replaceSession ends the session that the browser had, and gives it another.
func (s *Server) replaceSession(c echo.Context, token string) error {
	if old := s.sessionToken(c); old != "" {
		if err := s.store.EndSession(c.Request().Context(), old); err != nil {
			return err
		}
	}
	s.setSession(c, token)
	return nil
}

// endSession signs the browser out.
func (s *Server) endSession(c echo.Context) error {
	if token := s.sessionToken(c); token != "" {
		if err := s.store.EndSession(c.Request().Context(), token); err != nil {
			return err
		}
	}
	s.clearSession(c)
	return nil
}

func (s *Server) clearSession(c echo.Context) {
	k := s.cookie(c)
	k.MaxAge = -1
	c.SetCookie(k)
}

// pageAuth lets through to a page who is signed in with a role; "" lets
// everybody. Others are sent to sign in and come back. A request that could
// change something must come from a page of this server. Tokens of the API are
// of no use here, as sessions are of none there.
func (s *Server) pageAuth(need ci.Role) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := s.checkOrigin(c.Request()); err != nil {
				return err
			}
			p, err := s.whoIs(c)
			switch {
			case need == "" && (err == nil || ci.CodeOf(err) == ci.CodeUnauthenticated):
				return next(c)
			case ci.CodeOf(err) == ci.CodeUnauthenticated && opensPage(c.Request()):
				c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
				return c.Redirect(http.StatusSeeOther, loginPath+"?next="+url.QueryEscape(c.Request().URL.RequestURI()))
			case err != nil:
				return err
			case !p.role.Allows(need):
				return ci.Errorf(ci.CodeForbidden, "you are signed in as %q, whose role is %s; this needs the role %s: ask whoever runs docket for it", p.by.Name, p.role, need)
			}
			return next(c)
		}
	}
}

// opensPage reports whether a person opens a page with this request: a page's
// stream of changes, or a form, cannot follow to the sign-in.
func opensPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !strings.Contains(r.Header.Get(echo.HeaderAccept), eventStream)
}

// checkOrigin refuses what another site makes a browser send: CodeForbidden.
func (s *Server) checkOrigin(r *http.Request) error {
	protection := http.NewCrossOriginProtection()
	// A proxy in front may send another Host than the browser did.
	if own := originOf(s.config().PublicURL); own != "" {
		if err := protection.AddTrustedOrigin(own); err != nil {
			return err
		}
	}
	if err := protection.Check(r); err != nil {
		return ci.Wrap(ci.CodeForbidden, err, "this request came from another site, so nothing was done; open docket's own page and try again there")
	}
	return nil
}

// originOf returns the origin of an address as browsers write it, or "".
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for s, port := range map[string]string{"http": ":80", "https": ":443"} {
		if scheme == s {
			host = strings.TrimSuffix(host, port)
		}
	}
	return scheme + "://" + host
}
