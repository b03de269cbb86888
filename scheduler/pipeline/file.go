package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
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
	maxFaults  = 10 // that are told at once
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
// Every error is CodeInvalid. It has, for each fault, the line
// PATH:LINE:COL: what and how to mend it, and under that the source line.
// Whatever is in b, it costs little and does not panic.
func ParseFile(path string, b []byte) (f File, err error) {
	r := fileReader{path: path, text: b}
	defer func() {
		if p := recover(); p != nil { // the YAML library's, on text that is none
			f, err = File{}, r.only(1, 1, "docket cannot read this as YAML; write it more plainly")
		}
	}()
	if err := r.plain(); err != nil {
		return File{}, err
	}
	doc, err := r.document()
	if err != nil {
		return File{}, err
	}
	r.file(doc, &f)
	if err := r.err(); err != nil {
		return File{}, err
	}
	return f, nil
}

// fileReader collects the faults of one file.
type fileReader struct {
	path   string
	text   []byte
	faults []string
	count  int
}

// plain checks what can be seen before any YAML is read.
func (r *fileReader) plain() error {
	if len(r.text) > MaxFile {
		return ci.Errorf(ci.CodeInvalid, "%s:1:1: the file has %d bytes and may have %d; move long scripts into files of their own", r.path, len(r.text), MaxFile)
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
	return nil
}

// position returns the line and column, from 1 and in characters, of an offset.
func (r *fileReader) position(offset int) (line, col int) {
	before := r.text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// document returns the one YAML document's value, nil for none.
func (r *fileReader) document() (ast.Node, error) {
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(r.text, []byte("\ufeff"))))
	if err := r.bounded(tokens); err != nil {
		return nil, err
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
		return nil, r.only(line, col, "this is not valid YAML (%s); check the indentation and quotes here and above", what)
	}
	var body ast.Node
	for _, d := range tree.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			r.fault(d.Body, "a second YAML document; a pipeline file has one, so leave out the --- between them")
			return nil, r.err()
		default:
			body = d.Body
		}
	}
	return body, nil
}

// bounded refuses what could make reading cost more than the file is worth.
func (r *fileReader) bounded(tokens token.Tokens) error {
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
		if t.Type == token.SequenceEntryType || t.Type == token.MappingValueType || t.Type == token.MappingKeyType {
			if len(indents) == 0 || indents[len(indents)-1] < col {
				indents = append(indents, col)
			}
		}
		if flow > maxNesting || len(indents) > 4*maxNesting {
			return r.only(line, col, "values lie too deep in each other; a pipeline file is a short list of steps")
		}
	}
	return nil
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
	if r.count++; r.count <= maxFaults {
		r.faults = append(r.faults, fmt.Sprintf("%s:%d:%d: %s", r.path, line, max(col, 1), fmt.Sprintf(format, args...))+r.source(line))
	}
}

// only returns the error for one fault that leaves nothing else to look at.
func (r *fileReader) only(line, col int, format string, args ...any) error {
	r.faults, r.count = nil, 0
	r.faultAt(line, col, format, args...)
	return r.err()
}

// err returns the faults as one error, nil for none.
func (r *fileReader) err() error {
	if r.count == 0 {
		return nil
	}
	text := strings.Join(r.faults, "\n")
	if more := r.count - len(r.faults); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return ci.Errorf(ci.CodeInvalid, "%s", text)
}

// source returns a line of the file on a line of its own, fit to be shown.
func (r *fileReader) source(line int) string {
	lines := bytes.SplitN(r.text, []byte("\n"), line+1)
	if line < 1 || line > len(lines) {
		return ""
	}
	s := strings.TrimRight(string(lines[line-1]), "\r \t")
	s = strings.Map(func(c rune) rune {
		if c == '\t' {
			return ' '
		}
		if c < 0x20 || c >= 0x7f && c < 0xa0 {
			return utf8.RuneError
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
	if s == "" {
		return ""
	}
	return "\n    " + clip(s)
}
