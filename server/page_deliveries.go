package server

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// found bounds how many deliveries of one id are listed.
const found = 50

// GET /deliveries
func (s *Server) deliveriesPage(c echo.Context) error {
	find := strings.TrimSpace(c.QueryParam("find"))
	if find == "" || wantsStream(c.Request()) {
		return s.show(c, s.fillDeliveries)
	}
	list, err := s.findDelivery(find)
	if err != nil {
		return err
	}
	if len(list) == 1 {
		return seeOther(c, web.DeliveryPath(list[0].ReceiptID()))
	}
	return s.show(c, s.fillDeliveries)
}

// findDelivery looks for a delivery's id as the provider shows it, or for a
// receipt's whole id.
func (s *Server) findDelivery(id string) ([]ci.Receipt, error) {
	list, err := s.store.FindDelivery(id, found)
	if err != nil || len(list) > 0 {
		return list, err
	}
	whole, err := ci.ParseReceiptID(id)
	if err != nil {
		return nil, nil
	}
	rec, err := s.store.Receipt(whole)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return nil, nil
	}
	return []ci.Receipt{rec}, err
}

func (s *Server) fillDeliveries(v *visit) (web.Page, error) {
	outcome, err := oneOf(v.c, "outcome", []ci.Outcome{ci.Accepted, ci.Ignored})
	if err != nil {
		return nil, err
	}
	cursor := v.c.QueryParam("cursor")
	ch, err := s.chrome(v, "Deliveries", web.SectionDeliveries, cursor == "")
	if err != nil {
		return nil, err
	}
	p := &web.DeliveriesPage{
		Chrome: ch, Find: strings.TrimSpace(v.c.QueryParam("find")), Outcome: outcome, RefusalsSince: ci.At(s.began),
	}
	for _, r := range s.refusals.last(keptRefusals) {
		p.Refusals = append(p.Refusals, pageRefusal(r))
	}
	if p.Find != "" {
		p.Receipts, err = s.findDelivery(p.Find)
		return p, err
	}
	var next string
	if p.Receipts, next, err = s.store.Receipts(outcome, store.Page{Cursor: cursor}); err != nil {
		return nil, err
	}
	p.Newest, p.Next = pager("/deliveries", url.Values{"outcome": {string(outcome)}}, cursor, next)
	return p, nil
}

func pageRefusal(r refusal) web.Refusal {
	return web.Refusal{
		At: r.At, Integration: r.Integration, Reason: r.Reason, Status: r.Status, Detail: r.Detail,
		Event: r.Event, Delivery: r.Delivery, Bytes: r.Bytes, Remote: r.Remote,
	}
}

// GET /deliveries/{integration}/{installation}/{delivery}
func (s *Server) deliveryPage(c echo.Context) error { return s.show(c, s.fillDelivery) }

func (s *Server) fillDelivery(v *visit) (web.Page, error) {
	id := receiptID(v.c)
	rec, err := s.store.Receipt(id)
	if err != nil {
		return nil, err
	}
	ch, err := s.chrome(v, "Delivery "+id.Delivery, web.SectionDeliveries, false)
	if err != nil {
		return nil, err
	}
	p := &web.DeliveryPage{Chrome: ch, Receipt: rec}
	for _, run := range rec.Runs[max(0, len(rec.Runs)-found):] {
		r, err := s.store.Run(run)
		if ci.CodeOf(err) == ci.CodeNotFound {
			continue // retention took it
		}
		if err != nil {
			return nil, err
		}
		p.Runs = append(p.Runs, web.NewRunRow(r))
	}
	p.Header, p.Body, err = s.store.ReceiptBody(id)
	switch {
	case ci.CodeOf(err) == ci.CodeNotFound:
		return p, nil // it cannot be replayed either
	case err != nil:
		return nil, err
	}
	p.BodyURL = web.DeliveryPath(id) + "/body"
	if s.config().Integration(id.Integration) != nil {
		p.Replay = v.action("replay")
	}
	now, err := s.explain(id, rec)
	if err != nil {
		return p, nil // there is nothing to say: its integration is gone
	}
	p.InForce = &now
	return p, nil
}
