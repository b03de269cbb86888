//go:build torture

package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docket/store/ci"
)

// tortureBook is what the senders know: what they sent, and what they were
// answered.
type tortureBook struct {
	w     *tortureWorld
	want  int // deliveries, redeliveries not counted
	share int // of them in one life of the server

	mu         sync.Mutex
	allowed    int
	begun      int
	closed     bool          // nothing more is wanted
	changed    chan struct{} // closed when more are allowed
	deliveries []*tortureDelivery
	requests   []*tortureRequest
	forged     []string // ids of deliveries that were badly signed, and of nothing else
	runs       []string // that were answered
	cancelled  map[string]bool
	heads      map[string]int // by repository and branch: where the branch is, in commits

	answers, again, retried, forgeries, conflicts, cancels, byGitHub, missed atomic.Int64
}

// tortureDelivery is one delivery under one id, sent as often as it takes.
type tortureDelivery struct {
	id         string
	event      string
	repository *tortureRepository
	branch     string
	body       []byte

	mu       sync.Mutex
	promised bool // some 2xx was seen
	github   bool // GitHub made it, once: docket has to ask for it again
	receipt  string
	outcome  ci.Outcome
	runs     []string
}

// tortureRequest is one request under one idempotency key.
type tortureRequest struct {
	key, path, body string
	reason          string // the run's cause says it

	mu  sync.Mutex
	run string // that was answered; "" where it was refused
}

func newTortureBook(w *tortureWorld) *tortureBook {
	return &tortureBook{
		w: w, want: w.size.deliveries, changed: make(chan struct{}),
		cancelled: map[string]bool{}, heads: map[string]int{},
	}
}

// waiting reports whether somebody has a delivery to make.
func (b *tortureBook) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun < b.allowed
}

// acknowledged returns the ids of all deliveries that were. A delivery's lock
// comes before the book's, so the two are never held here at once.
func (b *tortureBook) acknowledged() (ids []string) {
	b.mu.Lock()
	list := slices.Clone(b.deliveries)
	b.mu.Unlock()
	for _, d := range list {
		d.mu.Lock()
		if d.receipt != "" {
			ids = append(ids, d.id)
		}
		d.mu.Unlock()
	}
	return ids
}

// let allows one life's share of the deliveries. Where faults that did not
// come off need more lives than were planned, more is delivered than planned.
func (b *tortureBook) let() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed += b.share
	b.want = max(b.want, b.allowed)
	b.tell()
}

// letAll allows all that are left, and no more.
func (b *tortureBook) letAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed, b.closed = b.want, true
	b.tell()
}

