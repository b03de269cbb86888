package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// statusOf is the only place that knows which status a code has.
func statusOf(c ci.Code) int {
	switch c {
	case ci.CodeMalformed:
		return http.StatusBadRequest
	case ci.CodeUnauthenticated:
		return http.StatusUnauthorized
	case ci.CodeForbidden:
		return http.StatusForbidden
	case ci.CodeNotFound:
		return http.StatusNotFound
	case ci.CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case ci.CodeConflict:
		return http.StatusConflict
	case ci.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case ci.CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case ci.CodeInvalid:
		return http.StatusUnprocessableEntity
	case ci.CodeTooMany:
		return http.StatusTooManyRequests
	case ci.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// retryAfter is what a client is told to wait after a 503, in seconds.
const retryAfter = 5

// problem is an error as RFC 9457 has it. Type is about:blank, which says that
// Title is the status' own; Code is the part for programs.
type problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status"`
	Detail      string   `json:"detail"`
	Code        ci.Code  `json:"code"`
	ExistingRun string   `json:"existing_run,omitempty"`
	Reasons     []string `json:"reasons,omitempty"` // of /readyz
}

// handleError turns any error of a handler into an answer. It is the one
// place that logs them.
func (s *Server) handleError(err error, c echo.Context) { s.answerError(err, c, false) }

// handlePageError is handleError where errors are pages to who wants pages.
func (s *Server) handlePageError(err error, c echo.Context) {
	s.answerError(err, c, wantsPage(c.Request()))
}

func (s *Server) answerError(err error, c echo.Context, page bool) {
	e := asError(err, c)
	if wait := s.countFailure(err, c); wait > 0 {
		e = asError(tooManyFailures(c, wait), c)
	}
	status := statusOf(e.Code)
	s.noteRefusal(err, c, status, e.Message)
	if status >= http.StatusInternalServerError && c.Request().Context().Err() == nil && !errors.As(err, new(*refused)) { // which is told already
		s.logFailure(err, c, status)
	}
	if c.Response().Committed {
		// Half an answer is out: only a broken connection can still say that it is not whole.
		panic(http.ErrAbortHandler)
	}
	h := c.Response().Header()
	switch e.Code {
	case ci.CodeUnavailable:
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(retryAfter))
	case ci.CodeUnauthenticated:
		if strings.HasPrefix(c.Path(), apiPrefix) {
			h.Set(echo.HeaderWWWAuthenticate, `Bearer realm="docket"`)
		}
	}
	if page {
		failed := s.errorPage(c, status, e)
		if failed == nil || c.Response().Committed {
			return
		}
		s.log.Error("the page of an error cannot be shown", keyPath, c.Request().URL.Path, keyError, failed)
	}
	p := problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: e.Message, Code: e.Code, ExistingRun: e.ExistingRun,
	}
	var unready *notReady
	if errors.As(err, &unready) {
		p.Reasons = unready.reasons
	}
	if err := writeProblem(c, p); err != nil {
		s.log.Debug("client went away", keyPath, c.Request().URL.Path, keyError, err)
	}
}

// logFailure logs a request that failed through no fault of who sent it.
func (s *Server) logFailure(err error, c echo.Context, status int) {
	attrs := []any{keyMethod, c.Request().Method, keyPath, c.Request().URL.Path, keyStatus, status, keyError, err}
	level := slog.LevelError
	var p *panicked
	switch {
	case errors.As(err, &p):
		attrs = append(attrs, keyStack, string(p.stack))
	case errors.As(err, new(*notReady)):
		level = slog.LevelWarn // an answer, not a failure
	case errors.As(err, new(*noRoom)):
		left, due := s.fullSeats.tell(s.now())
		if !due {
			return
		}
		level, attrs = slog.LevelWarn, append(attrs, keyLeftOut, left)
	}
	s.log.Log(c.Request().Context(), level, "request failed", attrs...)
}

func writeProblem(c echo.Context, p problem) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return c.Blob(p.Status, "application/problem+json", append(b, '\n'))
}

// asError finds the error to show: one of docket's own first, then one of
// echo's, however deep; anything else is a fault of ours.
func asError(err error, c echo.Context) *ci.Error {
	var own *ci.Error
	if errors.As(err, &own) {
		return own
	}
	var he *echo.HTTPError
	if !errors.As(err, &he) {
		return ci.Wrap(ci.CodeInternal, err, "%s", ci.MessageOf(err))
	}
	path := c.Request().URL.Path
	switch he.Code {
	case http.StatusNotFound:
		return ci.Wrap(ci.CodeNotFound, err, "there is nothing at %s; the API is under %s", path, apiPrefix)
	case http.StatusMethodNotAllowed:
		return ci.Wrap(ci.CodeMethodNotAllowed, err, "%s does not take %s; it takes %s", path, c.Request().Method, c.Response().Header().Get(echo.HeaderAllow))
	}
	for _, code := range []ci.Code{ci.CodeMalformed, ci.CodeUnauthenticated, ci.CodeForbidden, ci.CodeConflict,
		ci.CodeTooLarge, ci.CodeUnsupportedMedia, ci.CodeInvalid, ci.CodeTooMany, ci.CodeUnavailable} {
		if statusOf(code) == he.Code {
			return ci.Wrap(code, err, "%v", he.Message)
		}
	}
	return ci.Wrap(ci.CodeInternal, err, "%s", ci.MessageOf(err))
}

// panicked is a recovered panic.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }
