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

// waits puts a guest of an age among those who wait; isIn reports whether one
// was let in.
func (r *room) waits(from string, size int64, age time.Duration) *guest {
	g := &guest{room: r, from: from, size: size, came: time.Now().Add(-age), in: make(chan struct{})}
	r.waiting = append(r.waiting, g)
	return g
}

func isIn(g *guest) bool {
	select {
	case <-g.in:
		return true
	default:
		return false
	}
}

// Ensure that the address goes first that has least in the room.
func TestWhoHasLeastGoesFirst(t *testing.T) {
	var r room
	mustEnter(t, &r, "a", 30)
	inside := mustEnter(t, &r, "c", 60)
	a, b := r.waits("a", 20, 0), r.waits("b", 60, 0)
	inside.leave()
	if isIn(a) || !isIn(b) {
		t.Error("an address that has some goes before one that has nothing")
	}
}

// Ensure that who waits from one address comes in in turn, and the newest first
// once the first has waited for too long.
func TestACrowdedAddressLetsItsNewestIn(t *testing.T) {
	var r room
	inside := mustEnter(t, &r, "a", 50)
	oldest, old, young := r.waits("a", 50, crowdedAfter/2), r.waits("a", 50, crowdedAfter/4), r.waits("a", 50, 0)
	inside.leave()
	if !isIn(oldest) || isIn(old) || isIn(young) {
		t.Fatal("the first to come is not the first to go in")
	}
	newest := r.waits("a", 50, 0)
	old.came = old.came.Add(-crowdedAfter)
	oldest.leave()
	if !isIn(newest) || isIn(old) || isIn(young) {
		t.Fatal("the newest is not the first to go in where the first waited for too long")
	}
}

// Ensure that a large body is cut off that cannot end in time, where another waits.
func TestABodyThatCannotEndInTimeIsCut(t *testing.T) {
	var r room
	cut := map[string]bool{}
	enter := func(name string, size, read int64) {
		g, err := r.enter(t.Context(), 1<<30, name, size, func() { cut[name] = true })
		if err != nil {
			t.Fatal(err)
		}
		g.entered = g.entered.Add(-10 * time.Second)
		g.read.Store(read)
	}
	enter("small", 1<<20, 11*slowRate)
	enter("slow", 1<<20, 9*slowRate)
	enter("large", 60<<20, 11<<20)
	enter("hopeless", 60<<20, 9<<20)
	enter("whole", 1<<10, 1<<10)
	r.cutSlow(time.Now())
	if len(cut) != 2 || !cut["slow"] || !cut["hopeless"] {
		t.Errorf("cut off: %v", cut)
	}
}
