package recovery

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"docket/store/ci"
)

// Delivery is one attempt to deliver an event, as the provider lists it. All
// attempts of one delivery have its GUID.
type Delivery struct {
	ID           int64
	GUID         string
	Event        string
	Action       string
	Status       string // the provider's words
	StatusCode   int    // of the answer; 0 for none
	DeliveredAt  time.Time
	Redelivery   bool
	Installation int64 // 0: none
	Repository   int64 // the provider's id, 0 if it is not told
}

// MaxAsks is how often a delivery is asked for by itself.
const MaxAsks = 3

// Waits after the first, second and third time of asking, in rounds.
var waits = [MaxAsks]time.Duration{2, 6, 12}

// Listing is what one hook's deliveries are compared by.
type Listing struct {
	Now         time.Time
	Integration string
	Hook        ci.Hook
	Attempts    []Delivery // in any order
	// Known are the deliveries that have a receipt, asked for after the
	// attempts were listed.
	Known map[ci.ReceiptID]bool
	// Missed are the hook's deliveries that are on record as missed.
	Missed []ci.MissedDelivery
	// Floor: what was answered with success before it is not asked for, since
	// its receipt may have been removed, or given by another store.
	Floor time.Time
	// Up is when this life of docket began. An ask that went unanswered because
	// docket was away before that does not count.
	Up time.Time
	// Ours reports whether a repository and an installation are configured; nil: all are.
	Ours func(repository, installation int64) bool
	// Every is how often a comparison is made.
	Every time.Duration
	// Again asks at once, and also for what was given up: a person's word.
	Again bool
}

// Outcome is what a comparison of deliveries leads to.
type Outcome struct {
	Changed []ci.MissedDelivery // to be put on record
	Arrived []ci.MissedDelivery // have a receipt by now
	Expired []ci.MissedDelivery // too old to be kept on record
	GaveUp  []ci.MissedDelivery // of Changed: not asked for any more from now on
	Due     []ci.MissedDelivery // to be asked for now, the oldest first
	Missed  int                 // all that have no receipt, those that were given up left out
	Recent  bool                // one of them was asked for so lately that it may be on its way
	Foreign int                 // deliveries of repositories or installations that are not ours
}

// keptMissed is how long a missed delivery that was given up is shown: longer
// than any provider keeps it.
const keptMissed = 7 * 24 * time.Hour

// Identities returns the receipts that a comparison has to know about.
func Identities(integration string, attempts []Delivery, missed []ci.MissedDelivery) []ci.ReceiptID {
	seen := map[ci.ReceiptID]bool{}
	var list []ci.ReceiptID
	add := func(id ci.ReceiptID) {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	for i := range attempts {
		add(ci.NewReceiptID(integration, attempts[i].Installation, attempts[i].GUID))
	}
	for i := range missed {
		if id, err := ci.ParseReceiptID(missed[i].Receipt); err == nil {
			add(id)
		}
	}
	return list
}

// Deliveries compares a hook's listed attempts with the receipts.
func Deliveries(l Listing) Outcome {
	var out Outcome
	record := map[ci.ReceiptID]*ci.MissedDelivery{}
	for i := range l.Missed {
		id, err := ci.ParseReceiptID(l.Missed[i].Receipt)
		if err != nil {
			continue
		}
		m := l.Missed[i]
		record[id] = &m
		switch {
		case l.Known[id]:
			out.Arrived = append(out.Arrived, m)
			delete(record, id)
		case l.Now.Sub(m.FirstAt.Time) > keptMissed:
			out.Expired = append(out.Expired, m)
			delete(record, id)
		}
	}
	changed := map[ci.ReceiptID]bool{}
	for id, attempts := range byIdentity(l.Integration, l.Attempts) {
		if l.Known[id] {
			continue
		}
		newest := attempts[len(attempts)-1]
		if l.Ours != nil && !l.Ours(newest.Repository, newest.Installation) {
			out.Foreign++
			continue
		}
		m := record[id]
		if m == nil && !answered(attempts, l.Floor) {
			m = &ci.MissedDelivery{
				Receipt: id.String(), Integration: l.Integration, Hook: l.Hook, Event: newest.Event, Action: newest.Action,
				FirstAt: ci.At(attempts[0].DeliveredAt),
			}
			record[id] = m
		}
		if m != nil && note(m, attempts[0], newest) {
			changed[id] = true
		}
	}
	for id, m := range record {
		if l.judge(m) {
			changed[id] = true
			if m.GaveUp != "" {
				out.GaveUp = append(out.GaveUp, *m)
			}
		}
		if changed[id] {
			out.Changed = append(out.Changed, *m)
		}
		if m.GaveUp != "" {
			continue
		}
		out.Missed++
		if !m.NextAt.After(l.Now) {
			out.Due = append(out.Due, *m)
		} else if l.Now.Sub(m.AskedAt.Time) <= 2*l.Every {
			out.Recent = true
		}
	}
	for _, list := range [][]ci.MissedDelivery{out.Changed, out.Arrived, out.GaveUp, out.Due} {
		slices.SortFunc(list, func(a, b ci.MissedDelivery) int {
			return cmp.Or(a.FirstAt.Compare(b.FirstAt.Time), cmp.Compare(a.Receipt, b.Receipt))
		})
	}
	return out
}

// byIdentity groups attempts by delivery, each group in order of time. What
// has no usable id can never have a receipt.
func byIdentity(integration string, attempts []Delivery) map[ci.ReceiptID][]Delivery {
	groups := map[ci.ReceiptID][]Delivery{}
	for _, d := range attempts {
		if !ci.PrintableHeader(d.GUID) {
			continue
		}
		id := ci.NewReceiptID(integration, d.Installation, d.GUID)
		groups[id] = append(groups[id], d)
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b Delivery) int {
			return cmp.Or(a.DeliveredAt.Compare(b.DeliveredAt), cmp.Compare(a.ID, b.ID))
		})
	}
	return groups
}

