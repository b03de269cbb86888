package server

import (
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// principal is who asks, and what he may do.
type principal struct {
	by   ci.By
	role ci.Role
}

const principalKey = "principal"

func setPrincipal(c echo.Context, p principal) { c.Set(principalKey, p) }

// by returns who asks. It is only called behind a route that needs a role.
func by(c echo.Context) ci.By { return c.Get(principalKey).(principal).by }

// admit lets a request through to a route of the API, or says why not. Pages
// have pageAuth.
func (s *Server) admit(c echo.Context, r route) error {
	if r.need == "" || r.page {
		return nil
	}
	if r.public && s.isPublic(c) {
		return nil
	}
	p, err := s.authenticate(c)
	if err != nil {
		return err
	}
	if !p.role.Allows(r.need) {
		return ci.Errorf(ci.CodeForbidden, "the token %q is a %s's; this needs the role %s: `docket token create --name N --role %s` makes one",
			p.by.Name, p.role, r.need, r.need)
	}
	setPrincipal(c, p)
	return nil
}

// isPublic reports whether the project that a path names, or that of the run
// that it names, is open to all.
func (s *Server) isPublic(c echo.Context) bool {
	name := pathParam(c, "project")
	if name == "" {
		name, _, _ = ci.ParseRunID(pathParam(c, "run"))
	}
	p := s.config().Project(name)
	return p != nil && p.Public
}

// authenticate finds out who asks, from the Authorization header alone.
func (s *Server) authenticate(c echo.Context) (principal, error) {
	given := c.Request().Header.Values(echo.HeaderAuthorization)
	if len(given) == 0 {
		return principal{}, ci.Errorf(ci.CodeUnauthenticated, "this needs a token: send `Authorization: Bearer TOKEN`; `docket token create` makes one")
	}
	scheme, value, _ := strings.Cut(given[0], " ")
	value = strings.TrimSpace(value)
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || value == "" {
		return principal{}, ci.Errorf(ci.CodeUnauthenticated, "the Authorization header is not one `Bearer TOKEN`")
	}
	if admin := s.config().AdminToken; !admin.IsZero() && admin.Equal(value) {
		return principal{ci.By{Kind: ci.ByToken, Name: "admin"}, ci.Admin}, nil
	}
	t, err := s.store.Authenticate(value)
	if err != nil {
		return principal{}, err
	}
	return principal{ci.By{Kind: ci.ByToken, Name: t.Name}, t.Role}, nil
}
