package pipeline

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// maxStepName bounds a step's name, in bytes.
const maxStepName = 100

// file reads the outermost mapping.
func (r *fileReader) file(doc ast.Node, f *File) {
	if doc == nil || doc.Type() == ast.NullType {
		r.faultAt(1, 1, "the file is empty; write steps, as in: steps: [{name: test, run: make test}]")
		return
	}
	steps := false
	ok := r.mapping(doc, "the file", keyNames(FileKeys()), func(key string, at, value ast.Node) {
		switch key {
		case "steps":
			steps = true
			r.steps(at, value, f)
		case "env":
			r.env(value, f)
		case "timeout":
			r.timeout(value, f)
		}
	})
	if ok && !steps {
		r.fault(doc, "the file has no steps; write some, as in: steps: [{name: test, run: make test}]")
	}
}

// mapping calls field for each key of a mapping that is among known, or for
// every key if known is nil, and reports whether n is a mapping.
func (r *fileReader) mapping(n ast.Node, what string, known []string, field func(key string, at, value ast.Node)) bool {
	m, ok := n.(ast.MapNode)
	if !ok {
		want := "names and values"
		if known != nil {
			want = strings.Join(known, ", ")
		}
		r.fault(n, "%s is %s; want a mapping of %s", what, kind(n), want)
		return false
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		at, value := ast.Node(it.Key()), it.Value()
		key, ok := scalar(at)
		switch {
		case !ok:
			r.fault(at, "a key of %s is %s; want plain text", what, kind(at))
		case seen[key]:
			r.fault(at, "%q is given twice in %s; keep one", clip(key), what)
		case known != nil && !slices.Contains(known, key):
			r.fault(at, "%s has no key %q%s; it has %s", what, clip(key), DidYouMean(key, known), strings.Join(known, ", "))
		default:
			field(key, at, value)
		}
		seen[key] = true
	}
	return true
}

func (r *fileReader) steps(at, value ast.Node, f *File) {
	list, ok := value.(*ast.SequenceNode)
	if !ok {
		r.fault(at, "steps is %s; want a list, as in: steps: [{name: test, run: make test}]", kind(value))
		return
	}
	switch n := len(list.Values); {
	case n == 0:
		r.fault(at, "steps is empty; write at least one, as in: {name: test, run: make test}")
		return
	case n > MaxSteps:
		r.fault(at, "there are %d steps and may be %d; join some of them in one script", n, MaxSteps)
		return
	}
	names := map[string]bool{}
	for _, n := range list.Values {
		if step, ok := r.step(n, names); ok {
			f.Steps = append(f.Steps, step)
		}
	}
}

func (r *fileReader) step(n ast.Node, names map[string]bool) (ci.Step, bool) {
	var s ci.Step
	named, runs := false, false
	ok := r.mapping(n, "a step", keyNames(StepKeys()), func(key string, at, value ast.Node) {
		switch key {
		case "name":
			named = true
			s.Name = r.stepName(value, names)
		case "run":
			runs = true
			text, ok := value.(ast.ScalarNode)
			if !ok || value.Type() == ast.NullType {
				r.fault(at, "run is %s; want a shell script, as in: run: make test", kind(value))
				return
			}
			s.Run = strings.ReplaceAll(scalarText(text), "\r\n", "\n")
			if strings.TrimSpace(s.Run) == "" {
				r.fault(at, "run is blank; write the shell commands, or leave the step out")
			}
			r.noNUL(value, "run", s.Run)
		case "deploy":
			b, ok := value.(*ast.BoolNode)
			if !ok {
				r.fault(value, "deploy is %s; want true or false", kind(value))
				return
			}
			s.Deploy = b.Value
		}
	})
	if !ok {
		return s, false
	}
	if !named {
		r.fault(n, "a step has no name; give it one, as in: {name: test, run: make test}")
	}
	if !runs {
		r.fault(n, "a step has no run; give it a shell script, as in: {name: test, run: make test}")
	}
	return s, true
}

func (r *fileReader) stepName(n ast.Node, names map[string]bool) string {
	name, ok := scalar(n)
	switch {
	case !ok || strings.TrimSpace(name) == "":
		r.fault(n, "a step's name is empty or no text; give it a short one")
	case len(name) > maxStepName:
		r.fault(n, "a step's name has %d bytes and may have %d; give it a shorter one", len(name), maxStepName)
	case strings.ContainsFunc(name, unicode.IsControl):
		r.fault(n, "a step's name has a line break or another control character in it; give it one line of text")
	case strings.HasPrefix(name, "@"):
		r.fault(n, "a step's name begins with @, which docket keeps for its own parts of a log; give it another one")
	case names[name]:
		r.fault(n, "there are two steps named %q; give each a name of its own", name)
	default:
		names[name] = true
	}
	return name
}

func (r *fileReader) env(n ast.Node, f *File) {
	f.Env = map[string]string{}
	r.mapping(n, "env", nil, func(key string, at, value ast.Node) {
		text, ok := scalar(value)
		switch {
		case !validEnvName(key):
			r.fault(at, "%q cannot name a variable; use letters, digits and _, and no digit first", clip(key))
		case ci.ReservedVariable(key):
			r.fault(at, "%q is docket's own to set; choose another name, and none that begins with DOCKET_", clip(key))
		case !ok:
			r.fault(value, "the value of %s is %s; want text (\"\" for an empty one)", key, kind(value))
		default:
			r.noNUL(value, key, text)
			f.Env[key] = text
		}
	})
}

func (r *fileReader) timeout(n ast.Node, f *File) {
	text, ok := scalar(n)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d <= 0 {
		r.fault(n, "timeout is no duration over zero; write it as in 90s, 30m or 1h30m")
		return
	}
	f.Timeout = d
}

func (r *fileReader) noNUL(n ast.Node, what, text string) {
	if strings.ContainsRune(text, 0) {
		r.fault(n, "%s has a NUL in it (\\0), which no program can be given; leave it out", what)
	}
}

// scalar returns a scalar's text as it is written, and false for null, lists
// and mappings.
func scalar(n ast.Node) (string, bool) {
	if k, ok := n.(*ast.MappingKeyNode); ok {
		n = k.Value
	}
	s, ok := n.(ast.ScalarNode)
	if !ok || n.Type() == ast.NullType {
		return "", false
	}
	return scalarText(s), true
}

func scalarText(s ast.ScalarNode) string {
	switch s := s.(type) {
	case *ast.StringNode:
		return s.Value
	case *ast.LiteralNode:
		return s.Value.Value
	}
	return s.GetToken().Value
}

// kind says what a node is, for people.
func kind(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "blank"
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.StringType, ast.LiteralType:
		return "text"
	}
	return "something else"
}

func validEnvName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
