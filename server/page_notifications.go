package server

import (
	"maps"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// GET /notifications
func (s *Server) notificationsPage(c echo.Context) error { return s.show(c, s.fillNotifications) }

func (s *Server) fillNotifications(v *visit) (web.Page, error) {
	state, err := oneOf(v.c, "state", ci.OutboxStates)
	if err != nil {
		return nil, err
	}
	cursor := v.c.QueryParam("cursor")
	ch, err := s.chrome(v, "Notifications", web.SectionNotifications, cursor == "")
	if err != nil {
		return nil, err
	}
	p := &web.NotificationsPage{Chrome: ch, State: state}
	list, next, err := s.store.Entries(state, store.Page{Cursor: cursor})
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		row := web.EntryRow{OutboxEntry: e}
		row.Payload = nil
		if e.State == ci.OutboxPending || e.State == ci.OutboxDead {
			row.Retry, row.Discard = v.action("retry "+e.ID), v.action("discard "+e.ID)
		}
		p.Entries = append(p.Entries, row)
	}
	p.Newest, p.Next = pager("/notifications", url.Values{"state": {string(state)}}, cursor, next)
	stats, err := s.store.Stats()
	if err != nil {
		return nil, err
	}
	p.Pending, p.Dead = stats.OutboxPending, stats.OutboxDead
	holds, err := s.store.Holds(v.now)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(holds)) {
		p.Holds = append(p.Holds, web.Hold{Key: key, Until: holds[key].Until, Reason: holds[key].Reason})
	}
	return p, nil
}
