package server

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/web"
)

// GET /decisions?run=&kind=
func (s *Server) decisionsPage(c echo.Context) error { return s.show(c, s.fillDecisions) }

func (s *Server) fillDecisions(v *visit) (web.Page, error) {
	run, kind := strings.TrimSpace(v.c.QueryParam("run")), v.c.QueryParam("kind")
	cursor := v.c.QueryParam("cursor")
	ch, err := s.chrome(v, "Decisions", web.SectionDecisions, cursor == "")
	if err != nil {
		return nil, err
	}
	p := &web.DecisionsPage{Chrome: ch, Run: run, Kind: kind}
	list, next, err := s.store.DecisionsOfKind(run, kind, store.Page{Cursor: cursor})
	if err != nil {
		return nil, err
	}
	p.Decisions = list
	p.Newest, p.Next = pager("/decisions", url.Values{"run": {run}, "kind": {kind}}, cursor, next)
	return p, nil
}
