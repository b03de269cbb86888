package server

import (
	"context"
	"testing"
	"time"
)

func mustEnter(t *testing.T, r *room, from string, size int64) *guest {
	t.Helper()
	g, err := r.enter(t.Context(), 100, from, size, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Ensure that a room is never overfull, that one address leaves half of it to
// others, and that who waits comes in when there is room.
func TestRoomIsShared(t *testing.T) {
	var r room
	a := mustEnter(t, &r, "a", 40)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.enter(ctx, 100, "a", 20, func() {}); err == nil {
		t.Error("one address has more than half of the room")
	}
	b := mustEnter(t, &r, "b", 60)
	if _, err := r.enter(ctx, 100, "c", 1, func() {}); err == nil {
		t.Error("the room is overfull")
	}
	in := make(chan *guest)
	go func() { in <- mustEnter(t, &r, "c", 60) }()
	deadline := time.Now().Add(10 * time.Second)
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
		r.mu.Lock()
		waits = len(r.waiting) == 1
		r.mu.Unlock()
	}
	b.leave()
	c := <-in
	a.leave()
	c.leave()
	c.leave() // once too often harms nothing
	if r.used != 0 || len(r.by) != 0 || len(r.inside) != 0 || len(r.waiting) != 0 {
		t.Errorf("left: %+v", &r)
	}
}
