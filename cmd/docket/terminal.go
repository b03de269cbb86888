package main

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// forTerminal returns a writer that makes a step's bytes harmless if w is a
// terminal, and w itself if it is not: a file or a pipe gets every byte. Call
// flush after the last write.
func forTerminal(w io.Writer) (to io.Writer, flush func() error) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t := &terminalWriter{w: w}
		return t, t.flush
	}
	return w, func() error { return nil }
}

// terminalWriter passes text, tabs, line ends, colours (SGR) and what erases within
// the line on to a terminal. All else that a terminal would obey shows as text:
// a log cannot write to the clipboard, rename the window, move to lines that
// were printed before or make the terminal type an answer.
type terminalWriter struct {
	w    io.Writer
	held []byte // may still become a character or a sequence
}

// maxSequence bounds a sequence that is passed on, in bytes.
const maxSequence = 64

// Write takes all of p or fails.
func (t *terminalWriter) Write(p []byte) (int, error) {
	data := append(t.held, p...)
	out, rest := t.show(data, false)
	t.held = bytes.Clone(rest)
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush shows what never became whole.
func (t *terminalWriter) flush() error {
	out, _ := t.show(t.held, true)
	t.held = nil
	_, err := t.w.Write(out)
	return err
}

// show returns what may be written of data, and what it takes more to decide.
func (t *terminalWriter) show(data []byte, last bool) (out, rest []byte) {
	for len(data) > 0 {
		if data[0] == 0x1b {
			n, more := sequence(data)
			switch {
			case more && !last:
				return out, data
			case n > 0:
				out, data = append(out, data[:n]...), data[n:]
			default:
				out, data = append(out, "^["...), data[1:]
			}
			continue
		}
		if !last && !utf8.FullRune(data) {
			return out, data
		}
		r, size := utf8.DecodeRune(data)
		if r == '\n' || r == '\r' {
			out = append(out, data[0])
		} else {
			out = append(out, printableText(string(r))...)
		}
		data = data[size:]
	}
	return out, nil
}

// sequence returns the length of the sequence that b begins with, 0 for one
// that is not passed on; more is true where it takes more bytes to say.
func sequence(b []byte) (n int, more bool) {
	if len(b) < 2 {
		return 0, true
	}
	if b[1] != '[' {
		return 0, false
	}
	for i := 2; i < min(len(b), maxSequence); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9' || c == ';' || c == ':':
		case c == 'm' || c == 'K':
			return i + 1, false
		default:
			return 0, false
		}
	}
	return 0, len(b) < maxSequence
}
