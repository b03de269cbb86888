package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"docket/store"
	"docket/store/ci"
)

// logEvent is the data of one event of a followed log.
type logEvent struct {
	Step   string  `json:"step"`
	Offset int64   `json:"offset"` // of the text's first byte in the attempt's log
	Time   ci.Time `json:"time"`
	Text   string  `json:"text"`             // valid UTF-8, whatever the bytes were
	Notice bool    `json:"notice,omitempty"` // docket's own words, not the step's
}

// endEvent is the data of the last event.
type endEvent struct {
	Run   string   `json:"run"`
	State ci.State `json:"state"`
}

// position is a place in a run's logs: the event id, as ATTEMPT:OFFSET.
type position struct {
	attempt int
	offset  int64
}

func (p position) String() string { return fmt.Sprintf("%d:%d", p.attempt, p.offset) }

// parsePosition reads an event id. One that docket did not give means the start.
func parsePosition(s string) position {
	a, o, _ := strings.Cut(s, ":")
	attempt, err1 := strconv.Atoi(a)
	offset, err2 := strconv.ParseInt(o, 10, 64)
	if err1 != nil || err2 != nil || attempt < 0 || offset < 0 {
		return position{}
	}
	return position{attempt, offset}
}

// follower sends one run's log to one client until the run has ended, the
// client has gone or the listener shuts down.
type follower struct {
	server *Server
	run    string
	step   int // wanted
	out    *stream
	names  []string

	at       position
	reader   *store.LogReader // of at.attempt; nil while there is none
	complete bool             // no more will be written to it
	held     *store.Chunk     // bytes of a character that the next chunk may complete
	last     time.Time        // when something was sent
	unsent   bool             // something was written and not yet flushed
}

