package runner

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"docket/store/ci"
)

// minMaskedLine is the length in bytes from which a single line of a secret
// is a secret of its own.
const minMaskedLine = 8

// masker knows what must not be seen. It is shared by all streams of a run.
type masker struct {
	byFirst [256][][]byte // patterns by their first byte, longest first
	any     bool
}

// newMasker masks each value and each of its lines of 8 bytes or more.
func newMasker(values []string) *masker {
	m := &masker{}
	m.add(values...)
	return m
}

// add masks more. It must not be called while a stream of the masker is in use
// elsewhere.
func (m *masker) add(values ...string) {
	add := func(s string) {
		if s == "" || slices.ContainsFunc(m.byFirst[s[0]], func(p []byte) bool { return string(p) == s }) {
			return
		}
		m.any = true
		m.byFirst[s[0]] = append(m.byFirst[s[0]], []byte(s))
	}
	for _, v := range values {
		add(v)
		for line := range strings.SplitSeq(v, "\n") {
			if line = strings.TrimSuffix(line, "\r"); len(line) >= minMaskedLine {
				add(line)
			}
		}
	}
	for i := range m.byFirst {
		slices.SortFunc(m.byFirst[i], func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	}
}

// match returns the length of the longest pattern that b starts with. more is
// true if bytes after b could make it a longer one.
func (m *masker) match(b []byte) (n int, more bool) {
	for _, p := range m.byFirst[b[0]] {
		if len(p) > len(b) {
			if bytes.HasPrefix(p, b) {
				return 0, true
			}
		} else if bytes.HasPrefix(b, p) {
			return len(p), false
		}
	}
	return 0, false
}

// text masks a whole text.
func (m *masker) text(s string) string {
	st := stream{m: m}
	return string(append(st.write([]byte(s)), st.flush()...))
}

// stream masks output that comes in pieces. Secrets that overlap are masked
// together, so that no end of one shows beside the other's mask.
type stream struct {
	m       *masker
	held    []byte // may still become a secret
	covered int    // how many bytes of held belong to a secret whose mask is out
}

// write returns what may be shown now: all but a tail that could be the
// beginning of a secret. The result is valid until the next call, and may be
// p itself.
func (s *stream) write(p []byte) []byte {
	if !s.m.any {
		return p
	}
	data := p
	if len(s.held) > 0 {
		data = append(s.held, p...)
	}
	return s.mask(data, false)
}

// flush returns the tail: nothing follows it.
func (s *stream) flush() []byte {
	if len(s.held) == 0 {
		return nil
	}
	return s.mask(s.held, true)
}

func (s *stream) mask(data []byte, last bool) []byte {
	out := make([]byte, 0, len(data))
	end := s.covered // data[:end] is masked already
	i := 0
	for i < len(data) {
		if len(s.m.byFirst[data[i]]) > 0 {
			n, more := s.m.match(data[i:])
			if more && !last {
				break
			}
			if more {
				n = s.m.complete(data[i:])
			}
			if n > 0 {
				if i >= end {
					out = append(out, ci.Mask...)
				}
				end = max(end, i+n)
			}
		}
		if i >= end {
			out = append(out, data[i])
		}
		i++
	}
	s.held = append([]byte(nil), data[i:]...)
	s.covered = max(0, end-i)
	return out
}

// complete is match where nothing follows b.
func (m *masker) complete(b []byte) int {
	for _, p := range m.byFirst[b[0]] {
		if bytes.HasPrefix(b, p) {
			return len(p)
		}
	}
	return 0
}
