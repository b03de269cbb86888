package server

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

// Why a delivery was refused: the check that it did not pass.
const (
	refusedIntegration  = "integration"
	refusedMethod       = "method"
	refusedContentType  = "content_type"
	refusedSize         = "size"
	refusedBody         = "body"
	refusedSignature    = "signature"
	refusedHeader       = "header"
	refusedJSON         = "json"
	refusedInstallation = "installation"
	refusedRepository   = "repository"
	refusedConflict     = "conflict"
)

// refused is an error of the webhook door: err, and what is known about the
// delivery, none of it stored.
type refused struct {
	why         string
	integration string // "" for an unknown one
	event       string // these two only if they are printable
	delivery    string
	bytes       int64
	err         error
}

// because completes a refusal: the check that it did not pass, and the answer.
func (r *refused) because(why string, err error) error {
	r.why, r.err = why, err
	return r
}

func (r *refused) Error() string { return r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

// refusal is one line of the list of recent refusals. The list is a
// convenience for people in one process' memory; nothing is decided by it.
type refusal struct {
	At          ci.Time `json:"at"`
	Integration string  `json:"integration"`
	Reason      string  `json:"reason"`
	Status      int     `json:"status"`
	Detail      string  `json:"detail"`
	Event       string  `json:"event"`
	Delivery    string  `json:"delivery"`
	Bytes       int64   `json:"bytes"`
	Remote      string  `json:"remote"`
}

// keptRefusals is how many refusals the list holds.
const keptRefusals = 100

// refusals is a ring of the last refusals.
type refusals struct {
	mu   sync.Mutex
	ring [keptRefusals]refusal
	n    int // how many ever came
}

func (l *refusals) add(r refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.n%keptRefusals] = r
	l.n++
}

// last returns up to limit refusals, newest first.
func (l *refusals) last(limit int) []refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(limit, l.n, keptRefusals)
	list := make([]refusal, 0, n)
	for i := range n {
		list = append(list, l.ring[(l.n-1-i)%keptRefusals])
	}
	return list
}

// refusalsOf is how far back State counts refusals.
const refusalsOf = time.Hour

// lately counts the refusals that are kept and came after a time, those with
// the newest one first.
func (l *refusals) lately(after time.Time) (list []Refused) {
	for _, r := range l.last(keptRefusals) {
		if !r.At.After(after) {
			break
		}
		i := slices.IndexFunc(list, func(x Refused) bool { return x.Integration == r.Integration && x.Reason == r.Reason })
		if i < 0 {
			i, list = len(list), append(list, Refused{Integration: r.Integration, Reason: r.Reason, Detail: r.Detail, LastAt: r.At})
		}
		list[i].Count++
	}
	return list
}

// noteRefusal counts, logs and lists a refused delivery; other errors are not
// its business. The body is in none of them.
func (s *Server) noteRefusal(err error, c echo.Context, status int, detail string) {
	var r *refused
	if !errors.As(err, &r) {
		return
	}
	label := r.integration
	if label == "" {
		label = "unknown"
	}
	s.metrics.refusals.WithLabelValues(label, r.why).Inc()
	if status == http.StatusTooManyRequests {
		return // the list and the log are for what a person may want to look at
	}
	remote := c.Request().RemoteAddr
	attrs := []any{keyIntegration, label, keyReason, r.why, keyStatus, status, keyDetail, detail,
		keyEvent, r.event, keyDelivery, r.delivery, keyBytes, r.bytes, keyRemote, remote, keyError, err}
	if errors.As(err, new(*noRoom)) {
		left, due := s.fullRooms.tell(s.now())
		if !due {
			return // nor is it listed: it would push out what is not like it
		}
		attrs = append(attrs, keyLeftOut, left)
	}
	s.log.Warn("delivery refused", attrs...)
	s.refusals.add(refusal{
		At: ci.At(s.now()), Integration: r.integration, Reason: r.why, Status: status, Detail: detail,
		Event: r.event, Delivery: r.delivery, Bytes: r.bytes, Remote: remote,
	})
}

// GET /refusals: the last refusals that this server met since it started.
func (s *Server) listRefusals(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	return listing(c, "refusals", s.refusals.last(p.Limit), "")
}
