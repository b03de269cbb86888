package store

import "sync"

// Topic names what a wakeup is about.
type Topic int

const (
	TopicRuns   Topic = iota // a run, an inbox job or a cancel request changed
	TopicOutbox              // an outbox entry may have become due
)

// watchers are those who want to be woken after commits.
type watchers struct {
	mu   sync.Mutex
	next int
	subs map[int]watcher
}

type watcher struct {
	topic Topic
	c     chan struct{}
}

// Watch returns a channel that gets a token after commits about a topic. It
// is a hint: tokens are merged, and whoever waits also looks by itself. stop
// ends it.
func (s *Store) Watch(t Topic) (c <-chan struct{}, stop func()) {
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subs == nil {
		w.subs = map[int]watcher{}
	}
	id := w.next
	w.next++
	ch := make(chan struct{}, 1)
	w.subs[id] = watcher{t, ch}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subs, id)
	}
}

func (w *watchers) announce(topics uint32) {
	if topics == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sub := range w.subs {
		if topics&(1<<sub.topic) == 0 {
			continue
		}
		select {
		case sub.c <- struct{}{}:
		default:
		}
	}
}
