package server

import (
	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// Bounds of what the setup page shows of recovery.
const (
	shownMissed = 10
	shownHeads  = 50
	shownGaps   = 10
)

// pageRecovery is how far an integration was compared.
func (s *Server) pageRecovery(in *ci.Integration) (r web.Recovery, err error) {
	_, r.Why = in.Recovers()
	if r.Recovery, err = s.store.Recovery(in.Name); err != nil {
		return r, err
	}
	if r.Missed, err = s.store.Missed(in.Name, 0); err != nil {
		return r, err
	}
	if n := len(r.Missed) - shownMissed; n > 0 {
		r.Missed, r.More = r.Missed[:shownMissed], n
	}
	return r, nil
}

// fillRecovery fills in heads without a run and the times away.
func (s *Server) fillRecovery(v *visit, cfg *ci.Config, p *web.SetupPage) error {
	for i := range cfg.Projects {
		list, err := s.missedHeads(v, cfg.Projects[i].Name)
		if err != nil {
			return err
		}
		p.Missed = append(p.Missed, list...)
	}
	if n := len(p.Missed) - shownHeads; n > 0 {
		p.Missed, p.MoreMissed = p.Missed[:shownHeads], n
	}
	gaps, _, err := s.store.Gaps(store.Page{Limit: shownGaps})
	for _, g := range gaps {
		p.Gaps = append(p.Gaps, web.GapRow{Gap: g})
	}
	return err
}

// missedHeads are a project's heads that no run is known of.
func (s *Server) missedHeads(v *visit, project string) (rows []web.MissedHead, err error) {
	list, err := s.store.MissedHeads(project)
	for _, m := range list {
		row := web.MissedHead{MissedHead: m}
		if v.may(ci.Operator) {
			row.Start = &web.RunAction{}
		}
		rows = append(rows, row)
	}
	return rows, err
}

// POST /projects/{project}/heads/start. The head and its commit are the
// run's identity, so the form needs no key of its own.
func (s *Server) startHeadByForm(c echo.Context) error {
	form, err := postForm(c, maxForm)
	if err != nil {
		return err
	}
	commit := form.Get("commit")
	if !ci.IsCommit(commit) || form.Get("head") == "" {
		return ci.Errorf(ci.CodeInvalid, "the form names no head with its commit; go back and use its button")
	}
	run, _, err := s.startOfHead(c.Request().Context(), pathParam(c, "project"), form.Get("head"), commit, by(c))
	if err != nil {
		return err
	}
	return seeOther(c, runPath(run.ID))
}
