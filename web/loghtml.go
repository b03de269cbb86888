package web

import (
	"html"
	"html/template"
	"strings"
	"unicode/utf8"

	terminal "github.com/buildkite/terminal-to-html/v3"
)

// line makes the HTML of a line.
func (r *rawLine) line() LogLine {
	l := LogLine{N: r.n, At: r.at, Notice: r.notice}
	if len(r.marks) == 0 {
		l.HTML = template.HTML(html.EscapeString(clean(r.text)))
	} else {
		l.HTML = template.HTML(r.styled())
	}
	if r.cut > 0 {
		l.HTML += template.HTML(` <span class="cut">… ` + bytesText(r.cut) + ` more in this line; the raw log has them</span>`)
	}
	return l
}

// styled lets the terminal library draw what is by now nothing but text, SGR
// with known numbers and links with checked addresses.
func (r *rawLine) styled() string {
	var b strings.Builder
	from := 0
	last := pen{}
	for _, m := range r.marks {
		to := min(m.pos, len(r.text)) // a line that is not whole yet may end before its last mark
		b.WriteString(clean(r.text[from:to]))
		from = to
		if m.pen.style != last.style {
			b.WriteString("\x1b[" + m.pen.style.params() + "m")
		}
		if m.pen.url != last.url {
			b.WriteString("\x1b]8;;" + m.pen.url + "\a")
		}
		last = m.pen
	}
	b.WriteString(clean(r.text[from:]))
	s, err := terminal.NewScreen(terminal.WithSize(b.Len()+1, 1))
	if err != nil {
		panic(err) // the size is at least 1 by 1
	}
	if _, err := s.Write([]byte(b.String())); err != nil {
		panic(err) // it writes to memory
	}
	out := s.AsHTML()
	if out == "&nbsp;" {
		return ""
	}
	return strings.ReplaceAll(out, `<a href="`, `<a rel="nofollow noopener noreferrer" href="`)
}

// clean returns p as valid UTF-8 without control characters. A mark may stand
// inside a character that bytes were lost from; both halves are replaced then.
func clean(p []byte) string {
	ok := utf8.Valid(p)
	if ok {
		for i := 1; i < len(p); i++ {
			if p[i-1] == 0xc2 && p[i] < 0xa0 {
				ok = false
				break
			}
		}
	}
	if ok {
		return string(p)
	}
	var b strings.Builder
	b.Grow(len(p) + 16)
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r >= 0x80 && r < 0xa0 {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		p = p[size:]
	}
	return b.String()
}