// tell wakes the senders; the caller holds mu.
func (b *tortureBook) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// next waits until one more delivery is allowed. It returns false after the
// last one.
func (b *tortureBook) next(ctx context.Context) bool {
	for {
		b.mu.Lock()
		changed := b.changed
		switch {
		case b.closed && b.begun == b.want:
			b.mu.Unlock()
			return false
		case b.begun < b.allowed:
			b.begun++
			b.mu.Unlock()
			return true
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// push makes a push that moves a branch to its next commit.
func (b *tortureBook) push(rng *rand.Rand) *tortureDelivery {
	r := b.w.chooseRepository(rng)
	branch := tortureBranch(rng.IntN(r.branches))
	if rng.IntN(40) == 0 {
		branch = "nobody-builds-this"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.pushTo(r, branch, rng)
	b.deliveries = append(b.deliveries, d)
	return d
}

// pushTo makes a push; the caller holds mu.
func (b *tortureBook) pushTo(r *tortureRepository, branch string, rng *rand.Rand) *tortureDelivery {
	n, known := b.heads[r.name+" "+branch]
	before := strings.Repeat("0", 40)
	if known {
		before = b.w.commits[n]
		n = (n + 1) % len(b.w.commits)
	} else {
		n = rng.IntN(len(b.w.commits))
	}
	b.heads[r.name+" "+branch] = n
	d := &tortureDelivery{id: newGUID(time.Now()), event: ci.EventPush, repository: r, branch: branch}
	push := map[string]any{
		"ref": "refs/heads/" + branch, "before": before, "after": b.w.commits[n], "created": !known, "deleted": false,
		"repository":  map[string]any{"id": r.id, "full_name": r.name, "default_branch": "main"},
		"pusher":      map[string]any{"name": "torturer"},
		"sender":      map[string]any{"login": "torturer"},
		"head_commit": map[string]any{"id": b.w.commits[n], "message": fmt.Sprintf("Push %d … 😊\n\nand more", len(b.deliveries))},
	}
	if b.w.size.full { // what fills a disk: it does not compress
		push["noise"] = hex.EncodeToString(randomBytes(8 << 10))
	}
	d.body = tortureJSON(b.w, push)
	return d
}

func tortureJSON(w *tortureWorld, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		w.fail("%v", err)
	}
	return body
}

// earlier returns a delivery that was sent before, one of the newest hundred
// as a rule, or nil.
func (b *tortureBook) earlier(rng *rand.Rand) *tortureDelivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return torturePick(rng, b.deliveries)
}

// earlierRun returns a run that was answered, or "".
func (b *tortureBook) earlierRun(rng *rand.Rand) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return torturePick(rng, b.runs)
}

// torturePick returns one of a list, mostly of its last hundred.
func torturePick[T any](rng *rand.Rand, list []T) (one T) {
	n := len(list)
	if n == 0 {
		return one
	}
	if n > 100 && rng.IntN(4) > 0 {
		list = list[n-100:]
	}
	return list[rng.IntN(len(list))]
}

// request notes a new request, with a reason that tells its run from others.
func (b *tortureBook) request(kind, path string, fields map[string]any) *tortureRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &tortureRequest{key: fmt.Sprintf("%s-%d", kind, len(b.requests)), path: path}
	r.reason = "asked under " + r.key
	fields["reason"] = r.reason
	r.body = string(tortureJSON(b.w, fields))
	b.requests = append(b.requests, r)
	return r
}

func (b *tortureBook) answeredRuns(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = append(b.runs, ids...)
}

func (b *tortureBook) noteForged(id string) {
	b.forgeries.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forged = append(b.forged, id)
}

func (b *tortureBook) noteCancelled(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancelled[run] = true
}

// answered holds a 2xx to a delivery against every one before it. known says
// that there had been one before this one was asked for.
func (d *tortureDelivery) answered(b *tortureBook, known bool, status int, a tortureAnswer) {
	ids := make([]string, len(a.Runs))
	for i, r := range a.Runs {
		ids[i] = r.ID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known && (!a.Duplicate || status != 200) {
		b.w.fail("the delivery %s was acknowledged, and later it was new: %d %+v", d.id, status, a)
	}
	if a.Duplicate != (status == 200) {
		b.w.fail("the delivery %s was answered with %d, duplicate %t", d.id, status, a.Duplicate)
	}
	d.promised = true
	if d.receipt != "" {
		if a.Receipt != d.receipt || a.Outcome != d.outcome || !slices.Equal(ids, d.runs) {
			b.w.fail("the delivery %s was answered %s %s %v, and later %s %s %v", d.id, d.receipt, d.outcome, d.runs, a.Receipt, a.Outcome, ids)
		}
		return
	}
	d.receipt, d.outcome, d.runs = a.Receipt, a.Outcome, ids
	if want := ci.NewReceiptID("torture", 0, d.id).String(); a.Receipt != want {
		b.w.fail("the delivery %s has the receipt %s", d.id, a.Receipt)
	}
	if want := d.wantRuns(); len(ids) != want || (a.Outcome == ci.Accepted) != (want > 0) {
		b.w.fail("the delivery %s to %s was %s with the runs %v; want %d runs", d.id, d.branch, a.Outcome, ids, want)
	}
	b.answers.Add(1)
	b.answeredRuns(ids...)
}

// wantRuns is how many runs a delivery starts.
func (d *tortureDelivery) wantRuns() int {
	if !strings.HasPrefix(d.branch, "work-") {
		return 0
	}
	return len(d.repository.projects)
}

// tortureAnswer is the reply to a delivery.
type tortureAnswer struct {
	Receipt   string     `json:"receipt"`
	Outcome   ci.Outcome `json:"outcome"`
	Duplicate bool       `json:"duplicate"`
	Runs      []struct {
		ID string `json:"id"`
	} `json:"runs"`
}
