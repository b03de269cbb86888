package payload

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ID is a positive integer, or absent (N is 0), or bad.
type ID struct {
	N   int64
	Bad bool
}

// Read reads any value; null is absent.
func (v *ID) Read(r *Reader) {
	*v = ID{}
	text := r.Skip()
	if text == "null" {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		v.Bad = true
		return
	}
	v.N = n
}

// Instant reads a time given as a number of Unix seconds or in RFC 3339, in
// Unix seconds. It is a hint, so anything else is none: 0.
func (r *Reader) Instant() int64 {
	if r.Next() == '"' {
		if t, err := time.Parse(time.RFC3339, r.Unquote()); err == nil {
			return max(0, t.Unix())
		}
		return 0
	}
	n, _ := strconv.ParseInt(r.Skip(), 10, 64)
	return max(0, n)
}

// FirstLine returns s up to its first line break, without sharing its memory.
func FirstLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return strings.Clone(s)
}

// Clip cuts s to at most n bytes, between characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
