package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

var nightly = ci.Schedule{Cron: "0 3 * * *"}

func slotKey() store.SlotKey { return store.SlotKey{Project: "api", Key: nightly.Key()} }

func slotRecord(spans ...ci.SlotSpan) *ci.SlotRecord {
	return &ci.SlotRecord{Schedule: nightly, Spans: spans}
}

// slotRun is a settlement that starts a slot's run.
func slotRun(before *ci.SlotRecord, slot string) store.Settlement {
	return store.Settlement{
		SlotKey: slotKey(), Before: before, After: slotRecord(ci.SlotSpan{From: slot, To: slot}),
		Draft: &ci.Draft{
			Project: "api", Integration: "github", State: ci.Preparing, Job: &ci.Job{Resolve: true}, Spec: reporting(),
			Cause:    ci.Cause{Kind: ci.CauseSchedule, Event: ci.EventSchedule, Slot: slot + " UTC"},
			Source:   ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main"},
			Schedule: nightly.Key(), Context: "docket/api",
		},
	}
}

func mustSettle(t *testing.T, s *store.Store, st store.Settlement) ci.Run {
	t.Helper()
	run, done, err := s.Settle(t.Context(), st)
	if err != nil || !done {
		t.Fatalf("settled: %t, %v", done, err)
	}
	return run
}

func mustSlots(t *testing.T, s *store.Store) map[store.SlotKey]ci.SlotRecord {
	t.Helper()
	m, err := s.Slots("")
	mustNil(t, err)
	return m
}

// Ensure that a slot and its run are one write, and that a decision made from
// an older record than the one there is does nothing.
func TestSettle_ASlotHasOneRun(t *testing.T) {
	s := storetest.MustOpen(t)
	first := slotRecord(ci.SlotSpan{From: "2027-01-01 12:00", To: "2027-01-01 12:00"})
	mustSettle(t, s, store.Settlement{SlotKey: slotKey(), After: first})
	st := slotRun(first, "2027-01-02 03:00")
	st.Reason = "the slot 2027-01-01 03:00 was left out"
	run := mustSettle(t, s, st)
	if run.ID != "api-1" || run.State != ci.Preparing || run.Cause.Slot != "2027-01-02 03:00 UTC" {
		t.Fatalf("run %+v", run)
	}
	if got := mustSlots(t, s)[slotKey()]; got.Run != run.ID || got.Spans[0].To != "2027-01-02 03:00" {
		t.Fatalf("record %+v", got)
	}
	list, _, err := s.Decisions(run.ID, store.Page{})
	mustNil(t, err)
	if len(list) != 1 || list[0].Kind != ci.DecisionScheduled || list[0].Project != "api" || list[0].Reason != st.Reason {
		t.Fatalf("decisions %+v", list)
	}
	for what, before := range map[string]*ci.SlotRecord{"the same decision": first, "one from nothing": nil} {
		if again, done, err := s.Settle(t.Context(), slotRun(before, "2027-01-02 03:00")); done || err != nil || again.ID != "" {
			t.Errorf("%s: %+v, %t, %v", what, again, done, err)
		}
	}
	if _, err := s.Run("api-2"); ci.CodeOf(err) != ci.CodeNotFound {
		t.Errorf("a second run: %v", err)
	}
	now := mustSlots(t, s)[slotKey()]
	mustSettle(t, s, store.Settlement{SlotKey: slotKey(), Before: &now})
	if m := mustSlots(t, s); len(m) != 0 {
		t.Errorf("forgotten, and there is %v", m)
	}
}

// Ensure that a commit that fails leaves neither the run nor the slot.
func TestSettle_BothOrNeither(t *testing.T) {
	fail := false
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Failpoint: func(point string) error {
		if fail && point == store.FailBeforeCommit {
			return errors.New("no space")
		}
		return nil
	}})
	first := slotRecord(ci.SlotSpan{From: "2027-01-01 12:00", To: "2027-01-01 12:00"})
	mustSettle(t, s, store.Settlement{SlotKey: slotKey(), After: first})
	fail = true
	if _, _, err := s.Settle(t.Context(), slotRun(first, "2027-01-02 03:00")); err == nil {
		t.Fatal("settled on a full disk")
	}
	fail = false
	if got := mustSlots(t, s)[slotKey()]; got.Spans[0].To != "2027-01-01 12:00" || got.Run != "" {
		t.Errorf("record %+v", got)
	}
	if run := mustSettle(t, s, slotRun(first, "2027-01-02 03:00")); run.ID != "api-1" {
		t.Errorf("run %s", run.ID)
	}
}

// Ensure that a project's records are its own alone.
func TestSlots_OfOneProject(t *testing.T) {
	s := storetest.MustOpen(t)
	for _, p := range []string{"api", "api-2", "ap"} {
		mustSettle(t, s, store.Settlement{
			SlotKey: store.SlotKey{Project: p, Key: nightly.Key()}, After: slotRecord(ci.SlotSpan{From: "2027-01-01 12:00", To: "2027-01-01 12:00"}),
		})
	}
	m, err := s.Slots("api")
	if _, ok := m[slotKey()]; err != nil || len(m) != 1 || !ok {
		t.Fatalf("%v, %v", m, err)
	}
}

// Ensure that verify names a slot with two runs and a record that is not its
// schedule's.
func TestVerify_Slots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docket.db")
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustSettle(t, s, slotRun(nil, "2027-01-02 03:00"))
	other := slotRun(nil, "2027-01-03 03:00")
	other.Key = ci.Schedule{Cron: "1 1 * * *"}.Key()
	other.After.Schedule, other.Draft.Schedule = ci.Schedule{Cron: "1 1 * * *"}, other.Key
	mustSettle(t, s, other)
	mustNil(t, s.Close())
	good := mustRead(t, path)
	for what, tc := range map[string]struct {
		break_ func(c cut)
		says   string
	}{
		"nothing": {func(cut) {}, ""},
		"a slot with two runs": {func(c cut) {
			k, v := c.find("runs", "2027-01-03 03:00")
			v = []byte(strings.NewReplacer("2027-01-03", "2027-01-02", other.Key, nightly.Key()).Replace(string(v)))
			c.put("runs", k, v)
		}, "run api-2: its slot 2027-01-02 03:00 UTC has run api-1 already"},
		"another schedule": {func(c cut) { c.replace("slots", "0 3 * * *", "0 3 * * *", "0 4 * * *") }, "is filed under another schedule than its own"},
		"spans out of order": {func(c cut) {
			c.replace("slots", "0 3 * * *", `"to":"2027-01-02 03:00"`, `"to":"2027-01-01 03:00"`)
		}, "schedule 0 3 * * * of api is settled by"},
		"another's run":        {func(c cut) { c.replace("slots", "0 3 * * *", `"run":"api-1"`, `"run":"api-2"`) }, "run api-2 is not its own"},
		"no record":            {func(c cut) { c.put("slots", []byte("api\x00x"), []byte("{")) }, `slots: "api\x00x"`},
		"a run that never was": {func(c cut) { c.replace("slots", "0 3 * * *", `"run":"api-1"`, `"run":"api-7"`) }, "run api-7: "},
	} {
		t.Run(what, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "docket.db")
			mustNil(t, os.WriteFile(bad, good, 0o600))
			surgery(t, bad, func(tx *bolt.Tx) error { tc.break_(cut{t, tx}); return nil })
			broken, err := store.VerifyFile(t.Context(), bad)
			if err != nil || tc.says == "" && len(broken) > 0 || !strings.Contains(strings.Join(broken, "\n"), tc.says) {
				t.Fatalf("%q, %v", broken, err)
			}
		})
	}
}
