package web

import (
	"html/template"
	"time"
	"unicode/utf8"
)

// LogLine is one line of a step's output, ready to show.
type LogLine struct {
	N      int       // from 1, in its step
	At     time.Time // of the first byte that it shows
	Notice bool      // docket's own words
	HTML   template.HTML
}

// MaxLine is how many bytes of one line are shown. The raw log has the rest.
const MaxLine = 8 << 10

// maxMarks bounds how often a line may change its colour.
const maxMarks = 1000

// LogRenderer turns the bytes of one step's output into lines, as they come.
// It belongs to one goroutine. Its memory does not depend on what comes.
//
// The bytes may be anything. A line shows valid UTF-8, with U+FFFD for what
// was not, colours and weights (SGR) as classes, and hyperlinks (OSC 8) to http
// and https alone. A carriage return that is not part of a line's end begins the
// line anew, and so do the sequences that move the cursor to column 1 or clear
// the line: it shows what was written last. Every other control character and
// sequence is dropped. A line that has ended never changes, so its number can
// be its address. Where the bytes are cut into chunks makes no difference.
type LogRenderer struct {
	ended   int // lines
	cur     rawLine
	begun   bool // cur has had a byte, shown or not
	restart bool // what follows takes the place of what cur shows
	pen     pen
	esc     escape
}

// rawLine is a line before it is HTML.
type rawLine struct {
	n      int
	at     time.Time
	notice bool
	text   []byte
	marks  []mark
	cut    int64 // bytes beyond MaxLine
}

// mark changes how a line looks from a byte of its text on.
type mark struct {
	pos int
	pen pen
}

// NewLogRenderer begins a step's output.
func NewLogRenderer() *LogRenderer { return &LogRenderer{} }

// Write reads a chunk that was printed at a time and returns the lines that
// ended in it. notice says that the chunk is docket's own words.
func (l *LogRenderer) Write(at time.Time, notice bool, chunk []byte) []LogLine {
	var lines []LogLine
	l.read(at, notice, chunk, func(r *rawLine) { lines = append(lines, r.line()) })
	return lines
}

// Lines returns how many lines have ended.
func (l *LogRenderer) Lines() int { return l.ended }

// Partial returns the line that has begun and not ended.
func (l *LogRenderer) Partial() (LogLine, bool) {
	if !l.begun {
		return LogLine{}, false
	}
	r := l.cur
	r.n = l.ended + 1
	r.text = whole(r.text)
	return r.line(), true
}

// read is Write for a caller that decides which lines are worth their HTML.
// What ended gets is valid until it returns.
func (l *LogRenderer) read(at time.Time, notice bool, chunk []byte, ended func(*rawLine)) {
	if len(chunk) == 0 {
		return
	}
	if l.begun && l.cur.notice != notice {
		l.end(ended)
	}
	for i := 0; i < len(chunk); {
		if l.esc.mode == escNone {
			if n := plain(chunk[i:]); n > 0 {
				l.put(at, notice, chunk[i:i+n])
				i += n
				continue
			}
		}
		l.control(at, notice, chunk[i], ended)
		i++
	}
}

// plain returns how many bytes from the start of p are text.
func plain(p []byte) int {
	for i, c := range p {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return i
		}
	}
	return len(p)
}

func (l *LogRenderer) begin(at time.Time, notice bool) {
	if !l.begun {
		l.begun, l.cur.at, l.cur.notice = true, at, notice
	}
}

// put adds text to the line.
func (l *LogRenderer) put(at time.Time, notice bool, p []byte) {
	l.begin(at, notice)
	if l.restart {
		l.restart = false
		l.cur.at, l.cur.text, l.cur.marks, l.cur.cut = at, l.cur.text[:0], l.cur.marks[:0], 0
	}
	room := MaxLine - len(l.cur.text)
	if room <= 0 || l.cur.cut > 0 {
		l.cur.cut += int64(len(p))
		return
	}
	last := pen{}
	if n := len(l.cur.marks); n > 0 {
		last = l.cur.marks[n-1].pen
	}
	if l.pen != last && len(l.cur.marks) < maxMarks {
		l.cur.marks = append(l.cur.marks, mark{len(l.cur.text), l.pen})
	}
	if len(p) > room {
		l.cur.cut = int64(len(p) - room)
		p = p[:room]
	}
	l.cur.text = append(l.cur.text, p...)
}

// control reads one byte that is not text.
func (l *LogRenderer) control(at time.Time, notice bool, c byte, ended func(*rawLine)) {
	if c == '\n' {
		l.esc.reset() // nothing that matters is longer than a line
		l.begin(at, notice)
		l.end(ended)
		return
	}
	l.begin(at, notice)
	if l.esc.mode != escNone || c == 0x1b {
		switch l.esc.next(c) {
		case escStyle:
			l.pen.style = l.pen.style.apply(l.esc.text())
		case escHome:
			l.restart = true
		case escLink:
			l.pen.url = linkURL(l.esc.text())
		}
		return
	}
	switch c {
	case '\r':
		l.restart = true
	case '\b':
		if n := len(l.cur.text); n > 0 && !l.restart && l.cur.cut == 0 {
			_, size := utf8.DecodeLastRune(l.cur.text)
			l.cur.text = l.cur.text[:n-size]
			for i := range l.cur.marks {
				l.cur.marks[i].pos = min(l.cur.marks[i].pos, n-size)
			}
		}
	}
}

// end ends the line.
func (l *LogRenderer) end(ended func(*rawLine)) {
	l.ended++
	l.cur.n = l.ended
	if l.cur.cut > 0 {
		l.cur.text = whole(l.cur.text)
	}
	ended(&l.cur)
	l.cur = rawLine{text: l.cur.text[:0], marks: l.cur.marks[:0]}
	l.begun, l.restart = false, false
}

// whole leaves out the last character if it is not complete yet.
func whole(p []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(p)); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}
