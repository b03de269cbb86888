package web

import (
	"net/url"
	"strings"
)

// escMode is where in an escape sequence a byte stands.
type escMode uint8

const (
	escNone      escMode = iota
	escBegun             // after ESC
	escInter             // after ESC and an intermediate byte, as in a change of character set
	escCSI               // in ESC [
	escString            // in an OSC, DCS, APC, PM or SOS, up to BEL or ESC \
	escStringEnd         // after an ESC in one of those
)

// escDone is what a byte has completed.
type escDone uint8

const (
	escGoesOn escDone = iota // nothing, or nothing that matters
	escStyle                 // text is the parameters of an SGR
	escHome                  // the line begins anew
	escLink                  // text is the parameters of an OSC 8
)

// maxEscape bounds what is kept of one sequence, in bytes.
const maxEscape = 4 << 10

// escape reads one escape sequence at a time.
type escape struct {
	mode escMode
	osc  bool
	long bool // more came than is kept
	buf  []byte
}

func (e *escape) reset() { e.mode, e.osc, e.long, e.buf = escNone, false, false, e.buf[:0] }

// text returns the parameters of the sequence that was just completed.
func (e *escape) text() string { return string(e.buf) }

func (e *escape) keep(c byte) {
	if len(e.buf) == maxEscape {
		e.long = true
		return
	}
	e.buf = append(e.buf, c)
}

// next reads a byte. The byte that begins a sequence is ESC.
func (e *escape) next(c byte) escDone {
	switch e.mode {
	case escNone:
		e.reset()
		e.mode = escBegun
	case escBegun:
		e.begun(c)
	case escInter:
		if c < 0x20 || c > 0x2f {
			e.mode = escNone
		}
	case escCSI:
		return e.csi(c)
	case escString:
		switch c {
		case 0x07:
			return e.endString()
		case 0x1b:
			e.mode = escStringEnd
		case 0x18, 0x1a: // CAN, SUB
			e.mode = escNone
		default:
			e.keep(c)
		}
	case escStringEnd:
		if c == '\\' {
			return e.endString()
		}
		e.reset()
		e.begun(c)
	}
	return escGoesOn
}

func (e *escape) begun(c byte) {
	switch {
	case c == '[':
		e.mode = escCSI
	case c == ']':
		e.mode, e.osc = escString, true
	case c == 'P' || c == 'X' || c == '^' || c == '_':
		e.mode = escString
	case c >= 0x20 && c <= 0x2f:
		e.mode = escInter
	case c == 0x1b:
		e.mode = escBegun
	default:
		e.mode = escNone
	}
}

func (e *escape) csi(c byte) escDone {
	switch {
	case c == 0x1b:
		e.reset()
		e.mode = escBegun
		return escGoesOn
	case c >= 0x40 && c <= 0x7e:
		e.mode = escNone
		if e.long {
			return escGoesOn
		}
		return csiDone(c, e.text())
	case c >= 0x20:
		e.keep(c)
	}
	return escGoesOn
}

func csiDone(final byte, params string) escDone {
	switch final {
	case 'm':
		if strings.Trim(params, "0123456789;:") == "" {
			return escStyle
		}
	case 'G', '`': // to a column
		if params == "" || params == "0" || params == "1" {
			return escHome
		}
	case 'K': // clear the line
		if params == "2" {
			return escHome
		}
	}
	return escGoesOn
}

func (e *escape) endString() escDone {
	e.mode = escNone
	if e.osc && !e.long && strings.HasPrefix(e.text(), "8;") {
		return escLink
	}
	return escGoesOn
}

// linkURL returns the address of an OSC 8 if it is one that may be followed,
// else "", which also ends a link.
func linkURL(osc string) string {
	_, rest, _ := strings.Cut(osc, ";")
	_, raw, ok := strings.Cut(rest, ";")
	if !ok || raw == "" || len(raw) > 2048 {
		return ""
	}
	for i := range len(raw) {
		if raw[i] <= 0x20 || raw[i] >= 0x7f {
			return ""
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	link := strings.ReplaceAll(u.String(), ";", "%3B")
	if _, err := url.Parse(link); err != nil { // a host with a semicolon, which none has
		return ""
	}
	return link
}
