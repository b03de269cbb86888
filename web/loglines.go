package web

import (
	"html/template"
	"strconv"
	"strings"
)

// blockLines is how many lines stand in one block. Where there are more than
// WindowLines, a browser leaves out the layout of whole blocks that are out of
// sight, see .b.f in app.css.
const blockLines = 200

// linesHTML draws a step's lines: two elements each, in blocks. Slugs, numbers
// and times hold nothing that HTML reads, and the lines are HTML already.
func linesHTML(s LogStep) template.HTML {
	var b strings.Builder
	size := 64
	for _, l := range s.Lines {
		size += len(l.HTML) + 2*len(s.Slug) + 80
	}
	b.Grow(size)
	for i, l := range s.Lines {
		if i%blockLines == 0 {
			if i > 0 {
				b.WriteString("</div>")
			}
			b.WriteString(`<div class="b`)
			if len(s.Lines) > WindowLines && len(s.Lines)-i >= blockLines {
				b.WriteString(` f`)
			}
			b.WriteString(`">`)
		}
		writeLine(&b, s.Slug, l, i > 0)
	}
	if len(s.Lines) > 0 {
		b.WriteString("</div>")
	}
	if s.Partial != nil {
		b.WriteString(`<div class="b p">`)
		writeLine(&b, s.Slug, *s.Partial, len(s.Lines) > 0)
		b.WriteString("</div>")
	}
	return template.HTML(b.String())
}

// writeLine draws a line. Only the first is a stop of the tab key; from there
// the arrow keys go on.
func writeLine(b *strings.Builder, slug string, l LogLine, skip bool) {
	n := strconv.Itoa(l.N)
	b.WriteString(`<div class="l`)
	if l.Notice {
		b.WriteString(` nt`)
	}
	b.WriteString(`" id="` + slug + `-` + n + `"`)
	if !l.At.IsZero() {
		b.WriteString(` data-t="` + l.At.UTC().Format("15:04:05.000") + `"`)
	}
	b.WriteString(`><a href="#` + slug + `-` + n + `"`)
	if skip {
		b.WriteString(` tabindex="-1"`)
	}
	b.WriteString(`>` + n + `</a>`)
	b.WriteString(string(l.HTML))
	b.WriteString("</div>")
}
