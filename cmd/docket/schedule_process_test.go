package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// missASlot makes it look, to a stopped docket, as if every schedule had been
// settled two days ago and not since.
func (d *daemon) missASlot() {
	d.t.Helper()
	s, err := store.Open(d.data+"/docket.db", store.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	records, err := s.Slots("")
	if err != nil || len(records) == 0 {
		d.t.Fatalf("%d schedules on record, %v", len(records), err)
	}
	for key, before := range records {
		after := before
		past := time.Now().UTC().Add(-48 * time.Hour).Format(ci.SlotLayout)
		after.Spans = []ci.SlotSpan{{From: past, To: past}}
		if _, done, err := s.Settle(context.Background(), store.Settlement{SlotKey: key, Before: &before, After: &after}); err != nil || !done {
			d.t.Fatalf("%t, %v", done, err)
		}
	}
}

// Ensure that a slot that came while docket was away has one run, wherever
// docket is killed in between: before and after each of the first commits.
func TestKilledWhileASlotIsDue(t *testing.T) {
	for _, point := range []string{store.FailBeforeCommit, store.FailAfterCommit} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s %d", point, n), func(t *testing.T) {
				t.Parallel()
				repo := newRepository(t, "acme/api", 7)
				commit := repo.commit("refs/heads/main")
				d := newDaemon(t, nil, func(d *daemon) {
					d.addProject("api", repo, obj{"on": obj{"schedule": []obj{{"cron": "@daily"}}}, "on_interrupt": "requeue"})
				})
				d.start()
				d.waitReadiness(http.StatusOK) // a scan has ended, so the schedule is on record
				d.stop()
				d.missASlot()
				d.arm(point, n)
				d.launch()
				d.waitKilled()
				d.disarm()
				d.start()
				run := d.waitRun("api-1", ci.Succeeded)
				if run.Cause.Kind != ci.CauseSchedule || !strings.HasSuffix(run.Cause.Slot, " 00:00 UTC") || run.Source.Commit != commit || run.Cause.Event != ci.EventSchedule {
					t.Errorf("%+v, %+v", run.Cause, run.Source)
				}
				if why := d.mustDecide("api-1", ci.DecisionScheduled).Reason; !strings.Contains(why, "left out") {
					t.Errorf("decided %q", why)
				}
				if runs := d.runs(); len(runs) != 1 {
					t.Errorf("%d runs: %+v", len(runs), runs)
				}
				if out := d.output("projects", "show", "api"); !strings.Contains(out.out, "api-1") {
					t.Errorf("the project shows\n%s", out.out)
				}
			})
		}
	}
}
