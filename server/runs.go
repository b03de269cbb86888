package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

// publicRun is a run as the API shows it, with its page under the public URL
// in force.
func (s *Server) publicRun(r ci.Run) ci.Run {
	r = r.Public()
	r.URL = s.config().RunURL(r.ID)
	if s.traces != nil {
		r.TraceID = s.traces.Run(&r)
	}
	return r
}

// GET /runs
func (s *Server) listRuns(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	state, err := oneOf(c, "state", ci.States)
	if err != nil {
		return err
	}
	f := store.RunFilter{Project: c.QueryParam("project"), State: state, Branch: c.QueryParam("branch")}
	list, next, err := s.store.Runs(f, p)
	if err != nil {
		return err
	}
	if len(list) == 0 && f.Project != "" {
		if err := s.projectKnown(f.Project); err != nil {
			return err
		}
	}
	for i := range list {
		list[i] = s.publicRun(list[i])
	}
	return listing(c, "runs", list, next)
}

// projectKnown returns CodeNotFound for a name that is neither configured nor
// has runs from when it was: an empty list would hide a typing error.
func (s *Server) projectKnown(name string) error {
	if s.config().Project(name) != nil {
		return nil
	}
	old, _, err := s.store.Runs(store.RunFilter{Project: name}, store.Page{Limit: 1})
	if err == nil && len(old) == 0 {
		err = noProject(name)
	}
	return err
}

// GET /runs/{id}
func (s *Server) getRun(c echo.Context) error {
	run, err := s.store.Run(pathParam(c, "run"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.publicRun(run))
}

// POST /projects/{project}/runs
func (s *Server) startRun(c echo.Context) error {
	watch, cfg := s.stopwatch(), s.config()
	p := cfg.Project(pathParam(c, "project"))
	if p == nil {
		return noProject(pathParam(c, "project"))
	}
	key, err := idempotencyKey(c, true)
	if err != nil {
		return err
	}
	var req ci.Request
	if err := decode(c, &req); err != nil {
		return err
	}
	watch.mark(&watch.judged)
	run, again, err := s.request(c.Request().Context(), cfg, p, key, req, by(c))
	if err != nil {
		return err
	}
	watch.mark(&watch.committed)
	err = s.answerNewRun(c, run, again)
	s.traceRequest(&watch, c, run.ID, again)
	return err
}

// request makes the run that somebody asks for by hand, or returns the one
// that the same key already made.
func (s *Server) request(ctx context.Context, cfg *ci.Config, p *ci.Project, key string, req ci.Request, who ci.By) (run ci.Run, again bool, err error) {
	n, err := pipeline.Normalize(p, req)
	if err != nil {
		return run, false, err
	}
	return s.store.Request(ctx, store.Request{
		Project: p.Name,
		Key:     key,
		Digest:  n.Digest(),
		Draft:   pipeline.CompileRequest(cfg, p, n, who),
		By:      who,
	})
}

// answerNewRun writes 201 for a run that was just made, 200 for one that the
// same key had made before.
func (s *Server) answerNewRun(c echo.Context, run ci.Run, again bool) error {
	status := http.StatusCreated
	if again {
		status = http.StatusOK
	}
	replayed(c, again)
	c.Response().Header().Set(echo.HeaderLocation, apiPrefix+"/runs/"+url.PathEscape(run.ID))
	return c.JSON(status, s.publicRun(run))
}

// reason is the body that every action takes: why, for the audit trail.
type reason struct {
	Reason string `json:"reason"`
}

type runAction func(context.Context, store.Action) (run ci.Run, replayed bool, err error)

func (s *Server) actOnRun(c echo.Context, act runAction) (ci.Run, bool, error) {
	key, err := idempotencyKey(c, true)
	if err != nil {
		return ci.Run{}, false, err
	}
	var why reason
	if err := decode(c, &why); err != nil {
		return ci.Run{}, false, err
	}
	return act(c.Request().Context(), store.Action{Run: pathParam(c, "run"), Key: key, By: by(c), Reason: why.Reason})
}

// POST /runs/{id}/cancel
func (s *Server) cancelRun(c echo.Context) error {
	run, again, err := s.actOnRun(c, s.store.CancelRun)
	if err != nil {
		return err
	}
	replayed(c, again)
	return c.JSON(http.StatusOK, s.publicRun(run))
}

// POST /runs/{id}/approve
func (s *Server) approveRun(c echo.Context) error {
	run, again, err := s.actOnRun(c, s.store.Approve)
	if err != nil {
		return err
	}
	replayed(c, again)
	return c.JSON(http.StatusOK, s.publicRun(run))
}

// POST /runs/{id}/rerun
func (s *Server) rerun(c echo.Context) error {
	run, again, err := s.actOnRun(c, s.store.Rerun)
	if err != nil {
		return err
	}
	return s.answerNewRun(c, run, again)
}
