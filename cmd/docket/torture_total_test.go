//go:build torture

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// tortureTotal are the figures of all rounds.
type tortureTotal struct {
	began time.Time

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
	verdict := "lost 0, twice 0, broken invariants 0"
	if t.broken > 0 {
		verdict = fmt.Sprintf("%d promises broken, as told above", t.broken)
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
		faults.String(), verdict, time.Since(t.began).Seconds())
}
