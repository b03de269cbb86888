package store

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"docket/store/ci"
)

// The recoveries bucket has, of each integration, how far it was compared with
// its provider, under its name; and the deliveries that were found to be
// missing, under its name and the id that the receipt will have.

func gapID(seq uint64) string { return "gap-" + strconv.FormatUint(seq, 10) }

func missedPrefix(integration string) []byte { return append([]byte(integration), 0) }

func missedKey(m *ci.MissedDelivery) []byte {
	return append(missedPrefix(m.Integration), m.Receipt...)
}

// KnownReceipts tells which of these deliveries have a receipt. A provider may
// list a delivery without the installation that it names, or the other way
// round: one with the same id from another installation of the integration
// counts too. It costs as much as there are installations.
func (s *Store) KnownReceipts(ids []ci.ReceiptID) (known map[ci.ReceiptID]bool, err error) {
	known = map[ci.ReceiptID]bool{}
	err = s.view(func(t *tx) error {
		from := map[string][]string{} // integration -> installations
		for _, id := range ids {
			if t.get(bucketIdentities, identityKey(id)) != nil {
				known[id] = true
				continue
			}
			if _, ok := from[id.Integration]; !ok {
				from[id.Integration] = []string{}
				err := t.installations(missedPrefix(id.Integration), func(_, installation string) (bool, error) {
					from[id.Integration] = append(from[id.Integration], installation)
					return true, nil
				})
				if err != nil {
					return err
				}
			}
			for _, in := range from[id.Integration] {
				if t.get(bucketIdentities, identityKey(ci.ReceiptID{Integration: id.Integration, Installation: in, Delivery: id.Delivery})) != nil {
					known[id] = true
				}
			}
		}
		return nil
	})
	return known, err
}

// Recovery returns how far an integration was compared; the zero record, with
// its name, before the first time.
func (s *Store) Recovery(integration string) (r ci.Recovery, err error) {
	err = s.view(func(t *tx) error {
		r = ci.Recovery{Integration: integration, Hooks: []ci.HookState{}, Projects: []ci.ProjectHeads{}}
		v := t.get(bucketRecoveries, []byte(integration))
		if v == nil {
			return nil
		}
		r, err = decodeJSON[ci.Recovery]("recovery", v)
		return err
	})
	return r, err
}

