package server

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

const (
	projectBars  = 80
	projectHeads = 12
)

// GET /projects/{project}
func (s *Server) projectPage(c echo.Context) error {
	fill := func(v *visit) (web.Page, error) { return s.fillProject(v, nil) }
	if wantsStream(c.Request()) {
		return s.streamPage(c, fill, nil)
	}
	page, err := fill(s.visit(c))
	if err != nil {
		return err
	}
	if page.(*web.ProjectPage).Form != nil {
		// Going back to it must find the form as it was, its key above all.
		c.Response().Header().Set(echo.HeaderCacheControl, "private, no-cache")
	}
	return s.render(c, http.StatusOK, page)
}

// GET /projects/{project}/runs: where a form that was refused stands.
func (s *Server) toProject(c echo.Context) error {
	return seeOther(c, projectPath(pathParam(c, "project")))
}

// fillProject fills a project's page, with a form that was refused or with a
// fresh one.
func (s *Server) fillProject(v *visit, form *web.RunForm) (web.Page, error) {
	c, name := v.c, pathParam(v.c, "project")
	cfg := s.config()
	project := cfg.Project(name)
	switch {
	case project == nil:
		if err := s.projectKnown(name); err != nil {
			return nil, err
		}
		project = &ci.Project{Name: name}
	case v.who == nil && !project.Public:
		return nil, errSignIn()
	default:
		if form == nil && v.may(ci.Operator) {
			form = newRunForm(project, v.keys.of("start"))
		}
	}
	tab, err := oneOf(c, "tab", store.RefKinds)
	if err != nil {
		return nil, err
	}
	state, err := oneOf(c, "state", ci.States)
	if err != nil {
		return nil, err
	}
	filter := store.RunFilter{Project: name, State: state, Branch: c.QueryParam("branch"), Ref: tab}
	cursor := c.QueryParam("cursor")
	runs, next, err := s.store.Runs(filter, store.Page{Cursor: cursor})
	if err != nil {
		return nil, err
	}
	recent, _, err := s.store.Runs(store.RunFilter{Project: name}, store.Page{Limit: projectBars})
	if err != nil {
		return nil, err
	}
	ch, err := s.chrome(v, name, "", cursor == "")
	if err != nil {
		return nil, err
	}
	p := &web.ProjectPage{
		Chrome: ch, Name: name, Repository: project.Repository, DefaultBranch: project.DefaultBranch, Public: project.Public,
		Tab: string(tab), Branch: filter.Branch, State: state, Form: form,
	}
	if p.Heads, _, err = s.heads(name, project.DefaultBranch, recent, projectHeads); err != nil {
		return nil, err
	}
	if v.who == nil {
		redactRuns(runs)
		for i := range p.Heads {
			p.Heads[i].Title = ""
		}
	} else {
		p.Integration = project.Integration
		if p.Missed, err = s.missedHeads(v, name); err != nil {
			return nil, err
		}
		if base, ok, err := s.store.HeadsBase(name); err != nil {
			return nil, err
		} else if ok {
			p.Known = &base
		}
		if p.Schedules, err = s.scheduleRows(project, v.now); err != nil {
			return nil, err
		}
	}
	p.Runs = web.NewRunRows(runs)
	query := url.Values{"tab": {p.Tab}, "state": {string(state)}, "branch": {filter.Branch}}
	p.Newest, p.Next = pager(projectPath(name), query, cursor, next)
	if filter != (store.RunFilter{Project: name}) {
		if recent, _, err = s.store.Runs(filter, store.Page{Limit: projectBars}); err != nil {
			return nil, err
		}
	}
	p.Durations = bars(slices.DeleteFunc(recent, func(r ci.Run) bool { return r.StartedAt.IsZero() }), v.now)
	if in := cfg.Integration(project.Integration); in != nil {
		p.RepositoryURL = repositoryURL(in, project.Repository)
		base, _ := s.baseURL(c)
		p.Badge = web.Badge{ImageURL: base + projectPath(name) + "/badge.svg", LinkURL: base + projectPath(name), Open: project.Public}
	}
	return p, nil
}

// redactRuns leaves out of runs what is nobody's business who is not signed
// in: who asked for them, why, and with which inputs.
func redactRuns(list []ci.Run) {
	for i := range list {
		list[i] = redacted(list[i])
	}
}

func redacted(r ci.Run) ci.Run {
	r.Inputs = nil
	r.Cause.Actor, r.Cause.Reason, r.Cause.Receipt = "", "", ""
	if r.Reason != ci.ReasonTimedOut && r.State != ci.Superseded {
		r.Reason = ""
	}
	if r.Cause.Event == ci.EventManual {
		r.Internal.Title = "" // it is the reason that was given
	}
	if r.CancelRequested != nil {
		r.CancelRequested = &ci.CancelRequest{}
	}
	if r.WaitingFor != nil {
		r.WaitingFor = &ci.Waiting{} // it may be of another project
	}
	r.Steps = slices.Clone(r.Steps)
	for i := range r.Steps {
		r.Steps[i].Reason = ""
	}
	return r
}

func errSignIn() error {
	return ci.Errorf(ci.CodeUnauthenticated, "you are not signed in; sign in at %s", loginPath)
}
