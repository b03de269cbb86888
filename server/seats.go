package server

import (
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"docket/store/ci"
)

// How many answers there may be at the same time that last for as long as
// their readers like: the streams of pages and logs, and logs as text on
// pages. Each keeps a connection that nothing shuts to make room for another,
// and a page is drawn anew for each of its streams when something changes.
// Who is signed in or has a token has seats of his own, which those who look
// at public projects cannot take.
const (
	openSeats       = 256  // for readers who are not signed in
	openSeatsEach   = 32   // of them for one address, of IPv6 a /64
	signedSeats     = 1024 // for readers who are, or have a token
	signedSeatsEach = 128  // of them for one user or token
)

// seats are those of one kind of reader.
type seats struct {
	most, each int
	taken      prometheus.Gauge
	refused    *prometheus.CounterVec // by bound

	mu   sync.Mutex
	used int
	by   map[string]int
}

// newSeats returns most seats, or a quarter of what a listener takes in
// connections where that is fewer; connections is 0 where it is not bounded.
func newSeats(most, each, connections int, m *metrics, reader string) *seats {
	if connections > 0 {
		most = max(1, min(most, connections/4))
	}
	return &seats{
		most: most, each: min(each, max(1, most/2)), by: map[string]int{},
		taken: m.streams.WithLabelValues(reader), refused: m.streamsRefused.MustCurryWith(prometheus.Labels{"reader": reader}),
	}
}

// take gives who a seat until leave is called. CodeTooMany where he has as
// many as one may have, CodeUnavailable where all are taken.
func (s *seats) take(who string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[who] >= s.each:
		s.refused.WithLabelValues("reader").Inc()
		return nil, ci.Errorf(ci.CodeTooMany, "%d streams are open for you or from your address, which is as many as there may be; close some, or ask again without a stream", s.by[who])
	case s.used >= s.most:
		s.refused.WithLabelValues("all").Inc()
		return nil, &noRoom{ci.Errorf(ci.CodeUnavailable, "all %d streams that docket has for readers like you are taken; try again later, or ask without a stream", s.most)}
	}
	s.used++
	s.by[who]++
	s.taken.Inc()
	return sync.OnceFunc(func() { s.leave(who) }), nil
}

func (s *seats) leave(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.taken.Dec()
	if s.by[who]--; s.by[who] == 0 {
		delete(s.by, who)
	}
}

// takeSeat gives the reader of a request a seat until leave is called. Its
// errors are those of seats.take, with Retry-After.
func (s *Server) takeSeat(c echo.Context) (leave func(), err error) {
	if p, ok := c.Get(principalKey).(principal); ok {
		leave, err = s.signedSeats.take(p.by.Kind + " " + p.by.Name)
	} else {
		leave, err = s.openSeats.take(Network(s.clientAddress(c.Request())))
	}
	if err != nil {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(retryAfter))
	}
	return leave, err
}
