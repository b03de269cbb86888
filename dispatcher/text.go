package dispatcher

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxExcerpt is how much of an answer's text is kept, in bytes.
const maxExcerpt = 200

// excerpt returns the beginning of a text from outside: printable, on one
// line, at most maxExcerpt bytes, with secrets masked.
func excerpt(s string, secrets ...string) string {
	s = strings.Join(strings.Fields(printable(hide(s, secrets...))), " ")
	if len(s) <= maxExcerpt {
		return s
	}
	cut := maxExcerpt
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// printable drops invalid UTF-8 and control characters; those that separate
// lines and words become blanks.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// shorten returns s as printable text of at most n characters; what is cut
// off is shown by an ellipsis.
func shorten(s string, n int) string {
	s = printable(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for at := range s {
		if i == n-1 {
			return s[:at] + "…"
		}
		i++
	}
	return s
}
