package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// reader walks a YAML tree and gathers every fault on its way. Its methods
// return the zero value for what is missing or faulty and go on.
type reader struct {
	faults
	keys    map[section]mapping
	anchors map[string]ast.Node
	nodes   int // seen, with every alias and merge followed
}

func newReader(file string) *reader {
	return &reader{
		faults:  faults{file: file, masked: map[int][]string{}},
		keys:    configKeys(),
		anchors: map[string]ast.Node{},
	}
}

// lineBreaks makes every line break of YAML (1.2.2, section 5.4) the one that
// places are counted by.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parse returns the document's root, or nil after reporting why there is none.
func (r *reader) parse(text string) (root ast.Node) {
	text = lineBreaks.Replace(strings.TrimPrefix(text, "\ufeff"))
	r.lines = strings.Split(text, "\n")
	if len(text) > maxConfigBytes {
		r.add(0, 0, "the file is over 1 MiB; a configuration is smaller, so check that this is the right file")
		return nil
	}
	for i, l := range r.lines {
		if !utf8.ValidString(l) {
			r.add(i+1, 1, "this line is not UTF-8; save the file as UTF-8")
			return nil
		}
	}
	defer func() {
		if p := recover(); p != nil {
			root = nil
			r.add(0, 0, "the file cannot be read as YAML; check its indentation and quotes")
		}
	}()
	tokens := lexer.Tokenize(text)
	if t := tooDeep(tokens); t != nil {
		r.add(t.Position.Line, t.Position.Column, "more than %d levels are nested here; a configuration has a handful", maxNesting)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil
	}
	root = r.body(file)
	if root != nil {
		ast.Walk(r, root)
	}
	return root
}

// Visit learns where each anchor points; it makes the reader an ast.Visitor.
func (r *reader) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		name := a.Name.GetToken().Value
		if _, twice := r.anchors[name]; twice {
			r.at(a, "the anchor &%s is given twice; name one of them differently", name)
		}
		r.anchors[name] = a.Value
	}
	return r
}

func (r *reader) body(file *ast.File) ast.Node {
	var root ast.Node
	for _, d := range file.Docs {
		switch d.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		if root != nil {
			line, column := position(d.Body)
			r.add(line, column, "a second YAML document begins here; keep everything in one, without ---")
			return nil
		}
		root = d.Body
	}
	if root == nil {
		r.add(0, 0, "the file is empty; `docket init` writes one to begin with")
	}
	return root
}

// syntax reports what the parser could not read.
func (r *reader) syntax(err error) {
	e, ok := err.(yaml.Error)
	if !ok || e.GetToken() == nil || e.GetToken().Position == nil {
		r.add(0, 0, "the file cannot be read as YAML: %s", oneLine(err.Error()))
		return
	}
	p := e.GetToken().Position
	if strings.Contains(e.GetMessage(), "undefined alias") {
		r.add(min(max(p.Line, 1), len(r.lines)), max(p.Column, 1), `this is not YAML, where an unquoted * begins an alias; quote the text, as in "* * * * *"`)
		return
	}
	r.add(min(max(p.Line, 1), len(r.lines)), max(p.Column, 1), "this is not YAML: %s; check the indentation, brackets and quotes up to here", oneLine(e.GetMessage()))
}

func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return printableText(s)
}

// position returns where a node begins: for a block mapping its first key.
func position(n ast.Node) (line, column int) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0, 0
	}
	p := n.GetToken().Position
	return p.Line, p.Column
}

// at reports a fault where a node begins.
func (r *reader) at(n ast.Node, format string, args ...any) {
	line, column := position(n)
	r.add(line, column, format, args...)
}

// resolve follows anchors, aliases and tags to the node that counts; nil
// after a fault.
func (r *reader) resolve(n ast.Node) ast.Node {
	for range maxNesting {
		if !r.spend(n, 1) {
			return nil
		}
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			name := v.Value.GetToken().Value
			target, ok := r.anchors[name]
			if !ok {
				r.at(n, "the alias *%s has no anchor &%s in this file; write the value out", name, name)
				return nil
			}
			n = target
		case *ast.TagNode:
			r.at(n, "the tag %s is not used in this file; remove it and quote the value if it is text", v.GetToken().Value)
			return nil
		default:
			return n
		}
	}
	r.at(n, "this alias leads back to itself; write the value out")
	return nil
}

