package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

const (
	// pagePace is the least time from one look at the store to the next: what
	// happens within it comes together.
	pagePace = 250 * time.Millisecond
	// slowPoll is how many polls of a followed log pass between looks for which
	// nothing gave a hint.
	slowPoll = 5
)

// pageStream sends a page's live parts to one browser: all of them first, and
// from then on those that have changed.
type pageStream struct {
	server *Server
	out    *stream
	sent   map[string][sha256.Size]byte // each part as it was sent last
	last   time.Time                    // when something was sent
	unsent bool
}

// streamPage answers with a page's stream. It ends when the page is settled,
// when who looks may no longer, when the browser has gone and when the listener
// shuts down.
func (s *Server) streamPage(c echo.Context, fill fill, log *logTail) error {
	if log != nil {
		defer log.close()
	}
	leave, err := s.takeSeat(c)
	if err != nil {
		return err
	}
	defer leave()
	runs, stop := s.store.Watch(store.TopicRuns)
	defer stop()
	outbox, stop := s.store.Watch(store.TopicOutbox)
	defer stop()
	v := s.visit(c)
	v.live = true
	var page web.Page
	look := func() (err error) { page, err = fill(v); return err }
	if err := s.inTurn(c.Request().Context(), v, look); err != nil {
		return err // as an answer of its own: nothing has been sent
	}
	out, ctx, done := openEvents(c)
	defer done()
	p := &pageStream{server: s, out: out, sent: map[string][sha256.Size]byte{}, unsent: true}
	for {
		began := time.Now()
		ended, err := p.tell(ctx, v, page, log)
		if err != nil || ended {
			return quietly(ctx, err)
		}
		if p.wait(ctx, began, log, runs, outbox) != nil || !s.stillIn(v) {
			return nil
		}
		v.now = s.now()
		if err := s.inTurn(ctx, v, look); err != nil {
			return quietly(ctx, err)
		}
	}
}

// inTurn draws for a stream. Those of readers who are not signed in are drawn
// one at a time, so that one change that hundreds of strangers look at leaves
// the processor to deliveries. draw must not write to the reader. An error is
// draw's, or ctx's where it ended before.
func (s *Server) inTurn(ctx context.Context, v *visit, draw func() error) error {
	if v.who == nil {
		select {
		case s.strangers <- struct{}{}:
			defer func() { <-s.strangers }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return draw()
}

// quietly keeps the errors of a stream that only say that it is over: the
// browser has gone, or what it shows is not there, or not for it, any more.
func quietly(ctx context.Context, err error) error {
	if ctx.Err() != nil || ci.CodeOf(err) != ci.CodeInternal {
		return nil
	}
	return err
}

// stillIn reports whether who opened a stream is still signed in, as the same.
func (s *Server) stillIn(v *visit) bool {
	if v.who == nil {
		return true // fill looks whether it is still public
	}
	r := v.c.Request()
	se, _, err := s.store.Session(r.Context(), s.sessionToken(v.c), s.clientAddress(r))
	return err == nil && se.User == v.who.by.Name && se.Role == v.who.role
}

// tell sends what the browser does not have yet.
func (p *pageStream) tell(ctx context.Context, v *visit, page web.Page, log *logTail) (ended bool, err error) {
	if err := p.parts(ctx, v, page); err != nil {
		return false, err
	}
	if log != nil {
		again, err := log.send(v, page.(*web.RunPage).Run, p)
		if err != nil {
			return false, err
		}
		ended = again
		if v.settled && !again {
			ended = true
			if err := p.event(web.EventEnd, "", nil); err != nil {
				return false, err
			}
		}
	}
	return ended, p.flush()
}

// parts sends the parts that have changed. Ages do not count: browsers keep
// them up to date themselves.
func (p *pageStream) parts(ctx context.Context, v *visit, page web.Page) error {
	aged := page.(interface{ CountFrom(time.Time) })
	for _, name := range page.Parts() {
		var b []byte
		draw := func() (err error) { b, err = p.server.pages.Fragment(page, name); return err }
		aged.CountFrom(time.Time{})
		if err := p.server.inTurn(ctx, v, draw); err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if old, ok := p.sent[name]; ok && old == sum {
			continue
		}
		aged.CountFrom(v.now)
		if err := p.server.inTurn(ctx, v, draw); err != nil {
			return err
		}
		if err := p.event(name, "", b); err != nil {
			return err
		}
		p.sent[name] = sum
	}
	return nil
}

// event writes one event of any text.
func (p *pageStream) event(name, id string, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n")) // it would end a line too
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return p.write(b.Bytes())
}

func (p *pageStream) write(b []byte) error {
	p.unsent = true
	_, err := p.out.Write(b)
	return err
}

func (p *pageStream) flush() error {
	if !p.unsent {
		return nil
	}
	p.unsent, p.last = false, time.Now()
	return p.out.Flush()
}

// wait blocks until there may be something new, and not less than the pace.
// Meanwhile it says that the stream lives.
func (p *pageStream) wait(ctx context.Context, began time.Time, log *logTail, runs, outbox <-chan struct{}) error {
	poll := time.NewTimer(slowPoll * p.server.poll)
	defer poll.Stop()
	beat := time.NewTimer(time.Until(p.last.Add(p.server.heartbeat)))
	defer beat.Stop()
	printed, stop := log.changed(ctx)
	defer stop()
	for woken := false; !woken; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
			if err := p.write([]byte(": still here\n\n")); err != nil {
				return err
			}
			if err := p.flush(); err != nil {
				return err
			}
			beat.Reset(p.server.heartbeat)
		case <-poll.C:
			woken = true
		case <-runs:
			woken = true
		case <-outbox:
			woken = true
		case <-printed:
			woken = true
		}
	}
	rest := time.NewTimer(time.Until(began.Add(pagePace)))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
		return nil
	}
}

// wantsStream reports whether a request is for a page's stream.
func wantsStream(r *http.Request) bool { return r.Method == http.MethodGet && !opensPage(r) }
