package server

import (
	"sync"
	"time"
)

// fullEvery is the least time between two lines of the log about requests for
// which there is no room: whoever takes the room decides how many there are.
const fullEvery = time.Second

// noRoom is the answer to a request for which there is no room. Metrics count
// all of them; the log has a few.
type noRoom struct{ err error }

func (n *noRoom) Error() string { return n.err.Error() }
func (n *noRoom) Unwrap() error { return n.err }

// seldom bounds how many lines the log has about one thing.
type seldom struct {
	mu   sync.Mutex
	told time.Time
	left int
}

// tell reports whether a line is due, and how many were left out before it.
func (s *seldom) tell(now time.Time) (left int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.told); since >= 0 && since < fullEvery {
		s.left++
		return 0, false
	}
	left, s.left, s.told = s.left, 0, now
	return left, true
}
