package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

// Fault is one mistake in the configuration and where it stands, with every
// literal secret masked in its source line.
type Fault = pipeline.Fault

// ConfigError is every fault of one configuration file, in the file's order.
type ConfigError struct {
	File   string
	Faults []Fault
	check  string // the flag under which check looks at such a file; "" for -c
}

// Error renders all faults for a terminal.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
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
func printableText(s string) string { return pipeline.Printable(s) }

// didYouMean returns a question about the nearest of the names, or "".
func didYouMean(got string, names []string) string { return pipeline.DidYouMean(got, names) }
