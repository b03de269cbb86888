package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/store/ci"
)

// Logs keeps one log per run and attempt, as files beside the store:
// logs/PROJECT/NUMBER/ATTEMPT.log. A log is a row of frames: time in
// milliseconds (8 bytes), step (4), flags and length (4), bytes. A frame that
// a crash cut short is not there.
type Logs struct {
	dir  string
	mu   sync.Mutex
	live map[string]*LogWriter // by file
}

// MaxChunk is the longest piece of output that one frame holds, in bytes.
const MaxChunk = 64 << 10

const (
	frameHeader = 16
	noticeFlag  = 1 << 31
)

// Chunk is one piece of a step's output, as it came.
type Chunk struct {
	Step   int   // index of the step; -1 is docket's own preparation
	Offset int64 // of Data in all bytes of the attempt's log
	At     time.Time
	Notice bool // docket's own words, not the step's
	Data   []byte
}

func newLogs(dir string) *Logs { return &Logs{dir: dir, live: map[string]*LogWriter{}} }

// Logs gives access to the log files of runs.
func (s *Store) Logs() *Logs { return s.logs }

func (l *Logs) runDir(run string) (string, error) {
	project, number, err := ci.ParseRunID(run)
	if err != nil {
		return "", err
	}
	if project == "." || project == ".." || strings.ContainsAny(project, "/\x00") {
		return "", ci.Errorf(ci.CodeNotFound, "no run %q", run)
	}
	return filepath.Join(l.dir, project, strconv.FormatUint(number, 10)), nil
}

// LogWriter appends to one attempt's log. It is safe for use by many goroutines.
type LogWriter struct {
	logs *Logs
	path string

	mu      sync.Mutex
	f       *os.File
	changed chan struct{} // closed and replaced at each change
	done    bool
	cut     int64 // where the last whole frame ends
}

// Create starts the log of a run's attempt. What is there at its first one is
// of another run, from a history that a restore has ended, and goes.
func (l *Logs) Create(run string, attempt int) (*LogWriter, error) {
	dir, err := l.runDir(run)
	if err != nil {
		return nil, err
	}
	if attempt == 1 {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(attempt)+".log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w := &LogWriter{logs: l, path: path, f: f, changed: make(chan struct{})}
	l.mu.Lock()
	l.live[path] = w
	l.mu.Unlock()
	return w, nil
}

// Append adds a piece of output. When the disk takes no more, what did not
// fit is left out as a whole, and the log goes on when there is room again.
func (w *LogWriter) Append(step int, at time.Time, p []byte, notice bool) error {
	for len(p) > 0 {
		n := min(len(p), MaxChunk)
		if err := w.append(step, at, p[:n], notice); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (w *LogWriter) append(step int, at time.Time, p []byte, notice bool) error {
	frame := make([]byte, 0, frameHeader+len(p))
	frame = binary.BigEndian.AppendUint64(frame, uint64(at.UnixMilli()))
	frame = binary.BigEndian.AppendUint32(frame, uint32(int32(step)))
	size := uint32(len(p))
	if notice {
		size |= noticeFlag
	}
	frame = binary.BigEndian.AppendUint32(frame, size)
	frame = append(frame, p...)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return fs.ErrClosed
	}
	if _, err := w.f.WriteAt(frame, w.cut); err != nil {
		return errors.Join(err, w.f.Truncate(w.cut))
	}
	w.cut += int64(len(frame))
	w.announce()
	return nil
}

func (w *LogWriter) announce() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Close ends the log and syncs it to disk.
func (w *LogWriter) Close() error {
	w.logs.mu.Lock()
	if w.logs.live[w.path] == w {
		delete(w.logs.live, w.path)
	}
	w.logs.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return nil
	}
	w.done = true
	w.announce()
	return errors.Join(w.f.Sync(), w.f.Close())
}

func (l *Logs) closeAll() {
	l.mu.Lock()
	var list []*LogWriter
	for _, w := range l.live {
		list = append(list, w)
	}
	l.mu.Unlock()
	for _, w := range list {
		_ = w.Close() // nobody is left to be told
	}
}

// LogReader reads a log's chunks in order. It belongs to one goroutine.
type LogReader struct {
	f      *os.File
	r      *bufio.Reader
	w      *LogWriter // nil: nobody writes to it
	pos    int64      // in the file
	offset int64      // in the output
	skip   int64      // output to pass over before the next chunk
}

// Open starts reading a run's newest log, or an attempt's where attempt > 0.
// CodeNotFound if nothing was ever written.
func (l *Logs) Open(run string, attempt int) (*LogReader, error) {
	dir, err := l.runDir(run)
	if err != nil {
		return nil, err
	}
	if attempt <= 0 {
		if attempt, err = newestAttempt(dir); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(dir, strconv.Itoa(attempt)+".log")
	l.mu.Lock()
	w := l.live[path]
	l.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ci.Errorf(ci.CodeNotFound, "there is no log of run %s yet", run)
		}
		return nil, err
	}
	return &LogReader{f: f, r: bufio.NewReaderSize(f, MaxChunk), w: w}, nil
}

