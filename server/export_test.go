package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Handlers for tests only.

// ListRoutes returns every route as "METHOD path".
func ListRoutes() []string {
	var list []string
	for _, r := range routes() {
		list = append(list, r.method+" "+r.path)
	}
	return list
}

// AnyMethod is the method of a route that takes every method.
const AnyMethod = echo.RouteNotFound

// SetStreamTimes shortens what a follower waits for.
func (s *Server) SetStreamTimes(heartbeat, poll time.Duration) { s.heartbeat, s.poll = heartbeat, poll }

// HandlerThat is a listener whose one route, /, fails with err or panics.
func (s *Server) HandlerThat(err error, panics any) http.Handler {
	e := echo.New()
	e.HTTPErrorHandler = s.handleError
	e.GET("/", s.bind(route{path: "/", handle: func(*Server, echo.Context) error {
		if panics != nil {
			panic(panics)
		}
		return err
	}}, nil))
	return &handler{server: s, echo: e}
}

// DrawBadge draws a badge.
func DrawBadge(left, right, colour string) []byte { return drawBadge(left, right, colour) }

// CutCharacter is cutCharacter.
func CutCharacter(b []byte) int { return cutCharacter(b) }

// FillRooms takes all the room for bodies until leave is called, and makes who
// waits for it do so for no longer than a time.
func (s *Server) FillRooms(wait time.Duration) (leave func()) {
	var all []*guest
	for r, size := range map[*room]int64{&s.rooms.small: smallRoom, &s.rooms.large: leastRoom} {
		r.timeout = wait
		g, err := r.enter(context.Background(), size, "a test", size, func() {})
		if err != nil {
			panic(err)
		}
		g.read.Store(size)
		all = append(all, g)
	}
	return func() {
		for _, g := range all {
			g.leave()
		}
	}
}

// RememberedFailures is how many addresses the limit of failures knows.
func (s *Server) RememberedFailures() int {
	l := s.failures.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owed)
}
