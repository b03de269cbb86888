package server

import (
	"crypto/sha256"
	"sync"
	"time"
)

// limiter bounds how often something may be tried under one key: burst times
// at once, and from then on once in every. It remembers a bounded number of
// keys; if there are more, those that tried least are forgotten first.
type limiter struct {
	burst int
	every time.Duration
	keep  int

	mu   sync.Mutex
	owed map[limitKey]time.Time // when the key has paid for all it tried
}

// limitKey stands for a key of any length.
type limitKey [sha256.Size]byte

func newLimiter(burst int, every time.Duration, keep int) *limiter {
	return &limiter{burst: burst, every: every, keep: keep, owed: map[limitKey]time.Time{}}
}

// take counts one try, or returns how long the next has to wait.
func (l *limiter) take(key limitKey, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.owed[key]
	if until.Before(now) {
		until = now
	}
	if wait := l.waitUntil(until, now); wait > 0 {
		return wait
	}
	if !known && len(l.owed) >= l.keep {
		l.makeRoom(now)
	}
	l.owed[key] = until.Add(l.every)
	return 0
}

// wait returns how long the next try has to wait, and counts nothing.
func (l *limiter) wait(key limitKey, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.owed[key]
	if until.Before(now) {
		return 0
	}
	return max(0, l.waitUntil(until, now))
}

func (l *limiter) waitUntil(until, now time.Time) time.Duration {
	return until.Sub(now) - time.Duration(l.burst-1)*l.every
}

// giveBack undoes one take: what succeeded does not count.
func (l *limiter) giveBack(key limitKey, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.owed[key]
	if until = until.Add(-l.every); until.After(now) {
		l.owed[key] = until
	} else if known {
		delete(l.owed, key)
	}
}

// makeRoom forgets the keys that owe nothing, or the one that owes least.
func (l *limiter) makeRoom(now time.Time) {
	var least limitKey
	var soonest time.Time
	for key, until := range l.owed {
		if !until.After(now) {
			delete(l.owed, key)
			continue
		}
		if soonest.IsZero() || until.Before(soonest) {
			least, soonest = key, until
		}
	}
	if len(l.owed) >= l.keep {
		delete(l.owed, least)
	}
}
