package server

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// POST /backup streams a consistent copy of the store. A copy that cannot be
// finished breaks the connection, so that half of one never looks whole.
func (s *Server) backup(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, echo.MIMEOctetStream)
	h.Set(echo.HeaderContentDisposition, `attachment; filename="docket.db"`)
	_, err := s.store.Backup(c.Request().Context(), newStream(c))
	if err != nil && !c.Response().Committed {
		h.Del(echo.HeaderContentDisposition)
	}
	return err
}

// POST /verify checks every record and index of the store.
func (s *Server) verify(c echo.Context) error {
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) // it takes as long as the store is large
	broken, err := s.store.Verify(c.Request().Context())
	if err != nil {
		return err
	}
	if broken == nil {
		broken = []string{}
	}
	return c.JSON(http.StatusOK, map[string][]string{"broken": broken})
}

// POST /reload reads the configuration again. A broken one is CodeInvalid and
// changes nothing.
func (s *Server) reloadConfig(c echo.Context) error {
	if s.reload == nil {
		return ci.Errorf(ci.CodeConflict, "this server cannot read its configuration again; restart it instead")
	}
	if err := s.reload(c.Request().Context()); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]bool{"reloaded": true})
}