func newestAttempt(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	newest := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".log")); err == nil {
			newest = max(newest, n)
		}
	}
	if newest == 0 {
		return 0, ci.Errorf(ci.CodeNotFound, "there is no log of this run yet")
	}
	return newest, nil
}

// Next returns the next chunk, io.EOF when there is none now.
func (r *LogReader) Next() (Chunk, error) {
	for {
		var h [frameHeader]byte
		if _, err := io.ReadFull(r.r, h[:]); err != nil {
			return Chunk{}, r.rewind(err)
		}
		size := binary.BigEndian.Uint32(h[12:])
		n := int64(size &^ noticeFlag)
		if n > MaxChunk {
			return Chunk{}, io.EOF // not a frame: the end of what can be read
		}
		c := Chunk{
			Step: int(int32(binary.BigEndian.Uint32(h[8:]))), Offset: r.offset,
			At: time.UnixMilli(int64(binary.BigEndian.Uint64(h[:]))), Notice: size&noticeFlag != 0,
			Data: make([]byte, n),
		}
		if _, err := io.ReadFull(r.r, c.Data); err != nil {
			return Chunk{}, r.rewind(err)
		}
		r.pos += frameHeader + n
		r.offset += n
		if r.skip >= n {
			r.skip -= n
			continue
		}
		if r.skip > 0 {
			c.Data, c.Offset = c.Data[r.skip:], c.Offset+r.skip
			r.skip = 0
		}
		return c, nil
	}
}

// rewind goes back to the last whole frame, for the next try.
func (r *LogReader) rewind(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if _, err := r.f.Seek(r.pos, io.SeekStart); err != nil {
		return err
	}
	r.r.Reset(r.f)
	return io.EOF
}

// SeekTo makes Next go on at an offset, as in Chunk.Offset.
func (r *LogReader) SeekTo(offset int64) error {
	if _, err := r.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r.r.Reset(r.f)
	r.pos, r.offset, r.skip = 0, 0, max(offset, 0)
	return nil
}

// Wait blocks until there may be more to read, the log is complete (done), or
// ctx ends. Read on until io.EOF after it says done.
func (r *LogReader) Wait(ctx context.Context) (done bool, err error) {
	if r.w == nil {
		return true, nil
	}
	r.w.mu.Lock()
	more, ended, changed := r.w.cut > r.pos, r.w.done, r.w.changed
	r.w.mu.Unlock()
	if more || ended {
		return ended, nil
	}
	select {
	case <-changed:
		r.w.mu.Lock()
		defer r.w.mu.Unlock()
		return r.w.done, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Close ends reading.
func (r *LogReader) Close() error { return r.f.Close() }

// Remove deletes the logs of a run.
func (l *Logs) Remove(run string) error {
	dir, err := l.runDir(run)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