// answered reports whether a delivery was taken before the floor.
func answered(attempts []Delivery, floor time.Time) bool {
	return slices.ContainsFunc(attempts, func(d Delivery) bool {
		return d.StatusCode >= 200 && d.StatusCode < 300 && d.DeliveredAt.Before(floor)
	})
}

// note brings a record up to the newest attempt and reports whether that
// changed it.
func note(m *ci.MissedDelivery, first, newest Delivery) bool {
	if m.ProviderID == newest.ID && m.ProviderID != 0 || newest.DeliveredAt.Before(m.LastAt.Time) {
		return false
	}
	if at := ci.At(first.DeliveredAt); at.Before(m.FirstAt.Time) {
		m.FirstAt = at
	}
	m.ProviderID, m.LastAt = newest.ID, ci.At(newest.DeliveredAt)
	m.StatusCode, m.Status = newest.StatusCode, newest.Status
	return true
}

// judge decides whether a missed delivery is asked for again, and reports
// whether that changed its record.
func (l *Listing) judge(m *ci.MissedDelivery) (changed bool) {
	if l.Again && (m.GaveUp != "" || m.Asked > 0) {
		m.GaveUp, m.Asked, m.NextAt = "", 0, ci.Time{}
		return true
	}
	if m.GaveUp != "" {
		return false
	}
	if m.Asked > 0 && m.AskedAt.Before(l.Up) && !Refused(m.StatusCode) {
		m.Asked, changed = 0, true
	}
	switch {
	case m.Asked > 0 && Refused(m.StatusCode) && (m.LastAt.After(m.AskedAt.Time) || !m.NextAt.After(l.Now)):
		m.GaveUp = fmt.Sprintf("docket refused it with %s, also when it was asked for again", answer(m))
	case m.Asked >= MaxAsks && !m.NextAt.After(l.Now):
		m.GaveUp = fmt.Sprintf("it was asked for %d times and did not arrive; the last answer was %s", m.Asked, answer(m))
	default:
		return changed
	}
	return true
}

// Refused reports whether a status is docket's own no to a delivery: it will
// be the same until somebody changes the configuration or the webhook.
func Refused(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// Wait is how long after the nth time of asking (from 1) a delivery may be
// asked for again.
func Wait(n int, every time.Duration) time.Duration {
	return waits[min(max(n, 1), MaxAsks)-1] * every
}

// Answer says what the newest attempt of a delivery was answered.
func Answer(m *ci.MissedDelivery) string { return answer(m) }

func answer(m *ci.MissedDelivery) string {
	switch {
	case m.StatusCode != 0 && http.StatusText(m.StatusCode) != "":
		return fmt.Sprintf("%d %s", m.StatusCode, http.StatusText(m.StatusCode))
	case m.StatusCode != 0:
		return fmt.Sprint(m.StatusCode)
	case m.Status != "":
		return fmt.Sprintf("none (%s)", m.Status)
	}
	return "none"
}
