//go:build torture

package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"docket/dispatcher/forge/forgetest"
	"docket/store/ci"
)

// tortureMissedID is the repository whose pushes GitHub itself delivers: once,
// whoever is dead then. What did not arrive docket has to ask for.
const tortureMissedID = 105

// makeHub makes the GitHub that keeps a list of what it delivered.
func (o *tortureOutside) makeHub() {
	o.hub = forgetest.New(o.w.t)
	o.hub.AddToken(tortureGitHubToken)
}

// makeHooks gives every repository its webhook.
func (o *tortureOutside) makeHooks() {
	for i := range o.w.repos {
		r := &o.w.repos[i]
		o.hub.AddRepository(r.name, r.id)
		r.hook = o.hub.AddHook(forgetest.Hook{Repository: r.name, URL: o.w.url + "/hooks/torture", Secret: o.w.secret.Reveal()})
	}
}

// deliverAsGitHub delivers pushes at random moments until the senders are
// done, each of them once.
func (w *tortureWorld) deliverAsGitHub(ctx context.Context, rng *rand.Rand, sent <-chan struct{}) {
	for {
		pause := time.NewTimer(tortureWait(rng, 2*w.size.missedEvery))
		select {
		case <-pause.C:
			w.book.pushAsGitHub(rng)
		case <-sent:
		case <-ctx.Done():
		}
		pause.Stop()
		select {
		case <-sent:
			return
		case <-ctx.Done():
			return
		default:
		}
	}
}

// pushAsGitHub lets GitHub deliver one push.
func (b *tortureBook) pushAsGitHub(rng *rand.Rand) {
	r := b.w.repository(tortureMissedID)
	b.mu.Lock()
	d := b.pushTo(r, tortureBranch(rng.IntN(r.branches)), rng)
	b.mu.Unlock()
	a := b.w.outside.hub.Deliver(r.hook, d.event, d.body)
	d.id, d.github, d.promised = a.GUID, true, a.Code/100 == 2
	b.byGitHub.Add(1)
	if !d.promised {
		b.missed.Add(1)
	}
	b.mu.Lock()
	b.deliveries = append(b.deliveries, d)
	b.mu.Unlock()
}

// awaitRecovered waits until all that GitHub could not deliver has arrived
// after all. What docket asked for too often in lives that were too short an
// operator asks for by hand.
func (w *tortureWorld) awaitRecovered(ctx context.Context) {
	w.t.Helper()
	byHand := w.command(ctx, false, nil, "receipts", "recover", "--server", w.url, "--token", w.token)
	if out, err := byHand.CombinedOutput(); err != nil { // it says what is still missing
		w.t.Logf("docket receipts recover: %v: %s", err, out)
	}
	w.progress(ctx, "what GitHub could not deliver has arrived", func() (bool, string) {
		missing := 0
		for _, d := range w.book.deliveries {
			if d.github && d.receipt == "" && !w.learn(ctx, d) {
				missing++
			}
		}
		return missing == 0, time.Duration(missing).String()
	})
}

// learn asks the API what became of a delivery that GitHub made.
func (w *tortureWorld) learn(ctx context.Context, d *tortureDelivery) bool {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/api/v1/receipts/torture/-/"+d.id, nil)
	if err != nil {
		w.fatal("%v", err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	resp, err := w.server.client.Do(req)
	if err != nil {
		w.fatal("%v", err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		if d.promised {
			w.fail("the delivery %s was acknowledged to GitHub, and has no receipt", d.id)
		}
		return false
	}
	var r ci.Receipt
	w.get(ctx, "/receipts/torture/-/"+d.id, &r)
	if want := d.wantRuns(); r.Outcome != ci.Accepted || len(r.Runs) != want {
		w.fail("the delivery %s of GitHub is %s with the runs %v; want %d runs", d.id, r.Outcome, r.Runs, want)
	}
	d.receipt, d.outcome, d.runs, d.promised = r.ID, r.Outcome, r.Runs, true
	w.book.answers.Add(1)
	return true
}