// Missed returns the deliveries of an integration that are on record as
// missed, at most limit; 0 means all.
func (s *Store) Missed(integration string, limit int) (list []ci.MissedDelivery, err error) {
	list = []ci.MissedDelivery{}
	err = s.view(func(t *tx) error {
		prefix := missedPrefix(integration)
		c := t.bucket(bucketRecoveries).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && (limit == 0 || len(list) < limit); k, v = c.Next() {
			m, err := decodeJSON[ci.MissedDelivery]("missed delivery", v)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		return nil
	})
	return list, err
}

// MissedCounts counts the missed deliveries of an integration: those that are
// still asked for, and those that are not.
func (s *Store) MissedCounts(integration string) (waiting, gaveUp int, err error) {
	list, err := s.Missed(integration, 0)
	for i := range list {
		if list[i].GaveUp == "" {
			waiting++
		} else {
			gaveUp++
		}
	}
	return waiting, gaveUp, err
}

// Comparison is what one comparison of deliveries changes.
type Comparison struct {
	Changed, Arrived, Expired, GaveUp []ci.MissedDelivery
}

// recovery is who decides here.
func recovery() ci.By { return ci.By{Kind: ci.ByScheduler, Name: "recovery"} }

// RecordComparison writes what a comparison of deliveries found, in one
// commit: the missed ones, those that arrived, and a decision on each that is
// given up. The gaps that they were made in are told.
func (s *Store) RecordComparison(ctx context.Context, c Comparison) error {
	if len(c.Changed)+len(c.Arrived)+len(c.Expired) == 0 {
		return nil
	}
	return s.update(ctx, func(t *tx) error {
		for i := range c.Changed {
			m := &c.Changed[i]
			if t.get(bucketRecoveries, missedKey(m)) == nil {
				if err := t.inGap(m.FirstAt, func(g *ci.Gap) { g.Missed++ }); err != nil {
					return err
				}
			}
			if err := t.put(bucketRecoveries, missedKey(m), mustJSON(m)); err != nil {
				return err
			}
		}
		for i := range c.Arrived {
			m := &c.Arrived[i]
			if t.get(bucketRecoveries, missedKey(m)) == nil {
				continue
			}
			if err := t.delete(bucketRecoveries, missedKey(m)); err != nil {
				return err
			}
			if err := t.inGap(m.FirstAt, func(g *ci.Gap) { g.Recovered++ }); err != nil {
				return err
			}
		}
		for i := range c.Expired {
			if err := t.delete(bucketRecoveries, missedKey(&c.Expired[i])); err != nil {
				return err
			}
		}
		for i := range c.GaveUp {
			m := &c.GaveUp[i]
			if err := t.inGap(m.FirstAt, func(g *ci.Gap) { g.GaveUp++ }); err != nil {
				return err
			}
			if err := t.decide(ci.Decision{
				Kind: ci.DecisionUnrecovered, Receipt: m.Receipt, Integration: m.Integration, By: recovery(),
				Reason: eventName(m) + ": " + m.GaveUp,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func eventName(m *ci.MissedDelivery) string {
	if m.Action == "" {
		return m.Event
	}
	return m.Event + "." + m.Action
}

// PutMissed writes a missed delivery as it is, before the provider is asked
// for it or after it could not be.
func (s *Store) PutMissed(ctx context.Context, m ci.MissedDelivery) error {
	return s.update(ctx, func(t *tx) error {
		return t.put(bucketRecoveries, missedKey(&m), mustJSON(m))
	})
}

// AskedFor records the decision that a delivery was asked for again.
func (s *Store) AskedFor(ctx context.Context, m ci.MissedDelivery, by ci.By, reason string) error {
	if by.Kind == "" {
		by = recovery()
	}
	return s.update(ctx, func(t *tx) error {
		return t.decide(ci.Decision{
			Kind: ci.DecisionRecovered, Receipt: m.Receipt, Integration: m.Integration, By: by,
			Reason: eventName(&m) + ": " + reason,
		})
	})
}

// RecordRecovery writes how far an integration was compared. compared says
// that its deliveries were: gaps that ended before are told.
func (s *Store) RecordRecovery(ctx context.Context, r ci.Recovery, compared bool) error {
	return s.update(ctx, func(t *tx) error {
		if compared {
			if err := t.gapsCompared(); err != nil {
				return err
			}
		}
		return t.put(bucketRecoveries, []byte(r.Integration), mustJSON(r))
	})
}

// gapsCompared notes in the newest gaps that a comparison has been made since.
func (t *tx) gapsCompared() error {
	var list []ci.Gap
	c := t.bucket(bucketGaps).Cursor()
	var keys [][]byte
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		g, err := decodeJSON[ci.Gap]("gap", v)
		if err != nil {
			return err
		}
		if !g.ComparedAt.IsZero() {
			break // and so were those before
		}
		list, keys = append(list, g), append(keys, bytes.Clone(k))
	}
	for i := range list {
		list[i].ComparedAt = ci.At(t.now)
		if err := t.put(bucketGaps, keys[i], mustJSON(list[i])); err != nil {
			return err
		}
	}
	return nil
}

// recoveries ensures that each record lies where it belongs, and that nothing
// is on record as missed under another name than its own.
func (v *verifier) recoveries() error {
	if v.t.bucket(bucketRecoveries) == nil {
		return nil // of a store that no docket has written to since before there were any
	}
	return v.each(bucketRecoveries, func(k, val []byte) error {
		if bytes.IndexByte(k, 0) < 0 {
			r, err := decodeJSON[ci.Recovery]("recovery", val)
			if err != nil || r.Integration != string(k) {
				v.broken("recovery of %q: it says %q, %v", k, r.Integration, err)
			}
			return nil
		}
		m, err := decodeJSON[ci.MissedDelivery]("missed delivery", val)
		if err != nil || !bytes.Equal(missedKey(&m), k) || !strings.HasPrefix(m.Receipt, m.Integration+"/") {
			v.broken("missed delivery %q: it says %q of %q, %v", k, m.Receipt, m.Integration, err)
		}
		return nil
	})
}
