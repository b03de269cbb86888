package pipeline

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Fault is one mistake in a file that a person wrote, and where it stands.
// Line and Column count from 1, columns in characters; both are 0 where the
// file itself is the matter. Source is the line as written.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Source  string `json:"source"`
}

// String is the fault for a terminal: FILE:LINE:COL: what and how to mend it,
// then the source line with a caret under the column.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.place() + ": " + f.Message)
	if f.Line == 0 || f.Source == "" {
		return b.String()
	}
	line, column := excerpt(f.Source, f.Column)
	number := fmt.Sprint(f.Line)
	fmt.Fprintf(&b, "\n  %s | %s\n  %s | %s^", number, line, strings.Repeat(" ", len(number)), caretIndent(line, column))
	return b.String()
}

func (f Fault) place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// maxExcerpt is how much of a very long source line is shown, in characters.
const maxExcerpt = 120

// excerpt cuts a long line around a column and makes it safe for a terminal.
func excerpt(line string, column int) (string, int) {
	r := []rune(Printable(line))
	if len(r) <= maxExcerpt {
		return string(r), column
	}
	from := max(0, min(column-maxExcerpt/2, len(r)-maxExcerpt))
	return string(r[from : from+maxExcerpt]), column - from
}

// caretIndent returns what stands before the caret: as many characters as
// before the column, with tabs kept so that both lines are shown alike.
func caretIndent(line string, column int) string {
	var b strings.Builder
	for _, c := range line {
		if column--; column <= 0 {
			return b.String()
		}
		if c == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	if column > 1 {
		b.WriteString(strings.Repeat(" ", column-1))
	}
	return b.String()
}

// Printable replaces what would move a terminal's cursor, change its colours
// or turn the direction of what follows; tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < ' ', r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return utf8.RuneError
		}
		return r
	}, s)
}

// DidYouMean returns a question about the nearest of the names, or "".
func DidYouMean(got string, names []string) string {
	best, bestDistance := "", 3
	for _, n := range names {
		if d := distance(strings.ToLower(got), n); d < bestDistance && d < len(n) {
			best, bestDistance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
