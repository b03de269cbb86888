package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// Traces is where a server tells of the requests that it handles, and what it
// shows of that. All of it is needed, and none of it may block.
type Traces struct {
	Handled func(ci.Handled)
	Run     func(*ci.Run) string // the id of the trace of a run; "" for none
	Receipt func(id string) string
	State   func() TraceState
}

// TraceState says how it goes with sending spans.
type TraceState struct {
	Exported uint64            `json:"exported"`
	Dropped  map[string]uint64 `json:"dropped"` // by reason
	Problem  string            `json:"problem"` // why the last try failed; "" after a success
}

// stopwatch notes when each part of the work on a request ended. Without
// traces it looks at no clock.
type stopwatch struct {
	now                                func() time.Time
	began, verified, judged, committed time.Time
}

func (s *Server) stopwatch() (w stopwatch) {
	if s.traces != nil {
		w.now = s.now
		w.began = s.now()
	}
	return w
}

// mark notes that a part is over.
func (w *stopwatch) mark(at *time.Time) {
	if w.now != nil {
		*at = w.now()
	}
}

// handled is the beginning of what is told of a request.
func (w *stopwatch) handled(route string) ci.Handled {
	return ci.Handled{
		Method: http.MethodPost, Route: route,
		Began: w.began, Verified: w.verified, Judged: w.judged, Committed: w.committed, Ended: w.now(),
	}
}

// traceDelivery tells of a delivery that was verified and judged; err is why it
// is not on record. Of what was refused before nothing is told: anybody may
// send that.
func (s *Server) traceDelivery(w *stopwatch, c echo.Context, d *ci.Delivery, a *store.Accepted, err error) {
	if s.traces == nil {
		return
	}
	h := w.handled("/hooks/{integration}")
	h.Receipt, h.Integration, h.Event = d.ReceiptID().String(), d.Integration, d.Event
	switch {
	case err != nil:
		h.Status, h.Outcome = http.StatusServiceUnavailable, "failed"
	case a.Duplicate:
		h.Status, h.Outcome = c.Response().Status, "duplicate"
	default:
		h.Status, h.Outcome = c.Response().Status, string(a.Receipt.Outcome)
		h.First = len(a.Receipt.Verdicts) == 1
	}
	s.traces.Handled(h)
}

// routeOf writes a route's parameters in braces, as elsewhere than in echo.
func routeOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

// traceRequest tells of a request by hand that has a run.
func (s *Server) traceRequest(w *stopwatch, c echo.Context, run string, again bool) {
	if s.traces == nil {
		return
	}
	h := w.handled(routeOf(c.Path()))
	h.Run, h.First, h.Status = run, !again, c.Response().Status
	if given := c.Request().Header.Values("Traceparent"); len(given) == 1 {
		h.Traceparent = given[0]
	}
	s.traces.Handled(h)
}
