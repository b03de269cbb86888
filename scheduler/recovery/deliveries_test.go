package recovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/scheduler/recovery"
	"docket/store/ci"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// attempt is one of GUID g with an answer, made some time ago.
func attempt(id int64, g string, status int, before time.Duration) recovery.Delivery {
	return recovery.Delivery{ID: id, GUID: g, Event: "push", StatusCode: status, DeliveredAt: ago(before), Repository: 7}
}

func receipt(g string) ci.ReceiptID { return ci.NewReceiptID("github", 0, g) }

// missed is a record of a delivery that was asked for.
func missed(g string, status, asked int, askedBefore, due time.Duration) ci.MissedDelivery {
	m := ci.MissedDelivery{
		Receipt: receipt(g).String(), Integration: "github", Event: "push", ProviderID: 1, StatusCode: status,
		FirstAt: ci.At(ago(3 * time.Hour)), LastAt: ci.At(ago(3 * time.Hour)), Asked: asked,
	}
	if asked > 0 {
		m.AskedAt, m.NextAt = ci.At(ago(askedBefore)), ci.At(now.Add(due))
	}
	return m
}

// Ensure that what is asked for is what failed or is not known, once each
// however often it was attempted, and nothing else.
func TestDeliveries(t *testing.T) {
	const min, hour = time.Minute, time.Hour
	gone := missed("a", 502, 0, 0, 0)
	gone.GaveUp = "it was refused"
	old := gone
	old.FirstAt = ci.At(ago(8 * 24 * hour))
	for _, row := range []struct {
		name     string
		attempts []recovery.Delivery
		known    string
		missed   []ci.MissedDelivery
		change   func(*recovery.Listing)
		due      string // GUIDs
		changed  string
		arrived  string
		gaveUp   string
		expired  string
		foreign  int
		count    int
		recent   bool
	}{
		{name: "one that has a receipt is left alone", attempts: []recovery.Delivery{attempt(1, "a", 202, min)}, known: "a"},
		{name: "one that failed is asked for", attempts: []recovery.Delivery{attempt(1, "a", 0, min)}, due: "a", changed: "a", count: 1},
		{name: "one that was answered with success and is not known is asked for", attempts: []recovery.Delivery{attempt(1, "a", 202, min)}, due: "a", changed: "a", count: 1},
		{name: "but not one of before this store", attempts: []recovery.Delivery{attempt(1, "a", 202, min)},
			change: func(l *recovery.Listing) { l.Floor = now }},
		{name: "unless it failed", attempts: []recovery.Delivery{attempt(1, "a", 500, min)},
			change: func(l *recovery.Listing) { l.Floor = now }, due: "a", changed: "a", count: 1},
		{name: "several attempts of one are one", attempts: []recovery.Delivery{attempt(3, "a", 502, min), attempt(2, "a", 0, 2*min), attempt(1, "b", 0, hour), attempt(4, "b", 500, 2*min)},
			due: "b a", changed: "b a", count: 2},
		{name: "a redelivery that arrived settles it", attempts: []recovery.Delivery{attempt(2, "a", 202, min), attempt(1, "a", 0, hour)}, known: "a",
			missed: []ci.MissedDelivery{missed("a", 0, 1, 5*min, 5*min)}, arrived: "a"},
		{name: "one that was asked for is waited for", attempts: []recovery.Delivery{attempt(1, "a", 0, 3*hour)},
			missed: []ci.MissedDelivery{missed("a", 0, 1, 5*min, 5*min)}, count: 1, recent: true},
		{name: "and asked for again when it is due", missed: []ci.MissedDelivery{missed("a", 0, 1, 11*min, -min)}, due: "a", count: 1},
		{name: "three times and no more", missed: []ci.MissedDelivery{missed("a", 502, 3, 61*min, -min)}, gaveUp: "a", changed: "a"},
		{name: "not before the last one had its time", missed: []ci.MissedDelivery{missed("a", 502, 3, 11*min, 49*min)}, count: 1},
		{name: "times of asking before docket came back do not count", missed: []ci.MissedDelivery{missed("a", 0, 3, 61*min, -min)},
			change: func(l *recovery.Listing) { l.Up = ago(2 * min) }, due: "a", changed: "a", count: 1},
		{name: "though it waits as long", missed: []ci.MissedDelivery{missed("a", 0, 1, 5*min, 5*min)},
			change: func(l *recovery.Listing) { l.Up = ago(2 * min) }, changed: "a", count: 1, recent: true},
		{name: "what docket refused is asked for once", attempts: []recovery.Delivery{attempt(1, "a", 401, min)}, due: "a", changed: "a", count: 1},
		{name: "and given up when it is refused again", attempts: []recovery.Delivery{attempt(2, "a", 401, min)},
			missed: []ci.MissedDelivery{missed("a", 401, 1, 2*min, 8*min)}, gaveUp: "a", changed: "a"},
		{name: "also where docket was restarted meanwhile", attempts: []recovery.Delivery{attempt(2, "a", 403, min)},
			missed: []ci.MissedDelivery{missed("a", 403, 1, 2*min, 8*min)}, change: func(l *recovery.Listing) { l.Up = now }, gaveUp: "a", changed: "a"},
		{name: "what was given up is left alone", missed: []ci.MissedDelivery{gone}},
		{name: "until somebody asks", missed: []ci.MissedDelivery{gone}, change: func(l *recovery.Listing) { l.Again = true }, due: "a", changed: "a", count: 1},
		{name: "and forgotten in the end", missed: []ci.MissedDelivery{old}, expired: "a"},
		{name: "a repository that is not ours is none of our business", attempts: []recovery.Delivery{attempt(1, "a", 403, min)},
			change: func(l *recovery.Listing) { l.Ours = func(r, _ int64) bool { return r != 7 } }, foreign: 1},
		{name: "an id that cannot be one is passed over", attempts: []recovery.Delivery{attempt(1, "", 0, min), attempt(2, "a\nb", 0, min)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := recovery.Listing{Now: now, Integration: "github", Attempts: row.attempts, Missed: row.missed, Every: 5 * min, Known: map[ci.ReceiptID]bool{}}
			for _, g := range strings.Fields(row.known) {
				l.Known[receipt(g)] = true
			}
			if row.change != nil {
				row.change(&l)
			}
			out := recovery.Deliveries(l)
			for what, pair := range map[string][2]string{
				"due": {guids(out.Due), row.due}, "changed": {guids(out.Changed), row.changed}, "arrived": {guids(out.Arrived), row.arrived},
				"given up": {guids(out.GaveUp), row.gaveUp}, "expired": {guids(out.Expired), row.expired},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
			if out.Foreign != row.foreign || out.Missed != row.count || out.Recent != row.recent {
				t.Errorf("%d foreign, %d missed, recent %v; want %d, %d, %v", out.Foreign, out.Missed, out.Recent, row.foreign, row.count, row.recent)
			}
		})
	}
}

func guids(list []ci.MissedDelivery) string {
	var names []string
	for _, m := range list {
		names = append(names, m.Receipt[strings.LastIndexByte(m.Receipt, '/')+1:])
	}
	return strings.Join(names, " ")
}

// Ensure that the record has the newest attempt, which is the one to be asked
// for, and the time of the first.
func TestDeliveries_TakeTheNewestAttempt(t *testing.T) {
	out := recovery.Deliveries(recovery.Listing{Now: now, Integration: "github", Every: time.Minute, Hook: ci.Hook{ID: 9}, Attempts: []recovery.Delivery{
		attempt(5, "a", 502, time.Minute), attempt(3, "a", 0, time.Hour), attempt(4, "a", 500, 30*time.Minute),
	}})
	if len(out.Due) != 1 {
		t.Fatalf("due %+v", out.Due)
	}
	m := out.Due[0]
	if m.ProviderID != 5 || m.StatusCode != 502 || !m.FirstAt.Equal(ago(time.Hour)) || !m.LastAt.Equal(ago(time.Minute)) || m.Hook.ID != 9 {
		t.Errorf("record %+v", m)
	}
}

// Ensure that each wait is longer than the one before.
func TestWait_Grows(t *testing.T) {
	before := time.Duration(0)
	for n := 1; n <= recovery.MaxAsks; n++ {
		w := recovery.Wait(n, time.Minute)
		if w <= before {
			t.Errorf("after %d times %s, after one less %s", n, w, before)
		}
		before = w
	}
}

// Ensure that an answer is said in words.
func TestAnswer(t *testing.T) {
	for want, m := range map[string]ci.MissedDelivery{
		"502 Bad Gateway": {StatusCode: 502}, "299": {StatusCode: 299}, "none (timed out)": {Status: "timed out"}, "none": {},
	} {
		if got := recovery.Answer(&m); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

func commit(n int) string { return fmt.Sprintf("%040x", n) }

func branch(name string, n int) ci.Head { return ci.Head{Ref: "refs/heads/" + name, Commit: commit(n)} }

// Ensure that a head is listed once it matches, has neither run nor delivery,
// and its delivery was waited for.
func TestHeads(t *testing.T) {
	const key = "refs/heads/main"
	open := func(n int, seen time.Duration, listed bool) map[string]ci.MissedHead {
		m := ci.MissedHead{Head: branch("main", n), Before: commit(1), SeenAt: ci.At(ago(seen))}
		if listed {
			m.ListedAt = ci.At(ago(time.Second))
		}
		return map[string]ci.MissedHead{key: m}
	}
	at := func(n int) map[string]string { return map[string]string{key: commit(n)} }
	for _, row := range []struct {
		name   string
		in     recovery.Heads
		no     bool // the filters say no
		known  string
		open   bool
		settle bool
		gone   bool
		listed bool
	}{
		{name: "the first comparison takes all there is as known", in: recovery.Heads{First: true, List: []ci.Head{branch("main", 2)}}, known: commit(2)},
		{name: "what did not move is passed over", in: recovery.Heads{Known: at(2), List: []ci.Head{branch("main", 2)}}},
		{name: "what a run or a delivery is known of is accounted for", in: recovery.Heads{Known: at(1), List: []ci.Head{branch("main", 2)}, Told: map[string]bool{key: true}}, known: commit(2)},
		{name: "so is what the filters leave out", no: true, in: recovery.Heads{Known: at(1), List: []ci.Head{branch("main", 2)}}, known: commit(2)},
		{name: "what moved is seen, and its delivery waited for", in: recovery.Heads{Known: at(1), List: []ci.Head{branch("main", 2)}}, open: true},
		{name: "a new branch too", in: recovery.Heads{Known: map[string]string{}, List: []ci.Head{branch("main", 2)}}, open: true},
		{name: "while it is waited for nothing changes", in: recovery.Heads{Known: at(1), Open: open(2, time.Minute, false), List: []ci.Head{branch("main", 2)}}},
		{name: "then it is listed", in: recovery.Heads{Known: at(1), Open: open(2, 6*time.Minute, false), List: []ci.Head{branch("main", 2)}}, open: true, listed: true},
		{name: "but not while deliveries are being recovered", in: recovery.Heads{Hold: true, Known: at(1), Open: open(2, 6*time.Minute, false), List: []ci.Head{branch("main", 2)}}},
		{name: "it stays listed", in: recovery.Heads{Hold: true, Known: at(1), Open: open(2, 6*time.Minute, true), List: []ci.Head{branch("main", 2)}}, listed: true},
		{name: "moved again it is waited for anew", in: recovery.Heads{Known: at(1), Open: open(2, 6*time.Minute, true), List: []ci.Head{branch("main", 3)}}, open: true},
		{name: "its delivery settles it", in: recovery.Heads{Known: at(1), Open: open(2, 6*time.Minute, true), List: []ci.Head{branch("main", 2)}, Told: map[string]bool{key: true}}, known: commit(2), settle: true},
		{name: "back where it was it is settled", in: recovery.Heads{Known: at(1), Open: open(2, 6*time.Minute, true), List: []ci.Head{branch("main", 1)}}, settle: true},
		{name: "deleted it is forgotten", in: recovery.Heads{Known: at(1), Open: open(2, 6*time.Minute, true)}, gone: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := row.in
			in.Now, in.Grace = now, 5*time.Minute
			in.Match = func(*ci.Head, string) bool { return !row.no }
			out := in.Compare()
			if out.Known[key] != row.known || len(out.Open) == 1 != row.open || len(out.Settle) == 1 != row.settle || len(out.Gone) == 1 != row.gone || len(out.Listed) == 1 != row.listed {
				t.Errorf("%+v", out)
			}
			if row.open && out.Open[0].Before != in.Known[key] {
				t.Errorf("before %q", out.Open[0].Before)
			}
			if out.None() != (row.known == "" && !row.open && !row.settle && !row.gone) {
				t.Errorf("None is %v of %+v", out.None(), out)
			}
		})
	}
}

// Ensure that the grace is two rounds, and five minutes at most.
func TestGrace(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{time.Minute: 2 * time.Minute, 5 * time.Minute: 5 * time.Minute, time.Hour: 5 * time.Minute} {
		if got := recovery.Grace(every); got != want {
			t.Errorf("every %s: %s, want %s", every, got, want)
		}
	}
}
