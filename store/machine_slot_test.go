package store_test

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"docket/store"
	"docket/store/ci"
)

// slot settles the next slot of a schedule, from the record that there is or
// from an older one, which must change nothing.
func (x *machine) slot(t *rapid.T) {
	before := x.m.slot
	if n := len(x.m.slots); n > 0 && rapid.Bool().Draw(t, "stale") {
		before = x.m.slots[rapid.IntRange(0, n-1).Draw(t, "which")]
	}
	x.settle(t, before, before == x.m.slot)
}

func (x *machine) settle(t *rapid.T, before *ci.SlotRecord, fresh bool) {
	day := time.Date(2027, 1, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, len(x.m.slots))
	st := slotRun(before, day.Format(ci.SlotLayout))
	st.Draft.Spec = modelSpec()
	run, done, err := x.s.Settle(context.Background(), st)
	if err != nil || done != fresh {
		t.Fatalf("settled: %t, %v; want %t", done, err, fresh)
	}
	if !fresh {
		if run.ID != "" {
			t.Fatalf("a stale decision made %s", run.ID)
		}
		return
	}
	want := x.m.create(mRun{
		project: "api", branch: "main", context: "docket/api", cause: ci.CauseSchedule, state: ci.Preparing,
	})
	if run.ID != want.id {
		t.Fatalf("made %s, want %s", run.ID, want.id)
	}
	after := *st.After
	after.Run = run.ID
	x.m.slots = append(x.m.slots, before)
	x.m.slot = &after
}

// checkSlot compares the schedule's record.
func (x *machine) checkSlot(t *rapid.T) {
	m, err := x.s.Slots("api")
	got, ok := m[store.SlotKey{Project: "api", Key: nightly.Key()}]
	want := x.m.slot
	if err != nil || ok != (want != nil) || ok && (got.Run != want.Run || got.Spans[0] != want.Spans[0]) {
		t.Fatalf("slot %+v, %v; want %+v", got, err, want)
	}
}
