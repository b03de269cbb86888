//go:build torture

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"docket/store/ci"
)

// tortureSender is one of many who deliver and ask at once, and try again
// under the same id or key until they have an answer.
type tortureSender struct {
	w      *tortureWorld
	book   *tortureBook
	rng    *rand.Rand
	client *http.Client
}

// work delivers, and now and then does something else beside it.
func (s *tortureSender) work(ctx context.Context) {
	for s.book.next(ctx) {
		s.pause(ctx, tortureWait(s.rng, 80*time.Millisecond))
		s.deliver(ctx, s.book.push(s.rng))
		switch n := s.rng.IntN(100); {
		case n < 10:
			s.book.again.Add(1)
			s.deliver(ctx, s.book.earlier(s.rng))
		case n < 15:
			s.ask(ctx, s.newRequest())
		case n < 16:
			s.ask(ctx, s.newRerun())
		case n < 19:
			s.forge(ctx)
		case n < 20:
			s.contradict(ctx)
		case n < 23:
			s.cancel(ctx)
		}
	}
}

// pause waits for a while, or until the test ends.
func (s *tortureSender) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tortureReply is a whole answer of the server.
type tortureReply struct {
	status int
	header http.Header
	body   []byte
}

func (r tortureReply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// into reads the answer's JSON.
func (r tortureReply) into(w *tortureWorld, v any) {
	w.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		w.fail("the answer %s is not what was asked for: %v", r, err)
	}
}

// insist sends a request until the server answers it: who is dead, dies over
// it, or says "not now" is asked again. ok is false if the test ended before.
// began is called before each try, and torn after one that was answered with
// this status and then broke off.
func (s *tortureSender) insist(ctx context.Context, method, path string, header map[string]string, body string, began func(), torn func(status int)) (r tortureReply, ok bool) {
	for wait := 10 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 200*time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, method, s.w.url+path, strings.NewReader(body))
		if err != nil {
			s.w.fail("%v", err)
			return r, false
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		if began != nil {
			began()
		}
		broken := s.w.broken.Load()
		resp, err := s.client.Do(req)
		if err == nil {
			switch resp.StatusCode {
			case http.StatusCreated, http.StatusAccepted:
				if broken != 0 && broken == s.w.broken.Load() {
					s.w.fail("%s %s was acknowledged with %d by a server whose disk had failed", method, path, resp.StatusCode)
				}
				s.w.fresh.Add(1)
				s.w.acknowledged.event()
			case http.StatusServiceUnavailable:
				s.w.unavailable.Add(1)
			}
			r = tortureReply{status: resp.StatusCode, header: resp.Header}
			r.body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil && torn != nil {
				torn(r.status)
			}
		}
		if err == nil && r.status != http.StatusServiceUnavailable {
			if r.status >= 500 {
				s.w.fail("%s %s was answered with %s", method, path, r)
			}
			return r, true
		}
		s.book.retried.Add(1)
		s.pause(ctx, tortureWait(s.rng, wait)+time.Millisecond)
	}
	return r, false
}

// deliver delivers under one id until it is acknowledged.
func (s *tortureSender) deliver(ctx context.Context, d *tortureDelivery) {
	if d == nil {
		return
	}
	var known bool
	r, ok := s.post(ctx, d.id, d.event, sign(s.w.secret, d.body), d.body, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		known = d.promised
	}, func(status int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.promised = d.promised || status/100 == 2
	})
	if !ok {
		return
	}
	if r.status/100 != 2 {
		s.w.fail("the delivery %s was answered with %s", d.id, r)
		return
	}
	var a tortureAnswer
	r.into(s.w, &a)
	d.answered(s.book, known, r.status, a)
}

func (s *tortureSender) post(ctx context.Context, id, event, signature string, body []byte, began func(), torn func(int)) (tortureReply, bool) {
	return s.insist(ctx, http.MethodPost, "/hooks/torture", map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": event, "X-GitHub-Delivery": id, "X-Hub-Signature-256": signature,
	}, string(body), began, torn)
}

