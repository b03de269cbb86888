package server

import "github.com/labstack/echo/v4"

// GET /decisions
func (s *Server) listDecisions(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.store.Decisions(c.QueryParam("run"), p)
	if err != nil {
		return err
	}
	return listing(c, "decisions", list, next)
}
