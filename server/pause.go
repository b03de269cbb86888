package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
	"docket/web"
)

// GET /paused
func (s *Server) getPauses(c echo.Context) error {
	p, err := s.store.Pauses()
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, p)
}

type pauseAction func(context.Context, ci.Work, ci.By, string) (ci.Pauses, error)

// POST /runs/pause, /runs/resume, /outbox/pause and /outbox/resume: each
// answers with what is paused then, and does nothing the second time.
func (s *Server) pauseRuns(c echo.Context) error  { return s.actOnWork(c, ci.WorkRuns, s.store.Pause) }
func (s *Server) resumeRuns(c echo.Context) error { return s.actOnWork(c, ci.WorkRuns, s.store.Resume) }
func (s *Server) pauseOutbox(c echo.Context) error {
	return s.actOnWork(c, ci.WorkOutbox, s.store.Pause)
}
func (s *Server) resumeOutbox(c echo.Context) error {
	return s.actOnWork(c, ci.WorkOutbox, s.store.Resume)
}

func (s *Server) actOnWork(c echo.Context, w ci.Work, act pauseAction) error {
	var why reason
	if err := decode(c, &why); err != nil {
		return err
	}
	if fault := reasonFault(why.Reason); fault != "" {
		return ci.Errorf(ci.CodeInvalid, "the reason %s; send a shorter and plain one", fault)
	}
	p, err := act(c.Request().Context(), w, by(c), why.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, p)
}

// POST of the same paths by a form of the page. Doing either twice is
// harmless, so that these forms carry no key.
func (s *Server) pauseRunsByForm(c echo.Context) error {
	return s.workByForm(c, ci.WorkRuns, s.store.Pause, "/setup")
}
func (s *Server) resumeRunsByForm(c echo.Context) error {
	return s.workByForm(c, ci.WorkRuns, s.store.Resume, "/")
}
func (s *Server) pauseOutboxByForm(c echo.Context) error {
	return s.workByForm(c, ci.WorkOutbox, s.store.Pause, "/setup")
}
func (s *Server) resumeOutboxByForm(c echo.Context) error {
	return s.workByForm(c, ci.WorkOutbox, s.store.Resume, "/notifications")
}

func (s *Server) workByForm(c echo.Context, w ci.Work, act pauseAction, to string) error {
	form, err := postForm(c, maxForm)
	if err != nil {
		return err
	}
	why, err := formReason(form)
	if err != nil {
		return err
	}
	if _, err := act(c.Request().Context(), w, by(c), why); err != nil {
		return err
	}
	return seeOther(c, to)
}

// pauseBanners say what is paused, with the button that lets it go on for
// those who may press it.
func (s *Server) pauseBanners(v *visit) ([]web.Banner, error) {
	p, err := s.store.Pauses()
	if err != nil {
		return nil, err
	}
	var list []web.Banner
	for _, w := range ci.Works {
		if pause := p.Of(w); pause != nil {
			list = append(list, web.Banner{Kind: web.BannerPaused, Work: w, Pause: pause, Resume: v.may(ci.Operator)})
		}
	}
	return list, nil
}
