package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// delivered is the answer to a delivery that is on record.
type delivered struct {
	Receipt   string         `json:"receipt"`
	Outcome   ci.Outcome     `json:"outcome"`
	Duplicate bool           `json:"duplicate"`
	Reason    string         `json:"reason,omitempty"`
	Runs      []deliveredRun `json:"runs"`
}

type deliveredRun struct {
	ID      string `json:"id"`
	Project string `json:"project"`
	Number  uint64 `json:"number"`
	URL     string `json:"url"`
}

// hook is POST /hooks/{integration}. The order of the checks is promised: a
// body is never decoded before its signature holds, and a refusal stores
// nothing, so nobody can use up a delivery's id.
func (s *Server) hook(c echo.Context) error {
	watch, cfg := s.stopwatch(), s.config()
	ref := &refused{bytes: max(c.Request().ContentLength, 0)}
	ref.event, ref.delivery = claimed(c.Request().Header)
	m, err := s.receive(c, cfg, ref)
	if err != nil {
		return err
	}
	defer m.leave()
	watch.mark(&watch.verified)
	event, err := m.open(ref)
	if err != nil {
		return err
	}
	v, err := s.judge(cfg, m.in, &event, m.delivery.ReceiptID())
	switch {
	case err != nil && v.Installation:
		return ref.because(refusedInstallation, err)
	case ci.CodeOf(err) == ci.CodeForbidden:
		return ref.because(refusedRepository, err)
	case err != nil:
		return err
	}
	watch.mark(&watch.judged)
	// Who hangs up now does not decide what is written: the commit is under
	// way, and the body must not be reused before it is done.
	a, err := s.store.Accept(context.WithoutCancel(c.Request().Context()), store.Acceptance{
		Delivery: m.delivery, Event: event, Reason: v.Reason, Drafts: v.Drafts, Reruns: v.Reruns,
		Projects: v.Pin, Cancels: v.Cancels, RefuseReplay: v.RefuseReplay,
	})
	watch.mark(&watch.committed)
	switch ci.CodeOf(err) {
	case "":
		m.free()
		err := s.answerDelivery(c, cfg, a)
		s.traceDelivery(&watch, c, &m.delivery, &a, nil)
		return err
	case ci.CodeConflict:
		return ref.because(refusedConflict, err)
	case ci.CodeForbidden:
		return ref.because(refusedRepository, err)
	}
	s.metrics.delivery(m.in.Name, m.delivery.Event, "failed")
	s.traceDelivery(&watch, c, &m.delivery, &a, err)
	return err
}

// message is a delivery on its way through the checks.
type message struct {
	in       *ci.Integration
	dialect  dialect
	delivery ci.Delivery
	header   http.Header
	free     func() // gives the body's buffer back
	leave    func() // gives the room back that the body takes
}

// receive makes the checks that need no look into the body: who it is for,
// how it came, how large it is, and whether its signature holds.
func (s *Server) receive(c echo.Context, cfg *ci.Config, ref *refused) (*message, error) {
	r, w := c.Request(), c.Response()
	name := pathParam(c, "integration")
	in := cfg.Integration(name)
	d, ok := dialectOf(in)
	if !ok {
		return nil, ref.because(refusedIntegration, ci.Errorf(ci.CodeNotFound, "no integration %q takes webhooks here; its name in the configuration is the last part of the address", clip(name)))
	}
	ref.integration = in.Name
	ref.event, ref.delivery = d.known(r.Header)
	if r.Method != http.MethodPost {
		w.Header().Set(echo.HeaderAllow, http.MethodPost)
		return nil, ref.because(refusedMethod, ci.Errorf(ci.CodeMethodNotAllowed, "a webhook is delivered by POST, not by %s", clip(r.Method)))
	}
	form, err := d.contentType(r.Header)
	if err != nil {
		return nil, ref.because(refusedContentType, err)
	}
	if s.hopeless(r) {
		w.Header().Set(echo.HeaderConnection, "close")
		return nil, ref.because(refusedSignature, ci.Errorf(ci.CodeUnauthenticated, "the delivery is not signed; give the webhook the integration's secret"))
	}
	body, free, leave, err := s.takeBody(w, r, cfg.Limits.Body)
	if ci.CodeOf(err) == ci.CodeTooLarge {
		return nil, ref.because(refusedSize, err)
	}
	if err != nil {
		return nil, ref.because(refusedBody, err)
	}
	ref.bytes = int64(len(body))
	secret, err := d.verify(in.WebhookSecrets, r.Header, body)
	if err != nil {
		free()
		leave()
		w.Header().Set(echo.HeaderWWWAuthenticate, d.challenge)
		return nil, ref.because(refusedSignature, err)
	}
	return &message{
		in: in, dialect: d, header: r.Header, free: free, leave: leave,
		delivery: ci.Delivery{Integration: in.Name, Header: d.headers(r.Header, form), Body: body, Secret: secret, ReceivedAt: s.now()},
	}, nil
}

// open reads a message whose signature holds: its headers first, then its body.
func (m *message) open(ref *refused) (e ci.Event, err error) {
	d := &m.delivery
	if d.Event, d.ID, err = m.dialect.identify(m.header); err != nil {
		return e, ref.because(refusedHeader, err)
	}
	if e, err = m.dialect.read(m.header.Get(echo.HeaderContentType), d.Event, d.Body); err != nil {
		return e, ref.because(refusedJSON, err)
	}
	d.Installation = e.Installation
	sum := sha256.Sum256(d.Body)
	d.BodySHA256 = hex.EncodeToString(sum[:])
	return e, nil
}

func (s *Server) answerDelivery(c echo.Context, cfg *ci.Config, a store.Accepted) error {
	out := delivered{
		Receipt: a.Receipt.ID, Outcome: a.Receipt.Outcome, Duplicate: a.Duplicate,
		Runs: make([]deliveredRun, 0, len(a.Runs)),
	}
	if out.Outcome == ci.Ignored {
		out.Reason = a.Receipt.Reason
	}
	for _, r := range a.Runs {
		out.Runs = append(out.Runs, deliveredRun{r.ID, r.Project, r.Number, cfg.RunURL(r.ID)})
	}
	status, outcome := http.StatusAccepted, string(out.Outcome)
	if a.Duplicate {
		status, outcome = http.StatusOK, "duplicate"
	}
	s.metrics.delivery(a.Receipt.Integration, a.Receipt.Event, outcome)
	s.log.Info("delivery "+outcome, keyReceipt, a.Receipt.ID, keyEvent, a.Receipt.Event, keyRuns, a.Receipt.Runs, keyReason, a.Receipt.Reason)
	return c.JSON(status, out)
}

// headers returns the headers worth keeping beside a body: what kind of text it
// is, and what the provider says about the hook. None is longer than an id may
// be.
func (d dialect) headers(h http.Header, form bool) map[string]string {
	kept := make(map[string]string, 8)
	for name, v := range h {
		wanted := name == "User-Agent" || name == echo.HeaderContentType ||
			len(kept) < 16 && len(name) < 64 && d.keeps(name)
		if wanted && len(v) == 1 && ci.PrintableHeader(v[0]) {
			kept[name] = v[0]
		}
	}
	if kept[echo.HeaderContentType] == "" { // too long to keep, but needed to read the body again
		kept[echo.HeaderContentType] = echo.MIMEApplicationJSON
		if form {
			kept[echo.HeaderContentType] = echo.MIMEApplicationForm
		}
	}
	return kept
}

// clip bounds text from outside for a sentence that quotes it.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
