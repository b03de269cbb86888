package server

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// How often requests of one address may fail for want of a token or a
// signature, or ask for what is not there, before they are answered 429. What
// is signed or has a token is never counted and never refused for it.
const (
	failureBurst = 600
	failureEvery = 100 * time.Millisecond
)

// failures counts the requests that failed, by address.
type failures struct {
	limiter *limiter

	mu   sync.Mutex
	told time.Time
}

func newFailures() *failures {
	return &failures{limiter: newLimiter(failureBurst, failureEvery, keptLimits)}
}

// failureKey is whom a request's failure counts for; false on the admin socket.
func (s *Server) failureKey(r *http.Request) (limitKey, bool) {
	if _, err := netip.ParseAddrPort(r.RemoteAddr); err != nil {
		return limitKey{}, false
	}
	return sha256.Sum256([]byte(Network(s.clientAddress(r)))), true
}

// countFailure counts a failed request and returns how long its address has to
// wait, where it failed too often; 0 where err is to be the answer.
func (s *Server) countFailure(err error, c echo.Context) (wait time.Duration) {
	if !s.isFailure(err, c) {
		return 0
	}
	key, ok := s.failureKey(c.Request())
	if !ok {
		return 0
	}
	now := s.now()
	if wait = s.failures.limiter.take(key, now); wait == 0 {
		return 0
	}
	s.metrics.limited.Inc()
	s.failures.mu.Lock()
	tell := now.Sub(s.failures.told) >= 10*time.Second
	if tell {
		s.failures.told = now
	}
	s.failures.mu.Unlock()
	if tell {
		s.log.Warn("an address fails too often, so its failures are answered 429", keyRemote, s.clientAddress(c.Request()))
	}
	return wait
}

// isFailure reports whether an error is one that nobody who knows a secret of
// docket's need meet.
func (s *Server) isFailure(err error, c echo.Context) bool {
	var r *refused
	if errors.As(err, &r) {
		switch r.why {
		case refusedIntegration, refusedMethod, refusedContentType, refusedSize, refusedSignature:
			return true
		case refusedBody:
			return ci.CodeOf(err) != ci.CodeUnavailable
		}
		return false
	}
	var he *echo.HTTPError
	if errors.As(err, &he) {
		return (he.Code == http.StatusNotFound || he.Code == http.StatusMethodNotAllowed) && !s.isKnown(c)
	}
	return ci.CodeOf(err) == ci.CodeUnauthenticated
}

// isKnown reports whether a request for what is not there has a valid token or
// session. Nobody has looked yet: there was no route to ask for one.
func (s *Server) isKnown(c echo.Context) bool {
	if _, err := s.authenticate(c); err == nil {
		return true
	}
	_, ok := s.signedIn(c)
	return ok
}

// hopeless reports whether a delivery is not signed and comes from an address
// that failed too often: then its body need not be read.
func (s *Server) hopeless(r *http.Request) bool {
	for name := range r.Header {
		if strings.Contains(name, "Signature") {
			return false
		}
	}
	key, ok := s.failureKey(r)
	return ok && s.failures.limiter.wait(key, s.now()) > 0
}

// tooManyFailures is the answer to a failure too many.
func tooManyFailures(c echo.Context, wait time.Duration) error {
	seconds := int((wait + time.Second - 1) / time.Second)
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(seconds))
	c.Response().Header().Del(echo.HeaderWWWAuthenticate)
	return ci.Errorf(ci.CodeTooMany, "too many requests from your address failed; try again in %d s with a token that is valid, or a delivery that is signed", seconds)
}
