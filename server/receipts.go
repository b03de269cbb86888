package server

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"docket/scheduler/pipeline"
	"docket/store"
	"docket/store/ci"
)

func receiptID(c echo.Context) ci.ReceiptID {
	return ci.ReceiptID{
		Integration:  pathParam(c, "integration"),
		Installation: pathParam(c, "installation"),
		Delivery:     pathParam(c, "delivery"),
	}
}

// publicReceipt gives empty lists where a receipt has none.
func (s *Server) publicReceipt(r ci.Receipt) ci.Receipt {
	r.Runs = slices.Concat([]string{}, r.Runs)
	r.Verdicts = slices.Concat([]ci.Verdict{}, r.Verdicts)
	if s.traces != nil {
		r.TraceID = s.traces.Receipt(r.ID)
	}
	return r
}

// GET /receipts
func (s *Server) listReceipts(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	outcome, err := oneOf(c, "outcome", []ci.Outcome{ci.Accepted, ci.Ignored})
	if err != nil {
		return err
	}
	list, next, err := s.store.Receipts(outcome, p)
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = s.publicReceipt(list[i])
	}
	return listing(c, "receipts", list, next)
}

// GET /receipts/{integration}/{installation}/{delivery}
func (s *Server) getReceipt(c echo.Context) error {
	r, err := s.store.Receipt(receiptID(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.publicReceipt(r))
}

// GET …/body answers with the exact bytes. They came from outside, so a
// browser is told to save them, not to show them; their own content type is in
// X-Docket-Content-Type.
func (s *Server) getReceiptBody(c echo.Context) error {
	header, body, err := s.store.ReceiptBody(receiptID(c))
	if err != nil {
		return err
	}
	h := c.Response().Header()
	if t := header[echo.HeaderContentType]; t != "" {
		h.Set("X-Docket-Content-Type", t)
	}
	h.Set(echo.HeaderContentDisposition, `attachment; filename="body"`)
	h.Set(echo.HeaderContentType, echo.MIMEOctetStream)
	c.Response().WriteHeader(http.StatusOK)
	_, _ = newStream(c).Write(body) // who went away is told nothing
	return nil
}

// POST …/replay judges a stored delivery again, under the configuration in
// force, and starts what it would start now, also if it had started runs
// before. An idempotency key may be given and makes a repeat harmless.
func (s *Server) replayReceipt(c echo.Context) error {
	id := receiptID(c)
	key, err := idempotencyKey(c, false)
	if err != nil {
		return err
	}
	if err := decode(c, &struct{}{}); err != nil {
		return err
	}
	rec, again, err := s.replay(c, id, key, "")
	if err != nil {
		return err
	}
	replayed(c, again)
	return c.JSON(http.StatusOK, s.publicReceipt(rec))
}

// replay judges a stored delivery again; said is what somebody says about why.
func (s *Server) replay(c echo.Context, id ci.ReceiptID, key, said string) (rec ci.Receipt, again bool, err error) {
	if rec, err = s.store.Receipt(id); err != nil {
		return rec, false, err
	}
	v, err := s.judgeAgain(id, rec)
	if err != nil {
		return rec, false, err
	}
	return s.store.Replay(c.Request().Context(), store.Replay{ID: id, Key: key, By: by(c), Reason: v.Reason, Said: said, Drafts: v.Drafts, Reruns: v.Reruns})
}

// judgeAgain judges a receipt's stored bytes. CodeConflict: the configuration
// has no place for it any more.
func (s *Server) judgeAgain(id ci.ReceiptID, rec ci.Receipt) (pipeline.Judgement, error) {
	_, v, err := s.judgeStored(id, rec)
	if ci.CodeOf(err) == ci.CodeForbidden {
		return pipeline.Judgement{}, ci.Wrap(ci.CodeConflict, err, "%s", ci.MessageOf(err))
	}
	for i := range v.Drafts {
		v.Drafts[i].Cause.Kind = ci.CauseReplay
	}
	return v, err
}

// judgeStored reads a receipt's stored bytes and judges them under the
// configuration in force. CodeConflict: its integration is gone.
func (s *Server) judgeStored(id ci.ReceiptID, rec ci.Receipt) (e ci.Event, v pipeline.Judgement, err error) {
	cfg := s.config()
	in := cfg.Integration(id.Integration)
	d, ok := dialectOf(in)
	if !ok {
		return e, v, ci.Errorf(ci.CodeConflict, "the integration %q is not configured any more, so its deliveries cannot be judged again", id.Integration)
	}
	header, body, err := s.store.ReceiptBody(id)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return e, v, ci.Wrap(ci.CodeConflict, err, "%s, so that it cannot be judged again; let the provider redeliver it", ci.MessageOf(err))
	}
	if err != nil {
		return e, v, err
	}
	if e, err = d.read(header[echo.HeaderContentType], rec.Event, body); err != nil {
		return e, v, err
	}
	v, err = s.judge(cfg, in, &e, id)
	return e, v, err
}

// explained is a receipt's judgement then and now.
type explained struct {
	Receipt string         `json:"receipt"`
	Then    ci.Verdict     `json:"then"` // the newest that is on record
	Runs    []string       `json:"runs"`
	Now     ci.Explanation `json:"now"`
}

// GET …/explain says what a stored delivery would lead to under the
// configuration in force, for each project, beside what it led to.
func (s *Server) explainReceipt(c echo.Context) error {
	id := receiptID(c)
	rec, err := s.store.Receipt(id)
	if err != nil {
		return err
	}
	now, err := s.explain(id, rec)
	if err != nil {
		return err
	}
	x := explained{Receipt: rec.ID, Runs: s.publicReceipt(rec).Runs, Now: now}
	if n := len(rec.Verdicts); n > 0 {
		x.Then = rec.Verdicts[n-1]
	}
	return c.JSON(http.StatusOK, x)
}

// explain says what a stored delivery would lead to now.
func (s *Server) explain(id ci.ReceiptID, rec ci.Receipt) (ci.Explanation, error) {
	e, v, err := s.judgeStored(id, rec)
	if err != nil && ci.CodeOf(err) != ci.CodeForbidden {
		return ci.Explanation{}, err
	}
	return pipeline.Explain(&e, rec.ID, &v, err), nil
}
