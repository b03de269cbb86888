package store_test

import (
	"testing"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that a run's check run is remembered, and none for a run that is not
// on record.
func TestCheck_IsRememberedForARun(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	r := mustPush(t, s, "d-1", 0, 1)
	if c, err := s.Check(r.ID); err != nil || c != (store.Check{}) {
		t.Fatalf("%+v, %v", c, err)
	}
	want := store.Check{ID: 5, Conclusion: "success"}
	mustNil(t, s.SetCheck(t.Context(), r.ID, store.Check{ID: 5}))
	mustNil(t, s.SetCheck(t.Context(), r.ID, want))
	mustNil(t, s.SetCheck(t.Context(), "api-99", want))
	storetest.MustClose(t, s)
	s = storetest.MustOpenAt(t, path, store.Options{})
	if c, err := s.Check(r.ID); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := s.Check("api-99"); err != nil || c != (store.Check{}) {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := s.Check("nothing")
	mustCode(t, err, ci.CodeNotFound)
}

// Ensure that a check run takes one end, and that one again.
func TestCheck_Takes(t *testing.T) {
	for _, c := range []struct {
		check store.Check
		to    string
		want  bool
	}{
		{store.Check{}, "", false},
		{store.Check{ID: 1}, "", true},
		{store.Check{ID: 1}, "success", true},
		{store.Check{ID: 1, Conclusion: "action_required"}, "", false},
		{store.Check{ID: 1, Conclusion: "action_required"}, "success", false},
		{store.Check{ID: 1, Conclusion: "success"}, "success", true},
	} {
		if got := c.check.Takes(c.to); got != c.want {
			t.Errorf("%+v takes %q: %t", c.check, c.to, got)
		}
	}
}
