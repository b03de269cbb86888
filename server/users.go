package server

import (
	"net"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// GET /users
func (s *Server) listUsers(c echo.Context) error {
	list, err := s.store.Users()
	if err != nil {
		return err
	}
	return listing(c, "users", list, "")
}

// newUser is the request for a user.
type newUser struct {
	Name     string  `json:"name"`
	Role     ci.Role `json:"role"`
	Password string  `json:"password"`
}

// POST /users
func (s *Server) createUser(c echo.Context) error {
	var n newUser
	if err := decode(c, &n); err != nil {
		return err
	}
	ctx := c.Request().Context()
	hash, err := s.passwords.hash(ctx, n.Password)
	if err != nil {
		return err
	}
	if err := s.store.AddUser(ctx, n.Name, n.Role, hash, by(c)); err != nil {
		return err
	}
	u, _, err := s.store.User(n.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, u)
}

// DELETE /users/{name}
func (s *Server) removeUser(c echo.Context) error {
	if err := s.store.RemoveUser(c.Request().Context(), pathParam(c, "user"), by(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// PUT /users/{name}/password
func (s *Server) changePassword(c echo.Context) error {
	var to struct {
		Password string `json:"password"`
	}
	if err := decode(c, &to); err != nil {
		return err
	}
	hash, err := s.passwords.hash(c.Request().Context(), to.Password)
	if err != nil {
		return err
	}
	if err := s.store.SetPassword(c.Request().Context(), pathParam(c, "user"), hash, by(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// PUT /users/{name}/role
func (s *Server) changeRole(c echo.Context) error {
	var to struct {
		Role ci.Role `json:"role"`
	}
	if err := decode(c, &to); err != nil {
		return err
	}
	if err := s.store.SetRole(c.Request().Context(), pathParam(c, "user"), to.Role, by(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// newLink is the request for a login link.
type newLink struct {
	User string `json:"user"` // "": the built-in admin
}

// createdLink is the one answer that ever holds a login link.
type createdLink struct {
	URL       string  `json:"url"`
	User      string  `json:"user"`
	ExpiresAt ci.Time `json:"expires_at"`
}

// POST /login-links
func (s *Server) createLoginLink(c echo.Context) error {
	var n newLink
	if err := decode(c, &n); err != nil {
		return err
	}
	base, err := pageURL(s.config())
	if err != nil {
		return err
	}
	value, link, err := s.store.CreateLoginLink(c.Request().Context(), n.User, by(c))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, createdLink{base + linkPath + "?token=" + url.QueryEscape(value), link.User, link.ExpiresAt})
}

// pageURL returns where people reach the page: the public address, or the
// first listener that serves it, as this machine reaches that. CodeConflict if
// neither is known.
func pageURL(cfg *ci.Config) (string, error) {
	if cfg.PublicURL != "" {
		return cfg.PublicURL, nil
	}
	for _, l := range cfg.Listen {
		if !l.Serves(PartUI) {
			continue
		}
		host, port, err := net.SplitHostPort(l.Address)
		if err != nil {
			return "", err
		}
		if port == "0" {
			return "", ci.Errorf(ci.CodeConflict, "the listener %s takes any free port, so its address is not known; set public_url in the configuration", l.Address)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
			if l.TLS != nil && l.TLS.ACME != nil {
				host = l.TLS.ACME.Domains[0] // what its certificate is for
			}
		}
		return l.Scheme() + "://" + net.JoinHostPort(host, port), nil
	}
	return "", ci.Errorf(ci.CodeConflict, "no listener serves the page; add `ui` to one's `serve` in the configuration, or set public_url")
}
