package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/server/github"
	"docket/store"
	"docket/store/ci"
)

const (
	headerEvent    = "X-GitHub-Event"
	headerDelivery = "X-GitHub-Delivery"
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
	cfg := s.config()
	r, w := c.Request(), c.Response()
	ref := &refused{
		event:    knownHeader(r.Header, headerEvent),
		delivery: knownHeader(r.Header, headerDelivery),
		bytes:    max(r.ContentLength, 0),
	}
	refuse := func(why string, err error) error {
		ref.why, ref.err = why, err
		return ref
	}

	name := pathParam(c, "integration")
	in := cfg.Integration(name)
	if in == nil || !speaksGitHub(in) {
		return refuse(refusedIntegration, ci.Errorf(ci.CodeNotFound, "no integration %q takes webhooks here; its name in the configuration is the last part of the address", clip(name)))
	}
	ref.integration = in.Name
	if r.Method != http.MethodPost {
		w.Header().Set(echo.HeaderAllow, http.MethodPost)
		return refuse(refusedMethod, ci.Errorf(ci.CodeMethodNotAllowed, "a webhook is delivered by POST, not by %s", clip(r.Method)))
	}
	form, err := github.ContentType(r.Header)
	if err != nil {
		return refuse(refusedContentType, err)
	}
	body, free, err := s.readBody(w, r, cfg.Limits.Body)
	if err != nil {
		why := refusedBody
		if ci.CodeOf(err) == ci.CodeTooLarge {
			why = refusedSize
		}
		return refuse(why, err)
	}
	ref.bytes = int64(len(body))
	secret, err := github.Verify(in.WebhookSecrets, r.Header, body)
	if err != nil {
		free()
		w.Header().Set(echo.HeaderWWWAuthenticate, "X-Hub-Signature-256")
		return refuse(refusedSignature, err)
	}

	// From here on the sender holds the secret.
	kind, err := oneHeader(r.Header, headerEvent)
	if err != nil {
		return refuse(refusedHeader, err)
	}
	id, err := oneHeader(r.Header, headerDelivery)
	if err != nil {
		return refuse(refusedHeader, err)
	}
	event, err := parse(r.Header.Get(echo.HeaderContentType), kind, body)
	if err != nil {
		return refuse(refusedJSON, err)
	}
	d := ci.Delivery{
		Integration: in.Name, Installation: event.Installation, ID: id, Event: kind,
		Header: keptHeaders(r.Header, form), Body: body, Secret: secret, ReceivedAt: s.now(),
	}
	v, err := s.judge(cfg, in, &event, d.ReceiptID())
	if err != nil {
		why := refusedRepository
		if v.installation {
			why = refusedInstallation
		}
		return refuse(why, err)
	}
	sum := sha256.Sum256(body)
	d.BodySHA256 = hex.EncodeToString(sum[:])

	// Who hangs up now does not decide what is written: the commit is under
	// way, and the body must not be reused before it is done.
	a, err := s.store.Accept(context.WithoutCancel(r.Context()), store.Acceptance{
		Delivery: d, Event: event, Reason: v.reason, Drafts: v.drafts,
		Projects: v.pin, Cancels: v.cancels, RefuseReplay: v.refuseReplay,
	})
	switch ci.CodeOf(err) {
	case "":
		free()
		return s.answerDelivery(c, cfg, kind, a)
	case ci.CodeConflict:
		return refuse(refusedConflict, err)
	case ci.CodeForbidden:
		return refuse(refusedRepository, err)
	}
	s.metrics.delivery(in.Name, kind, "failed")
	return err
}

func (s *Server) answerDelivery(c echo.Context, cfg *ci.Config, kind string, a store.Accepted) error {
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
	s.metrics.delivery(a.Receipt.Integration, kind, outcome)
	s.log.Info("delivery "+outcome, keyReceipt, a.Receipt.ID, keyEvent, kind, keyRuns, a.Receipt.Runs, keyReason, a.Receipt.Reason)
	return c.JSON(status, out)
}

// speaksGitHub reports whether an integration's webhooks are GitHub's.
func speaksGitHub(in *ci.Integration) bool { return in.Provider == "" || in.Provider == "github" }

// parse reads the payload out of the body and the event out of the payload.
func parse(contentType, kind string, body []byte) (ci.Event, error) {
	payload, err := github.Payload(contentType, body)
	if err != nil {
		return ci.Event{}, err
	}
	return github.Parse(kind, payload)
}

// oneHeader returns the one value of a header that a delivery must have.
func oneHeader(h http.Header, name string) (string, error) {
	v := h.Values(name)
	if len(v) == 0 {
		return "", ci.Errorf(ci.CodeMalformed, "the header %s is missing; every delivery has one", name)
	}
	if len(v) > 1 {
		return "", ci.Errorf(ci.CodeMalformed, "the header %s is there %d times; want one", name, len(v))
	}
	if !ci.PrintableHeader(v[0]) {
		return "", ci.Errorf(ci.CodeMalformed, "the header %s is not 1 to %d printable ASCII characters", name, ci.MaxHeaderValue)
	}
	return v[0], nil
}

// keptHeaders returns the headers worth keeping beside a body: what kind of
// text it is, and what the provider says about the hook. Signatures are not
// kept: they would help to guess the secret. None is longer than an id may be.
func keptHeaders(h http.Header, form bool) map[string]string {
	kept := make(map[string]string, 8)
	for name, v := range h {
		wanted := name == "User-Agent" || name == echo.HeaderContentType ||
			len(kept) < 16 && len(name) < 64 && strings.HasPrefix(name, "X-Github-")
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
