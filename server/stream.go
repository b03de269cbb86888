package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// stream writes an answer of any length: each piece has a time-out of its
// own, instead of one for the whole.
type stream struct {
	w    *echo.Response
	ctrl *http.ResponseController
}

// newStream frees an answer from the time-out that is meant for short ones.
func newStream(c echo.Context) *stream {
	return &stream{w: c.Response(), ctrl: http.NewResponseController(c.Response())}
}

var _ io.Writer = (*stream)(nil)

// Write sends b in pieces, so that a slow reader of much is not taken for one
// that has gone.
func (st *stream) Write(b []byte) (n int, err error) {
	const piece = 64 << 10
	for {
		st.extend()
		m, err := st.w.Write(b[n:min(n+piece, len(b))])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// Flush sends what was written so far.
func (st *stream) Flush() error {
	st.extend()
	return st.ctrl.Flush()
}

// extend gives the next piece its time. A writer that knows no deadlines, as
// a test's recorder, needs none.
func (st *stream) extend() { _ = st.ctrl.SetWriteDeadline(time.Now().Add(chunkTimeout)) }

// openEvents begins an event stream. ctx ends when the client has gone and when
// the listener shuts down; call done at the end.
func openEvents(c echo.Context) (st *stream, ctx context.Context, done func()) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, eventStream)
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("X-Accel-Buffering", "no") // or nginx keeps it back
	ctx, cancel := context.WithCancel(c.Request().Context())
	stop := stopWhen(quitting(ctx), cancel)
	c.Response().WriteHeader(http.StatusOK)
	return newStream(c), ctx, func() {
		stop()
		cancel()
	}
}

// stopWhen calls stop when c is closed. The returned function ends the wait.
func stopWhen(c <-chan struct{}, stop func()) (done func()) {
	if c == nil {
		return func() {}
	}
	finish, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-c:
			stop()
		case <-finish:
		}
	}()
	return func() {
		close(finish)
		<-finished
	}
}
