//go:build torture

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/store"
	"docket/store/ci"
)

// tortureTotal are the figures of all rounds.
type tortureTotal struct {
	began time.Time
	mu    sync.Mutex

	rounds, broken                             int
	deliveries, byGitHub, missed, acknowledged int64
	redelivered, forged, contradicted, asked   int64
	repeated, unavailable                      int64
	kills, lives, recoveries, runs             int
	backups, receipts, killedRestores          int64
	happened                                   map[string]int
	names                                      []string
}

func (t *tortureTotal) add(w *tortureWorld) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := w.book
	t.rounds++
	t.broken += int(w.wrong.Load())
	t.deliveries += int64(len(b.deliveries)) - b.byGitHub.Load()
	t.byGitHub += b.byGitHub.Load()
	t.missed += b.missed.Load()
	t.acknowledged += b.answers.Load()
	t.redelivered += b.again.Load()
	t.forged += b.forgeries.Load()
	t.contradicted += b.conflicts.Load()
	t.asked += int64(len(b.requests))
	t.repeated += b.retried.Load()
	t.unavailable += w.unavailable.Load()
	t.kills += w.server.kills
	t.lives += w.server.lives
	t.recoveries += w.server.recoveries
	t.runs += w.runs
	t.backups += w.copies.whole.Load()
	t.receipts += w.copies.receipts.Load()
	t.killedRestores += w.copies.killedRestores.Load()
	for _, f := range append([]*tortureFault{w.deck.chance}, w.faults...) {
		if !slices.Contains(t.names, f.name) {
			t.names = append(t.names, f.name)
		}
		t.happened[f.name] += f.happened
	}
}

// String tells the figures.
func (t *tortureTotal) String() string {
	var faults strings.Builder
	for _, name := range t.names {
		fmt.Fprintf(&faults, "\n    %-45s %d", name, t.happened[name])
	}
	return fmt.Sprintf(`in all, over %d rounds:
  deliveries      %d from %d senders and %d by GitHub itself, %d of which it could not deliver; acknowledged %d
                  redelivered %d, badly signed %d, contradicted %d
  requests        %d
  tries repeated  %d, %d of them after a 503
  server          killed %d times, started %d times, %d of them with recovery
  runs            %d
  backups         %d restored, verified and held against %d receipts acknowledged before; %d restores killed before
  faults          %s
  verdict         %s
  took            %.0f s`,
		t.rounds, t.deliveries, tortureSenders, t.byGitHub, t.missed, t.acknowledged, t.redelivered, t.forged, t.contradicted, t.asked,
		t.repeated, t.unavailable, t.kills, t.lives, t.recoveries, t.runs, t.backups, t.receipts, t.killedRestores,
		faults.String(), tortureVerdict(t.broken), time.Since(t.began).Seconds())
}

// tortureVerdict says what came of the promises.
func tortureVerdict(broken int) string {
	if broken > 0 {
		return fmt.Sprintf("%d promises broken, as told above", broken)
	}
	return "lost 0, twice 0, broken invariants 0"
}

// summary says what the test did.
func (w *tortureWorld) summary(book *tortureBook, took time.Duration) string {
	s, err := store.Open(w.storeFile(), store.Options{ReadOnly: true})
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	r := w.record(s)
	runs, sent := map[ci.State]int{}, map[string]int{}
	for _, run := range r.runs {
		runs[run.State]++
	}
	most := 0
	for _, e := range r.entries {
		sent[e.Kind+" "+string(e.State)]++
		most = max(most, e.Attempts)
	}
	statuses, messages := 0, 0
	for _, list := range w.outside.statuses {
		statuses += len(list)
	}
	for _, m := range w.outside.messages {
		messages += m.arrived
	}
	_, refused := w.outside.counts()
	var size int64
	if st, err := os.Stat(w.storeFile()); err == nil {
		size = st.Size()
	}
	return fmt.Sprintf(`
  deliveries      %d from %d senders and %d by GitHub itself, %d of which it could not deliver; acknowledged %d
                  redelivered %d, badly signed %d, contradicted %d
  requests        %d, cancels %d
  tries repeated  %d, %d of them after a 503
  server          killed %d times, started %d times, %d of them with recovery
  runs            %d: %v
  outbox          %v, one of it tried %d times
  outside         %d statuses and %d messages (%d different) arrived, %d calls were refused
  store           %.1f MiB, the bodies of %d deliveries pruned
  backups         %d restored, verified and held against %d receipts acknowledged before; %d restores killed before
  faults          %s
  verdict         %s
  took            %.0f s, with seed %d`,
		len(book.deliveries)-int(book.byGitHub.Load()), tortureSenders, book.byGitHub.Load(), book.missed.Load(), book.answers.Load(),
		book.again.Load(), book.forgeries.Load(), book.conflicts.Load(),
		len(book.requests), book.cancels.Load(), book.retried.Load(), w.unavailable.Load(), w.server.kills, w.server.lives, w.server.recoveries,
		len(r.runs), runs, sent, most, statuses, messages, len(w.outside.messages), refused, float64(size)/(1<<20), w.bodiesGone,
		w.copies.whole.Load(), w.copies.receipts.Load(), w.copies.killedRestores.Load(), w.tellFaults(), tortureVerdict(int(w.wrong.Load())), took.Seconds(), w.seed)
}
