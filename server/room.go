package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"docket/store/ci"
)

// Bodies of deliveries lie in memory before anyone knows whether they are
// signed. How many bytes of them there may be is bounded, and shared between
// the addresses that they come from. Small bodies have room of their own:
// nothing large stands before them.
const (
	smallBody   = 256 << 10
	smallRoom   = 32 << 20
	leastRoom   = 64 << 20 // for large ones
	roomTimeout = 10 * time.Second

	// Who reads slower than this for a while makes way where another waits, and
	// so does who cannot end in time at the rate that it has.
	slowAfter  = 500 * time.Millisecond
	slowRate   = 64 << 10 // bytes a second
	lookAtSlow = 100 * time.Millisecond

	// Where an address' first has waited for so long, more come from there than
	// find room: then its newest goes first. In turn all of them would wait too
	// long; so those that are not yet given up on by their senders get in.
	crowdedAfter = time.Second
)

// rooms hold the bodies that are on their way.
type rooms struct {
	small, large room
}

// enter waits until a body of size bytes may be read; limit is the largest
// that there can be, and size is below 0 if it is not known. cut ends the
// reading. CodeUnavailable where there is no room for too long.
func (r *rooms) enter(ctx context.Context, from string, size, limit int64, cut func()) (*guest, error) {
	if size < 0 {
		size = limit
	}
	size = max(size, firstBuffer) // which it gets in any case
	if size <= smallBody {
		return r.small.enter(ctx, smallRoom, from, size, cut)
	}
	return r.large.enter(ctx, max(leastRoom, 2*limit), from, size, cut)
}

// room is a number of bytes that guests share.
type room struct {
	mu      sync.Mutex
	total   int64
	used    int64
	by      map[string]int64 // by address
	inside  map[*guest]bool
	waiting []*guest
	looked  time.Time // for slow ones

	timeout time.Duration // roomTimeout, unless a test has set it
}

// guest is one body.
type guest struct {
	room    *room
	from    string
	size    int64
	cut     func()
	came    time.Time
	entered time.Time
	in      chan struct{} // closed when it may be read
	read    atomic.Int64  // bytes that came
}

func (r *room) enter(ctx context.Context, total int64, from string, size int64, cut func()) (*guest, error) {
	g := &guest{room: r, from: from, size: size, cut: cut, came: time.Now(), in: make(chan struct{})}
	r.mu.Lock()
	if r.by == nil {
		r.by, r.inside = map[string]int64{}, map[*guest]bool{}
	}
	r.total = total
	r.waiting = append(r.waiting, g)
	r.admit()
	r.mu.Unlock()
	select {
	case <-g.in:
		return g, nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, roomTimeout))
	defer cancel()
	look := time.NewTicker(lookAtSlow)
	defer look.Stop()
	for {
		select {
		case <-g.in:
			return g, nil
		case <-look.C:
			r.cutSlow(time.Now())
		case <-ctx.Done():
			if r.giveUp(g) {
				return nil, &noRoom{ci.Errorf(ci.CodeUnavailable, "too many bodies are on their way; nothing was stored, send it again")}
			}
			return g, nil
		}
	}
}

// fits reports whether a guest may enter: no address has more than half the
// room, unless it has one body.
func (r *room) fits(g *guest) bool {
	has := r.by[g.from]
	return r.used+g.size <= r.total && (has == 0 || has+g.size <= r.total/2)
}

// admit lets in who fits: always one of the address that has least, in turn
// unless its first has waited for too long.
func (r *room) admit() {
	now := time.Now()
	for {
		next, first := -1, time.Time{} // when the first of next's address came
		for i, g := range r.waiting {
			switch {
			case !r.fits(g):
			case next < 0 || r.by[g.from] < r.by[r.waiting[next].from]:
				next, first = i, g.came
			case g.from == r.waiting[next].from && now.Sub(first) > crowdedAfter:
				next = i
			}
		}
		if next < 0 {
			return
		}
		g := r.waiting[next]
		r.waiting = slices.Delete(r.waiting, next, next+1)
		r.used += g.size
		r.by[g.from] += g.size
		r.inside[g] = true
		g.entered = now
		close(g.in)
	}
}

// cutSlow ends the reading of bodies that come too slowly, as somebody waits.
func (r *room) cutSlow(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.looked) < lookAtSlow/2 { // for another who waits
		return
	}
	r.looked = now
	for g := range r.inside {
		age, read := now.Sub(g.entered), g.read.Load()
		rate := max(slowRate, float64(g.size)/bodyTimeout.Seconds())
		if age > slowAfter && read < g.size && float64(read) < age.Seconds()*rate {
			g.cut()
		}
	}
}

// giveUp takes a guest out of those who wait; false if it was let in.
func (r *room) giveUp(g *guest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, g)
	if i < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	return true
}

// leave gives the room back; once is enough.
func (g *guest) leave() {
	r := g.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.inside[g] {
		return
	}
	delete(r.inside, g)
	r.used -= g.size
	if r.by[g.from] -= g.size; r.by[g.from] <= 0 {
		delete(r.by, g.from)
	}
	r.admit()
}
