package server

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// asked is what every form that does something sends.
type asked struct{ key, reason string }

func (s *Server) readAsked(c echo.Context) (asked, error) {
	form, err := postForm(c, maxForm)
	if err != nil {
		return asked{}, err
	}
	key, err := formKey(form)
	if err != nil {
		return asked{}, err
	}
	why, err := formReason(form)
	return asked{key, why}, err
}

// formReason is why somebody does what a form does.
func formReason(form url.Values) (string, error) {
	why := strings.TrimSpace(form.Get(web.FieldReason))
	if fault := reasonFault(why); fault != "" {
		return "", ci.Errorf(ci.CodeInvalid, "the reason %s; go back and write it shorter and plain", fault)
	}
	return why, nil
}

// maxSaid bounds the reason of an action, in bytes.
const maxSaid = 1000

func reasonFault(s string) string {
	switch {
	case len(s) > maxSaid:
		return "is longer than 1000 bytes"
	case strings.ToValidUTF8(s, "") != s:
		return "is not UTF-8"
	}
	return ""
}

// actByForm does what a form of a run's page asks and goes on to the run.
func (s *Server) actByForm(c echo.Context, act runAction) error {
	a, err := s.readAsked(c)
	if err != nil {
		return err
	}
	run, _, err := act(c.Request().Context(), store.Action{Run: pathParam(c, "run"), Key: a.key, By: by(c), Reason: a.reason})
	if err != nil {
		return err
	}
	return seeOther(c, runPath(run.ID))
}

// POST /runs/{id}/cancel, /rerun and /approve
func (s *Server) cancelByForm(c echo.Context) error  { return s.actByForm(c, s.store.CancelRun) }
func (s *Server) rerunByForm(c echo.Context) error   { return s.actByForm(c, s.store.Rerun) }
func (s *Server) approveByForm(c echo.Context) error { return s.actByForm(c, s.store.Approve) }

// POST /notifications/{id}/retry and /discard
func (s *Server) retryByForm(c echo.Context) error { return s.entryByForm(c, s.store.RetryEntry) }
func (s *Server) discardByForm(c echo.Context) error {
	return s.entryByForm(c, s.store.DiscardEntry)
}

func (s *Server) entryByForm(c echo.Context, act entryAction) error {
	a, err := s.readAsked(c)
	if err != nil {
		return err
	}
	if _, _, err := act(c.Request().Context(), store.EntryAction{ID: pathParam(c, "entry"), Key: a.key, By: by(c), Reason: a.reason}); err != nil {
		return err
	}
	return seeOther(c, "/notifications")
}

// POST /deliveries/{integration}/{installation}/{delivery}/replay
func (s *Server) replayByForm(c echo.Context) error {
	a, err := s.readAsked(c)
	if err != nil {
		return err
	}
	id := receiptID(c)
	if _, _, err := s.replay(c, id, a.key, a.reason); err != nil {
		return err
	}
	return seeOther(c, web.DeliveryPath(id))
}
