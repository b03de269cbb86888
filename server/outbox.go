package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// GET /outbox
//
// Payloads are left out here: a page of them can be large. The entry has its.
func (s *Server) listOutbox(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	state, err := oneOf(c, "state", ci.OutboxStates)
	if err != nil {
		return err
	}
	list, next, err := s.store.Entries(state, p)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Payload = nil
	}
	return listing(c, "entries", list, next)
}

// GET /outbox/{id}
func (s *Server) getEntry(c echo.Context) error {
	e, err := s.store.Entry(pathParam(c, "entry"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, e)
}

// POST /outbox/{id}/retry
func (s *Server) retryEntry(c echo.Context) error { return s.actOnEntry(c, s.store.RetryEntry) }

// POST /outbox/{id}/discard
func (s *Server) discardEntry(c echo.Context) error { return s.actOnEntry(c, s.store.DiscardEntry) }

type entryAction func(context.Context, store.EntryAction) (e ci.OutboxEntry, replayed bool, err error)

// actOnEntry does what a person asks. An idempotency key may be given: doing
// either twice is harmless, and the key makes the second answer the first.
func (s *Server) actOnEntry(c echo.Context, act entryAction) error {
	key, err := idempotencyKey(c, false)
	if err != nil {
		return err
	}
	var why reason
	if err := decode(c, &why); err != nil {
		return err
	}
	e, again, err := act(c.Request().Context(), store.EntryAction{ID: pathParam(c, "entry"), Key: key, By: by(c), Reason: why.Reason})
	if err != nil {
		return err
	}
	replayed(c, again)
	return c.JSON(http.StatusOK, e)
}
