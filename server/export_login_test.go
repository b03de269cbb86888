package server

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// PasswordWork is what one hash takes, as a test may see it.
type PasswordWork struct {
	Memory, Passes uint32
	Lanes          uint8
	Password       string
}

// SetPasswordWork makes hashes cheap, and tells work of each one.
func (s *Server) SetPasswordWork(work func(PasswordWork)) {
	s.passwords.cost = cost{memory: 64, passes: 1, lanes: 1}
	s.passwords.derive = func(password, salt []byte, c cost) []byte {
		if work != nil {
			work(PasswordWork{c.memory, c.passes, c.lanes, string(password)})
		}
		return derive(password, salt, c)
	}
}

// The bounds on work.
const (
	Workers      = workers
	Waiters      = waiters
	AddressBurst = addressBurst
	AddressEvery = addressEvery
	AccountBurst = accountBurst
	AccountEvery = accountEvery
)

// HashCheaply is a password's hash that took little.
func HashCheaply(password string) string {
	return newHash(password, cost{memory: 64, passes: 1, lanes: 1}, derive)
}

// Matches compares a password with a hash, within the bounds on work.
func (s *Server) Matches(ctx context.Context, hash, password string) (bool, error) {
	return s.passwords.matches(ctx, hash, password)
}

// PasswordsPresent is how many work or wait.
func (s *Server) PasswordsPresent() int { return len(s.passwords.present) }

// PagesHandler is a listener of everything that also has, under /page/ROLE, a
// page that needs the role ("any" for none) and says who looks at it.
func (s *Server) PagesHandler() http.Handler {
	h := s.handler(nil, nil).(*handler)
	for name, need := range map[string]ci.Role{"any": "", "viewer": ci.Viewer, "operator": ci.Operator, "admin": ci.Admin} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := route{path: "/page/" + name, page: true, need: need, handle: func(s *Server, c echo.Context) error {
				p, ok := s.signedIn(c)
				if !ok {
					return c.String(http.StatusOK, "nobody")
				}
				return c.String(http.StatusOK, p.by.Kind+" "+p.by.Name+" "+string(p.role))
			}}
			h.echo.Add(method, r.path, s.bind(r, nil))
		}
	}
	return h
}

// ListPages returns those of ListRoutes that are pages.
func ListPages() []string {
	var list []string
	for _, r := range routes() {
		if r.page {
			list = append(list, r.method+" "+r.path)
		}
	}
	return list
}

// Limiter is a limiter for tests.
type Limiter struct{ l *limiter }

// NewLimiter returns a limiter that keeps few keys.
func NewLimiter(burst int, every time.Duration, keep int) Limiter {
	return Limiter{newLimiter(burst, every, keep)}
}

func limitKeyOf(s string) (k limitKey) { copy(k[:], s); return k }

// Take is take.
func (l Limiter) Take(key string, now time.Time) time.Duration { return l.l.take(limitKeyOf(key), now) }

// GiveBack is giveBack.
func (l Limiter) GiveBack(key string, now time.Time) { l.l.giveBack(limitKeyOf(key), now) }

// Len is how many keys are remembered.
func (l Limiter) Len() int { return len(l.l.owed) }

// LocalPath is localPath with the fallback /.
func LocalPath(next string) string { return localPath(next, "/") }

// ClientAddress is clientAddress.
func ClientAddress(r *http.Request, trusted ...netip.Prefix) string {
	return clientAddress(r, trusted)
}

// PageURL is pageURL.
func PageURL(cfg *ci.Config) (string, error) { return pageURL(cfg) }