// entry is one key of a mapping with its value, not yet resolved.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// entries returns the keys of a mapping in order, those of merged mappings
// (<<) last and without those given beside them. Keys given twice are faults.
func (r *reader) entries(n ast.Node, what string, depth int) (list []entry, ok bool) {
	m, isMap := n.(*ast.MappingNode)
	if !isMap {
		if n != nil {
			r.at(n, "%s must be a mapping of keys to values, but this is %s", what, kind(n))
		}
		return nil, false
	}
	if depth > maxNesting {
		r.at(n, "this merge leads back to itself; write the values out")
		return nil, false
	}
	at := map[string]int{}
	var merged []entry
	for _, v := range m.Values {
		if _, isMerge := v.Key.(*ast.MergeKeyNode); isMerge {
			merged = append(merged, r.merge(v.Value, depth)...)
			continue
		}
		name, isText := keyText(v.Key)
		if !isText {
			r.at(v.Key, "a key of %s must be plain text", what)
			continue
		}
		if line, twice := at[name]; twice {
			r.at(v.Key, "the key %q is given twice, first in line %d; keep one", name, line)
			continue
		}
		at[name], _ = position(v.Key)
		list = append(list, entry{name, v.Key, v.Value})
	}
	for _, e := range merged {
		if _, given := at[e.name]; !given {
			at[e.name] = 0
			list = append(list, e)
		}
	}
	return list, true
}

func (r *reader) merge(n ast.Node, depth int) (list []entry) {
	n = r.resolve(n)
	from := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		from = s.Values
	}
	for _, v := range from {
		l, _ := r.entries(r.resolve(v), "a merged value", depth+1)
		if !r.spend(v, len(l)) {
			return nil
		}
		list = append(list, l...)
	}
	return list
}

func keyText(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.NullNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// kind names a node's type for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "empty"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	}
	return "text"
}

// object is a mapping whose keys are known.
type object struct {
	r      *reader
	node   ast.Node
	what   string // for people: "the project \"api\""
	keys   mapping
	fields map[string]entry
}

// object reads a mapping of a section, reporting keys that are not of it. It
// returns nil for what is not a mapping.
func (r *reader) object(n ast.Node, s section, what string) *object {
	n = r.resolve(n)
	list, ok := r.entries(n, what, 0)
	if !ok {
		return nil
	}
	o := &object{r: r, node: n, what: what, keys: r.keys[s], fields: map[string]entry{}}
	known := names(o.keys.keys)
	for _, e := range list {
		switch {
		case slices.Contains(known, e.name):
			o.fields[e.name] = e
		default:
			r.maskStray(e)
			r.at(e.key, "%s has no key %q%s; the keys are %s", what, e.name, didYouMean(e.name, known), strings.Join(known, ", "))
		}
	}
	return o
}

// absent is a mapping that is not given: each of its keys has its default.
func (r *reader) absent(s section) *object {
	return &object{r: r, what: string(s), keys: r.keys[s], fields: map[string]entry{}}
}

// key returns what is known of a key. It panics for one that the tables do not
// have, which any test finds that comes by.
func (o *object) key(name string) key {
	k, ok := o.keys.keyOf(name)
	if !ok {
		panic("no key " + name + " of " + o.what)
	}
	return k
}

// maskStray keeps the value of a misspelt secret's key out of what is shown.
func (r *reader) maskStray(e entry) {
	secrets := []string{"secret", "secrets", "token", "admin_token", "webhook_secrets", "slack", "password", "private_key"}
	if v, ok := e.value.(ast.ScalarNode); ok && didYouMean(e.name, secrets) != "" {
		line, _ := position(v)
		r.mask(line, secretText(v))
	}
}

// list returns the elements of a list, or of nothing after a fault.
func (r *reader) list(n ast.Node, what string) []ast.Node {
	n = r.resolve(n)
	switch v := n.(type) {
	case nil:
		return nil
	case *ast.SequenceNode:
		return v.Values
	}
	r.at(n, "%s must be a list, but this is %s", what, kind(n))
	return nil
}

// has reports whether a key is given.
func (o *object) has(key string) bool { _, ok := o.fields[key]; return ok }

// field returns a key's value as it stands, and nil where it is missing.
func (o *object) field(key string) ast.Node { return o.fields[key].value }

// need reports a missing key; example shows how to write it.
func (o *object) need(key, example string) bool {
	if o.has(key) {
		return true
	}
	o.r.at(o.node, "%s has no %s; add one, as in `%s: %s`", o.what, key, key, example)
	return false
}

// at reports a fault at a key's value, or at the object if the key is missing.
func (o *object) at(key, format string, args ...any) {
	if e, ok := o.fields[key]; ok {
		o.r.at(e.value, format, args...)
		return
	}
	o.r.at(o.node, format, args...)
}

func quoteAll(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
