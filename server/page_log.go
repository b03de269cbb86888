package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
	"docket/web"
)

// GET /runs/{id}/logs: the log as it came, or one step's with ?step=.
func (s *Server) rawLog(c echo.Context) error {
	run, err := s.store.Run(pathParam(c, "run"))
	if err != nil {
		return err
	}
	step, err := s.wantedStep(c, run)
	if err != nil {
		return err
	}
	if _, ok := s.signedIn(c); !ok && step == preparation {
		return errSignIn() // docket's own part tells more than the steps do
	}
	leave, err := s.takeSeat(c)
	if err != nil {
		return err
	}
	defer leave()
	return s.sendLog(c, run, step)
}

// fillLog fills in the lines that the page shows, and returns how far it has
// read. Where the log cannot be read, it says why.
func (s *Server) fillLog(v *visit, p *web.RunPage) (position, error) {
	at := position{attempt: p.Run.Attempt}
	q := v.c.QueryParams()
	from, err := strconv.Atoi(q.Get("from"))
	if err != nil || from < 0 {
		from = 0
	}
	p.Window = web.LogWindow{Step: q.Get("step"), From: from, All: q.Get("all") != ""}
	if p.Run.Attempt == 0 {
		if p.Run.State.Final() {
			p.LogNote = "It never began, so nothing was printed."
		}
		return at, nil
	}
	names, err := s.stepNames(p.Run)
	if err != nil {
		return at, err
	}
	log := web.NewLogCollector(p.Window)
	r, err := s.store.Logs().Open(p.Run.ID, p.Run.Attempt)
	switch {
	case ci.CodeOf(err) == ci.CodeNotFound:
		if p.Run.State.Final() {
			p.LogNote = "Its log is not on record any more."
		}
		return at, nil
	case err != nil:
		return at, err
	}
	defer r.Close()
	p.RawURL = runPath(p.Run.ID) + "/logs"
	for {
		chunk, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return at, err
		}
		at.offset = chunk.Offset + int64(len(chunk.Data))
		if shownTo(v, chunk.Step) {
			log.Write(chunk.Step, stepName(names, chunk.Step), chunk.At, chunk.Notice, chunk.Data)
		}
	}
	p.Log = log.Steps(names)
	return at, nil
}

// shownTo reports whether a visitor sees a step's log: who is not signed in
// does not see what docket says of the checkout.
func shownTo(v *visit, step int) bool { return v.who != nil || step != preparation }

func stepName(names []string, step int) string {
	switch {
	case step == preparation:
		return web.PreparationName
	case step >= 0 && step < len(names):
		return names[step]
	}
	return ""
}

// logTail brings the lines of a run's log to its page as they come. It reads
// the log from its start, because that is where lines are counted from, and
// sends what comes after the place that the page has.
type logTail struct {
	server *Server
	run    string
	at     position

	reader   *store.LogReader // of at.attempt; nil while there is none
	complete bool             // no more will be written to it
	log      *web.LogCollector
	read     int64 // how far the log was read
	step     int   // that the lines not yet sent are of
	lines    int   // that have ended and are not yet sent
	unsent   bool  // there are bytes not yet sent
}

func (s *Server) newLogTail(c echo.Context, run string) *logTail {
	at := c.Request().Header.Get("Last-Event-ID")
	if at == "" {
		at = c.QueryParam(logPosition)
	}
	return &logTail{server: s, run: run, at: parsePosition(at)}
}

func (t *logTail) close() {
	if t.reader != nil {
		t.reader.Close()
		t.reader = nil
	}
}

// eventLines is how many lines one event brings at most.
const eventLines = web.WindowLines / 2

// send brings what the log has now. again says that the page has an older
// attempt's lines and has to load itself again.
func (t *logTail) send(v *visit, run ci.Run, out *pageStream) (again bool, err error) {
	if t.at.attempt == 0 || t.at.attempt > run.Attempt {
		t.at = position{attempt: run.Attempt}
	}
	if t.at.attempt == 0 {
		return false, nil // it has not begun
	}
	if t.at.attempt < run.Attempt {
		return true, out.event(web.EventReload, "", nil)
	}
	names, err := t.server.stepNames(run)
	if err != nil {
		return false, err
	}
	if t.reader == nil {
		r, err := t.server.store.Logs().Open(run.ID, t.at.attempt)
		if ci.CodeOf(err) == ci.CodeNotFound {
			return false, nil // nothing is written yet
		}
		if err != nil {
			return false, err
		}
		t.reader, t.log = r, web.NewLogCollector(web.LogWindow{})
	}
	for {
		chunk, err := t.reader.Next()
		if errors.Is(err, io.EOF) {
			return false, t.emit(names, out)
		}
		if err != nil {
			return false, err
		}
		if err := t.take(v, chunk, names, out); err != nil {
			return false, err
		}
	}
}

// take reads a chunk, and sends lines before they are too many for one event.
func (t *logTail) take(v *visit, chunk store.Chunk, names []string, out *pageStream) error {
	if chunk.Step != t.step {
		if err := t.emit(names, out); err != nil {
			return err
		}
		t.step = chunk.Step
	}
	for data := chunk.Data; len(data) > 0; {
		n, lines := cutLines(data, eventLines-t.lines)
		if known := t.at.offset - t.read; known > 0 && int64(n) > known {
			n = int(known)
			lines = bytes.Count(data[:n], []byte("\n"))
		}
		if shownTo(v, chunk.Step) {
			t.log.Write(chunk.Step, stepName(names, chunk.Step), chunk.At, chunk.Notice, data[:n])
			t.unsent = true
		}
		t.read, data, t.lines = t.read+int64(n), data[n:], t.lines+lines
		if t.read <= t.at.offset {
			t.log.Take(names) // the page has these
			t.lines, t.unsent = 0, false
			continue
		}
		if t.lines >= eventLines {
			if err := t.emit(names, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// emit sends the lines that were read and not yet sent.
func (t *logTail) emit(names []string, out *pageStream) error {
	if !t.unsent {
		if t.read > t.at.offset {
			t.at.offset, t.lines = t.read, 0
		}
		return nil
	}
	t.lines, t.unsent = 0, false
	t.at.offset = t.read
	for _, step := range t.log.Take(names) {
		data, err := t.server.pages.LogEvent(step)
		if err != nil {
			return err
		}
		if err := out.event(web.EventLog, t.at.String(), data); err != nil {
			return err
		}
	}
	return nil
}

// cutLines returns how many bytes of data hold at most so many lines, at least
// one, and how many it holds.
func cutLines(data []byte, most int) (n, lines int) {
	for n < len(data) && lines < max(most, 1) {
		i := bytes.IndexByte(data[n:], '\n')
		if i < 0 {
			return len(data), lines
		}
		n, lines = n+i+1, lines+1
	}
	return n, lines
}

// changed returns a channel that is closed when there may be more to send, and
// a function that ends the wait. It is nil where nothing will come by itself.
func (t *logTail) changed(ctx context.Context) (<-chan struct{}, func()) {
	if t == nil || t.reader == nil || t.complete {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		done, err := t.reader.Wait(ctx)
		t.complete = err == nil && done
	}()
	return woken, func() {
		cancel()
		<-woken
	}
}
