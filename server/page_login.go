package server

import (
	"github.com/labstack/echo/v4"

	"docket/web"
)

// showLogin answers with the page for signing in.
func (s *Server) showLogin(c echo.Context, v loginView) error {
	status := privatePage(c, v.Err)
	p := &web.LoginPage{Chrome: web.Chrome{Title: "Sign in", Now: s.now()}, Name: v.Name, Next: v.Next}
	if v.Err != nil {
		p.Error = v.Err.Message // with how long to wait, where that is why
	}
	return s.render(c, status, p)
}

// showLink answers with the page that asks whether to sign in with a link, or
// says why it is no good.
func (s *Server) showLink(c echo.Context, v linkView) error {
	status := privatePage(c, v.Err)
	if v.Err != nil {
		return s.render(c, status, &web.ErrorPage{
			Chrome: web.Chrome{Title: "Sign in", Now: s.now()},
			Status: status, Message: v.Err.Message, SignIn: loginPath,
		})
	}
	return s.render(c, status, &web.LinkPage{
		Chrome: web.Chrome{Title: "Sign in", Now: s.now()},
		Action: linkPath, Token: v.Token, Name: v.Link.User, Role: v.Link.Role, Expires: v.Link.ExpiresAt, Next: v.Next,
	})
}