// forge delivers something with a bad signature: under an id of its own, or
// under one that is known.
func (s *tortureSender) forge(ctx context.Context) {
	d := s.book.earlier(s.rng)
	id := d.id
	if s.rng.IntN(2) == 0 {
		id = newGUID(time.Now())
		s.book.noteForged(id)
	}
	if r, ok := s.post(ctx, id, d.event, sign(ci.NewSecret("", "guessed"), d.body), d.body, nil, nil); ok && r.status != http.StatusUnauthorized {
		s.w.fail("a delivery with a bad signature was answered with %s", r)
	}
}

// contradict delivers other bytes under a known id.
func (s *tortureSender) contradict(ctx context.Context) {
	d := s.book.earlier(s.rng)
	d.mu.Lock()
	known := d.receipt != ""
	d.mu.Unlock()
	if !known {
		return
	}
	s.book.conflicts.Add(1)
	body := []byte(strings.Replace(string(d.body), "torturer", "somebody", 1))
	if r, ok := s.post(ctx, d.id, d.event, sign(s.w.secret, body), body, nil, nil); ok && r.status != http.StatusConflict {
		s.w.fail("other bytes under the id %s were answered with %s", d.id, r)
	}
}

func (s *tortureSender) newRequest() *tortureRequest {
	repo := &s.w.repos[s.rng.IntN(len(s.w.repos))]
	fields := map[string]any{"branch": tortureBranch(s.rng.IntN(repo.branches))}
	if s.rng.IntN(2) == 0 {
		fields["commit"] = s.w.commits[s.rng.IntN(len(s.w.commits))]
	}
	return s.book.request("start", "/projects/"+repo.projects[0].name+"/runs", fields)
}

func (s *tortureSender) newRerun() *tortureRequest {
	run := s.book.earlierRun(s.rng)
	if run == "" {
		return nil
	}
	return s.book.request("rerun", "/runs/"+run+"/rerun", map[string]any{})
}

// ask asks for a run under an idempotency key until it is answered, and now
// and then once more.
func (s *tortureSender) ask(ctx context.Context, q *tortureRequest) {
	for again := true; q != nil && again; again = s.rng.IntN(4) == 0 {
		r, ok := s.api(ctx, q)
		if !ok {
			return
		}
		q.answered(s.book, r)
	}
}

func (s *tortureSender) api(ctx context.Context, q *tortureRequest) (tortureReply, bool) {
	return s.insist(ctx, http.MethodPost, "/api/v1"+q.path, map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + s.w.token, "Idempotency-Key": q.key,
	}, q.body, nil, nil)
}

// answered holds an answer against those before it. A rerun of a run that has
// not ended is refused, and the key is free for another try.
func (q *tortureRequest) answered(b *tortureBook, r tortureReply) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rerun := strings.HasSuffix(q.path, "/rerun")
	if rerun && r.status == http.StatusConflict && q.run == "" {
		return
	}
	var run ci.Run
	r.into(b.w, &run)
	switch {
	case r.status != http.StatusCreated && r.status != http.StatusOK:
		b.w.fail("the request %s was answered with %s", q.key, r)
	case q.run == "":
		q.run = run.ID
		b.answeredRuns(run.ID)
	case r.status != http.StatusOK || run.ID != q.run || r.header.Get("Idempotency-Replayed") != "true":
		b.w.fail("the request %s made %s, and later it was answered with %s", q.key, q.run, r)
	}
}

// cancel cancels a run.
func (s *tortureSender) cancel(ctx context.Context) {
	run := s.book.earlierRun(s.rng)
	if run == "" {
		return
	}
	key := fmt.Sprintf("cancel-%s-%d", run, s.rng.Uint64())
	r, ok := s.api(ctx, &tortureRequest{key: key, path: "/runs/" + run + "/cancel", body: "{}"})
	switch {
	case !ok || r.status == http.StatusConflict:
	case r.status != http.StatusOK:
		s.w.fail("cancelling %s was answered with %s", run, r)
	default:
		s.book.cancels.Add(1)
		var got ci.Run
		if r.into(s.w, &got); got.State == ci.Cancelled {
			s.book.noteCancelled(run)
		}
	}
}
