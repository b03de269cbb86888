package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// InstanceHeader tells on /healthz which process answers: it is made anew at
// each start, and says nothing else.
const InstanceHeader = "Docket-Instance"

// GET /healthz: the process answers.
func (s *Server) healthz(c echo.Context) error {
	c.Response().Header().Set(InstanceHeader, s.instance)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// GET /readyz: the store takes writes and the rest of docket has nothing to
// complain about; else a 503 with every reason.
func (s *Server) readyz(c echo.Context) error {
	reasons := s.notReady()
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if len(reasons) > 0 {
		return &notReady{reasons}
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}

// notReady returns every reason why docket is not ready; none if it is.
func (s *Server) notReady() (reasons []string) {
	if err := s.writable(); err != nil {
		reasons = append(reasons, ci.MessageOf(err))
	}
	if s.ready != nil {
		reasons = append(reasons, s.ready()...)
	}
	return reasons
}

// notReady is a failed readiness check.
type notReady struct{ reasons []string }

func (n *notReady) Error() string { return "not ready: " + strings.Join(n.reasons, "; ") }

func (n *notReady) Unwrap() error {
	return ci.Errorf(ci.CodeUnavailable, "%s", n.Error())
}

const (
	probeEvery   = time.Second // a probe is a commit, so readers share one
	probeTimeout = 5 * time.Second
)

// probe is the last answer to whether the store takes writes.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// writable tries the store at most once per second, and for everybody who
// asks meanwhile.
func (s *Server) writable() error {
	p := &s.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := s.now(); p.at.IsZero() || now.Sub(p.at) >= probeEvery || now.Before(p.at) {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		if p.err = s.store.Probe(ctx); p.err == nil {
			p.err = s.store.Health()
		}
		p.at = now
	}
	return p.err
}
