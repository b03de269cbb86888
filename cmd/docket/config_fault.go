package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// Fault is one mistake in the configuration and where it stands. Line and
// Column count from 1, columns in characters; both are 0 where the file
// itself is the matter. Source is the line as written, with every literal
// secret masked.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Source  string `json:"source"`
}

// ConfigError is every fault of one configuration file, in the file's order.
type ConfigError struct {
	File   string
	Faults []Fault
}

// Error renders all faults for a terminal: FILE:LINE:COL: what and how to mend
// it, then the source line with a caret under the column.
func (e *ConfigError) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		f.render(&b)
	}
	return b.String()
}

// render writes one fault without a newline at its end.
func (f Fault) render(b *strings.Builder) {
	b.WriteString(f.position() + ": " + f.Message)
	if f.Line == 0 || f.Source == "" {
		return
	}
	line, column := excerpt(f.Source, f.Column)
	number := fmt.Sprint(f.Line)
	fmt.Fprintf(b, "\n  %s | %s\n  %s | %s^", number, line, strings.Repeat(" ", len(number)), caretIndent(line, column))
}

func (f Fault) position() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// maxExcerpt is how much of a very long source line is shown, in characters.
const maxExcerpt = 120

// excerpt cuts a long line around a column and makes it safe for a terminal.
func excerpt(line string, column int) (string, int) {
	r := []rune(printableText(line))
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

// faults gathers faults while a file is read.
type faults struct {
	file   string
	lines  []string
	list   []Fault
	masked map[int][]string // by line: literal secrets, never to be shown
}

// mask keeps a literal secret, as it stands in the file from a line on, out of
// every source line that is shown.
func (fs *faults) mask(line int, literal string) {
	parts := strings.Split(literal, "\n")
	for i := range parts {
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" {
				fs.masked[line+i] = append(fs.masked[line+i], part)
			}
		}
	}
}

// add reports a fault at a line and column.
func (fs *faults) add(line, column int, format string, args ...any) {
	if line >= 1 && line <= len(fs.lines) { // the place of what is missing can be behind its line
		column = min(column, utf8.RuneCountInString(fs.lines[line-1])+1)
	}
	fs.list = append(fs.list, Fault{File: fs.file, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
}

// err returns all faults as one error, or nil.
func (fs *faults) err() error {
	if len(fs.list) == 0 {
		return nil
	}
	slices.SortStableFunc(fs.list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	fs.list = slices.CompactFunc(fs.list, func(a, b Fault) bool { return a == b })
	for i := range fs.list {
		fs.list[i].Source = fs.source(fs.list[i].Line)
	}
	return &ConfigError{File: fs.file, Faults: fs.list}
}

func (fs *faults) source(line int) string {
	if line < 1 || line > len(fs.lines) {
		return ""
	}
	s := fs.lines[line-1]
	longestFirst := func(a, b string) int { return cmp.Compare(len(b), len(a)) }
	for _, m := range slices.SortedFunc(slices.Values(fs.masked[line]), longestFirst) {
		s = strings.ReplaceAll(s, m, ci.Mask)
	}
	return s
}

// printableText replaces what would move a terminal's cursor or change its
// colours; tabs stay.
func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// didYouMean returns a question about the nearest of the names, or "".
func didYouMean(got string, names []string) string {
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
