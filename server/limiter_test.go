package server_test

import (
	"strconv"
	"testing"
	"time"

	"docket/server"
)

// Ensure that a limiter lets a burst through, then one at a time, and that
// time pays back up to the burst and no more.
func TestLimiter(t *testing.T) {
	l := server.NewLimiter(3, time.Minute, 10)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	take := func(key string, want time.Duration) {
		t.Helper()
		if got := l.Take(key, now); got != want {
			t.Errorf("wait %v, want %v", got, want)
		}
	}
	for range 3 {
		take("a", 0)
	}
	take("a", time.Minute)
	take("a", time.Minute) // refusals do not count
	take("b", 0)
	now = now.Add(59 * time.Second)
	take("a", time.Second)
	now = now.Add(time.Second)
	take("a", 0)
	take("a", time.Minute)
	l.GiveBack("a", now)
	take("a", 0)
	now = now.Add(24 * time.Hour)
	for range 3 {
		take("a", 0)
	}
	take("a", time.Minute)
}

// Ensure that a limiter's memory is bounded, and that those who tried most are
// remembered.
func TestLimiter_MemoryIsBounded(t *testing.T) {
	l := server.NewLimiter(3, time.Minute, 10)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		l.Take("busy", now)
	}
	for i := range 1000 {
		l.Take(strconv.Itoa(i), now)
		if l.Len() > 10 {
			t.Fatalf("%d keys", l.Len())
		}
	}
	if l.Take("busy", now) == 0 {
		t.Error("who tried most was forgotten")
	}
	now = now.Add(time.Hour)
	l.Take("new", now)
	if l.Len() != 1 {
		t.Errorf("%d keys after all have paid", l.Len())
	}
	l.GiveBack("new", now)
	l.GiveBack("new", now)
	l.GiveBack("stranger", now)
	if l.Len() != 0 {
		t.Errorf("%d keys after all was given back", l.Len())
	}
}
