package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// GET /tokens
func (s *Server) listTokens(c echo.Context) error {
	list, err := s.store.Tokens()
	if err != nil {
		return err
	}
	return listing(c, "tokens", list, "")
}

// newToken is the request for a token.
type newToken struct {
	Name string  `json:"name"`
	Role ci.Role `json:"role"`
}

// createdToken is the one answer that ever holds a token's value.
type createdToken struct {
	Token string  `json:"token"`
	Name  string  `json:"name"`
	Role  ci.Role `json:"role"`
}

// POST /tokens
func (s *Server) createToken(c echo.Context) error {
	var n newToken
	if err := decode(c, &n); err != nil {
		return err
	}
	value, err := s.store.CreateToken(c.Request().Context(), n.Name, n.Role)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusCreated, createdToken{value, n.Name, n.Role})
}

// DELETE /tokens/{name}
func (s *Server) revokeToken(c echo.Context) error {
	if err := s.store.RevokeToken(c.Request().Context(), pathParam(c, "token")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
