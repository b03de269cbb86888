package pipeline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"docket/store/ci"
)

// Bounds of a pipeline file.
const (
	MaxFile  = 64 << 10 // bytes
	MaxSteps = 50
	// maxTokens and maxNesting keep the cost of a hostile file down.
	maxTokens  = 20_000
	maxNesting = 20
	maxFaults  = 200 // that are looked for
	maxTold    = 10  // of them in one error
)

// File is a repository's pipeline file: what it may say about its own runs.
type File struct {
	Steps   []ci.Step
	Env     map[string]string
	Timeout time.Duration // 0: not given
}

// Apply returns the spec with the file's steps, its variables over those of
// the project, and its time-out where that is shorter than the project's: the
// repository may ask for less than the operator allows, not for more.
func Apply(spec ci.Spec, f File) ci.Spec {
	spec.Steps = append([]ci.Step{}, f.Steps...)
	if len(f.Env) > 0 {
		env := maps.Clone(spec.Env)
		if env == nil {
			env = map[string]string{}
		}
		maps.Copy(env, f.Env)
		spec.Env = env
	}
	if t := ci.Duration(f.Timeout); t > 0 && (spec.Timeout <= 0 || t < spec.Timeout) {
		spec.Timeout = t
	}
	return spec
}

// ParseFile reads a pipeline file: steps (name, run, deploy), env and timeout,
// in YAML and nothing else. path is its name in the repository, for errors.
//
// Every error is CodeInvalid. Its message has each fault, up to maxTold of
// them, as Fault.String gives it. Whatever is in b, it costs little and does
// not panic.
func ParseFile(path string, b []byte) (File, error) {
	f, faults := CheckFile(path, b)
	if len(faults) == 0 {
		return f, nil
	}
	lines := make([]string, 0, maxTold+1)
	for i, fault := range faults {
		if i == maxTold {
			lines = append(lines, fmt.Sprintf("and %d more; `docket check --pipeline %s` tells them all", len(faults)-maxTold, path))
			break
		}
		lines = append(lines, fault.String())
	}
	return File{}, ci.Errorf(ci.CodeInvalid, "%s", strings.Join(lines, "\n"))
}

// CheckFile is ParseFile that returns every fault by itself, up to maxFaults,
// in the order in which they stand; the file is empty if there is one.
func CheckFile(path string, b []byte) (f File, faults []Fault) {
	r := fileReader{path: path, text: b}
	defer func() {
		if p := recover(); p != nil { // the YAML library's, on text that is none
			r.only(1, 1, "docket cannot read this as YAML; write it more plainly")
			f, faults = File{}, r.faults
		}
	}()
	if !r.plain() {
		return File{}, r.faults
	}
	doc, ok := r.document()
	if !ok {
		return File{}, r.faults
	}
	if r.file(doc, &f); len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return File{}, r.faults
	}
	return f, nil
}

// fileReader collects the faults of one file.
type fileReader struct {
	path   string
	text   []byte
	faults []Fault
}

// plain checks what can be seen before any YAML is read.
func (r *fileReader) plain() bool {
	if len(r.text) > MaxFile {
		return r.only(1, 1, "the file has over %d bytes, the most that is read; move long scripts into files of their own", MaxFile)
	}
	if i := bytes.IndexByte(r.text, 0); i >= 0 {
		line, col := r.position(i)
		return r.only(line, col, "a NUL byte; save the file as UTF-8 text")
	}
	for i, rest := 0, r.text; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if c == utf8.RuneError && n == 1 {
			line, col := r.position(i)
			return r.only(line, col, "not UTF-8; save the file as UTF-8 text")
		}
		i, rest = i+n, rest[n:]
	}
	return true
}

// position returns the line and column, from 1 and in characters, of an offset.
func (r *fileReader) position(offset int) (line, col int) {
	before := r.text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// document returns the one YAML document's value, nil for none; ok is false
// after a fault.
func (r *fileReader) document() (body ast.Node, ok bool) {
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(r.text, []byte("\ufeff"))))
	if !r.bounded(tokens) {
		return nil, false
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // mapping tells of those
	if err != nil {
		line, col, what := 1, 1, err.Error()
		var ye yaml.Error
		if errors.As(err, &ye) {
			what = ye.GetMessage()
			if t := ye.GetToken(); t != nil && t.Position != nil {
				line, col = t.Position.Line, t.Position.Column
			}
		}
		what, _, _ = strings.Cut(what, "\n")
		return nil, r.only(line, col, "this is not valid YAML (%s); check the indentation and quotes here and above", Printable(what))
	}
	for _, d := range tree.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			r.fault(d.Body, "a second YAML document; a pipeline file has one, so leave out the --- between them")
			return nil, false
		default:
			body = d.Body
		}
	}
	return body, true
}

// bounded refuses what could make reading cost more than the file is worth.
func (r *fileReader) bounded(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		t := tokens[maxTokens]
		return r.only(t.Position.Line, t.Position.Column, "too many YAML values; a pipeline file is a short list of steps")
	}
	flow, indents := 0, []int{}
	lastLine := 0
	for _, t := range tokens {
		line, col := t.Position.Line, t.Position.Column
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return r.only(line, col, "anchors (&) and aliases (*) are not read here; write the value out, and put quotes around text that begins with & or *")
		case token.TagType:
			return r.only(line, col, "tags (!) are not read here; leave the tag out, and put quotes around text that begins with !")
		case token.DirectiveType:
			return r.only(line, col, "directives (%%) are not read here; leave the line out")
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
		if line != lastLine {
			lastLine = line
			for len(indents) > 0 && indents[len(indents)-1] >= col {
				indents = indents[:len(indents)-1]
			}
		}
		if flow == 0 && (t.Type == token.SequenceEntryType || t.Type == token.MappingValueType || t.Type == token.MappingKeyType) {
			if len(indents) == 0 || indents[len(indents)-1] < col {
				indents = append(indents, col)
			}
		}
		if flow > maxNesting || len(indents) > 4*maxNesting {
			return r.only(line, col, "values lie too deep in each other; a pipeline file is a short list of steps")
		}
	}
	return true
}

// fault notes what is wrong at a node.
func (r *fileReader) fault(n ast.Node, format string, args ...any) {
	line, col := 1, 1
	switch m := n.(type) { // whose own token is a colon in its first line
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		line, col = t.Position.Line, t.Position.Column
	}
	r.faultAt(line, col, format, args...)
}

func (r *fileReader) faultAt(line, col int, format string, args ...any) {
	if len(r.faults) == maxFaults {
		return
	}
	r.faults = append(r.faults, Fault{File: r.path, Line: line, Column: max(col, 1), Message: fmt.Sprintf(format, args...), Source: r.source(line)})
}

// only makes one fault the only one, as it leaves nothing else to look at. It
// returns false.
func (r *fileReader) only(line, col int, format string, args ...any) bool {
	r.faults = nil
	r.faultAt(line, col, format, args...)
	return false
}

// source returns a line of the file, fit to be shown.
func (r *fileReader) source(line int) string {
	lines := bytes.SplitN(bytes.TrimPrefix(r.text, []byte("\ufeff")), []byte("\n"), line+1)
	if line < 1 || line > len(lines) || len(r.text) > MaxFile {
		return ""
	}
	return Printable(strings.ToValidUTF8(strings.TrimRight(string(lines[line-1]), "\r \t"), "\ufffd"))
}