func (s *Server) followLog(c echo.Context, run string, step int) error {
	leave, err := s.takeSeat(c)
	if err != nil {
		return err
	}
	defer leave()
	f := &follower{server: s, run: run, step: step, at: parsePosition(c.Request().Header.Get("Last-Event-ID"))}
	defer f.close()
	wake, stop := s.store.Watch(store.TopicRuns)
	defer stop()
	out, ctx, done := openEvents(c)
	defer done()
	f.out, f.unsent = out, true // the header: who follows wants to see at once that it works
	err = f.follow(ctx, wake)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// follow looks at the run, then sends what its log has, again and again. The
// look comes first: what a final run has written is then all there.
func (f *follower) follow(ctx context.Context, wake <-chan struct{}) error {
	for {
		run, err := f.server.store.Run(f.run)
		if err != nil {
			return err
		}
		if err := f.open(run); err != nil {
			return err
		}
		if err := f.drain(); err != nil {
			return err
		}
		if run.State.Final() {
			return f.end(run.State)
		}
		if err := f.flush(); err != nil {
			return err
		}
		if err := f.wait(ctx, wake); err != nil {
			return err
		}
	}
}

// open makes reader the log of the run's newest attempt. A client that comes
// back gets the rest of the attempt that it saw first.
func (f *follower) open(run ci.Run) error {
	if f.at.attempt == 0 || f.at.attempt > run.Attempt {
		f.at = position{attempt: run.Attempt}
	}
	for f.at.attempt > 0 {
		if f.reader == nil {
			r, err := f.server.store.Logs().Open(run.ID, f.at.attempt)
			switch {
			case err == nil:
				f.reader, f.complete = r, false
				if err := r.SeekTo(f.at.offset); err != nil {
					return err
				}
			case ci.CodeOf(err) != ci.CodeNotFound:
				return err
			case f.at.attempt == run.Attempt:
				return nil // nothing is written yet
			}
		}
		if f.at.attempt == run.Attempt {
			return nil
		}
		if err := f.drain(); err != nil {
			return err
		}
		if err := f.release(); err != nil {
			return err
		}
		f.close()
		f.at = position{attempt: f.at.attempt + 1}
	}
	return nil
}

func (f *follower) close() {
	if f.reader != nil {
		f.reader.Close()
		f.reader = nil
	}
}

// drain sends what the log has now.
func (f *follower) drain() error {
	if f.reader == nil {
		return nil
	}
	for {
		chunk, err := f.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if skip := f.at.offset - chunk.Offset; skip > 0 { // the client has this part
			if skip >= int64(len(chunk.Data)) {
				continue
			}
			chunk.Data, chunk.Offset = chunk.Data[skip:], chunk.Offset+skip
		}
		if err := f.take(chunk); err != nil {
			return err
		}
	}
}

// take sends a chunk, joined with what was held back before it, up to the
// last whole character.
func (f *follower) take(chunk store.Chunk) error {
	if h := f.held; h != nil {
		if h.Step == chunk.Step && h.Notice == chunk.Notice && h.Offset+int64(len(h.Data)) == chunk.Offset {
			chunk.Data, chunk.Offset = append(h.Data, chunk.Data...), h.Offset
			f.held = nil
		} else if err := f.release(); err != nil {
			return err
		}
	}
	if !wanted(chunk.Step, f.step) {
		return nil
	}
	whole := len(chunk.Data) - cutCharacter(chunk.Data)
	if whole < len(chunk.Data) {
		f.held = &store.Chunk{
			Step: chunk.Step, At: chunk.At, Notice: chunk.Notice, Offset: chunk.Offset + int64(whole),
			Data: bytes.Clone(chunk.Data[whole:]),
		}
		chunk.Data = chunk.Data[:whole]
	}
	return f.send(chunk)
}

// release sends what was held back and will not be completed any more.
func (f *follower) release() error {
	h := f.held
	if h == nil {
		return nil
	}
	f.held = nil
	return f.send(*h)
}

// send writes one event. Its id is where the next one begins.
func (f *follower) send(chunk store.Chunk) error {
	if len(chunk.Data) == 0 {
		return nil
	}
	name, err := f.name(chunk.Step)
	if err != nil {
		return err
	}
	data, err := json.Marshal(logEvent{
		Step: name, Offset: chunk.Offset, Time: ci.At(chunk.At),
		Text: string(bytes.ToValidUTF8(chunk.Data, []byte("\uFFFD"))), Notice: chunk.Notice,
	})
	if err != nil {
		return err
	}
	f.at.offset = chunk.Offset + int64(len(chunk.Data))
	return f.write("id: %s\ndata: %s\n\n", f.at, data)
}

func (f *follower) end(state ci.State) error {
	if err := f.release(); err != nil {
		return err
	}
	data, err := json.Marshal(endEvent{f.run, state})
	if err != nil {
		return err
	}
	if err := f.write("event: end\ndata: %s\n\n", data); err != nil {
		return err
	}
	return f.flush()
}

func (f *follower) write(format string, args ...any) error {
	f.unsent = true
	_, err := fmt.Fprintf(f.out, format, args...)
	return err
}

func (f *follower) flush() error {
	if !f.unsent {
		return nil
	}
	f.unsent, f.last = false, f.server.now()
	return f.out.Flush()
}

// name returns a step's name. Those of a run whose pipeline is read from the
// repository are known only once it has been read.
func (f *follower) name(step int) (string, error) {
	if step == preparation {
		return preparationStep, nil
	}
	if step >= len(f.names) {
		run, err := f.server.store.Run(f.run)
		if err != nil {
			return "", err
		}
		if f.names, err = f.server.stepNames(run); err != nil {
			return "", err
		}
	}
	if step < len(f.names) {
		return f.names[step], nil
	}
	return "step " + strconv.Itoa(step+1), nil
}

// wait blocks until there may be something new, and no longer than a poll. It
// says that the stream lives when nothing was said for a heartbeat.
func (f *follower) wait(ctx context.Context, wake <-chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.server.now().Sub(f.last) >= f.server.heartbeat {
		if err := f.write(": still here\n\n"); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
	}
	nap, cancel := context.WithTimeout(ctx, min(f.server.poll, f.server.heartbeat))
	defer cancel()
	if f.reader != nil && !f.complete {
		done, err := f.reader.Wait(nap)
		if err != nil && nap.Err() == nil {
			return err
		}
		f.complete = err == nil && done
		return ctx.Err()
	}
	select {
	case <-nap.Done():
	case <-wake:
	}
	return ctx.Err()
}

// cutCharacter returns how many bytes at the end of b begin a character of
// UTF-8 that is not all there: 0 to 3.
func cutCharacter(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
