package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// timeLayout is how times are shown to people, in their own time zone.
const timeLayout = "2006-01-02 15:04:05"

// showTime writes a time for people; "-" for not yet.
func showTime(t ci.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(timeLayout)
}

// table is rows of text in columns that line up.
type table struct {
	rows [][]string
}

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

// row adds a row. Empty cells show as "-".
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the rows, each column as wide as its widest cell.
func (t *table) print(w io.Writer) error {
	var widths []int
	for _, r := range t.rows {
		for i := range r {
			if r[i] = cell(r[i]); i >= len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(r)-1 {
				b.WriteString(c + "\n")
				continue
			}
			b.WriteString(c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell makes a text one line that a terminal shows as it is.
func cell(s string) string {
	s = printableText(strings.Join(strings.Fields(s), " "))
	if s == "" {
		return "-"
	}
	return s
}

// fields is one record for people: names and values in two columns.
type fields struct{ table }

// add adds a line, and nothing for an empty value.
func (f *fields) add(name, value string) {
	if value != "" {
		f.row(name+":", value)
	}
}

// printJSON writes any value as indented JSON.
func printJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return indentJSON(w, b)
}

// indentJSON writes a server's JSON as it came, with line breaks.
func indentJSON(w io.Writer, b []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(b), "", "  "); err != nil {
		return fmt.Errorf("the server's answer is not JSON; check that its address is docket's: %w", err)
	}
	out.WriteByte('\n')
	to, flush := forTerminal(w)
	if _, err := out.WriteTo(to); err != nil {
		return err
	}
	return flush()
}
