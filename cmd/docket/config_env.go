package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

func envName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) }

func inputName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`) }

// reservedInput reports whether a variable decides what a shell, the loader
// or git executes: the operator may set it, a request may not.
func reservedInput(name string) bool {
	return ci.ReservedVariable(name) || slices.Contains([]string{"PATH", "LANG", "SHELL", "IFS", "ENV", "BASH_ENV", "PWD", "TMPDIR"}, name) ||
		strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_")
}

// inputVariable is the environment variable of an input.
func inputVariable(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// variables remembers what sets each variable of a project's steps.
type variables struct {
	r    *reader
	what string
	by   map[string]string
}

// claim takes a variable for env, secrets or an input; it is a fault if
// another of them has it.
func (v *variables) claim(n ast.Node, name, by string) {
	if other, taken := v.by[name]; taken {
		v.r.at(n, "%s: the variable %s is set by %s already; remove one of them", v.what, name, other)
		return
	}
	v.by[name] = by
}

// env reads a mapping of variables to values.
func (v *variables) env(o *object) map[string]string {
	list := v.names(o, "env")
	if len(list) == 0 {
		return nil
	}
	env := map[string]string{}
	for _, e := range list {
		value, ok := v.r.scalar(e.value, v.what+": env: "+e.name, true)
		if ok && len(value) > ci.MaxInput {
			v.r.at(e.value, "%s: env: %s is over %s, the most that a step's variable can hold; keep it in a file of the repository", v.what, e.name, formatSize(ci.MaxInput))
		}
		if ok {
			env[e.name] = value
		}
	}
	return env
}

// names reads the keys of a mapping as names of variables.
func (v *variables) names(o *object, key string) []entry {
	if !o.has(key) {
		return nil
	}
	all, _ := v.r.entries(v.r.resolve(o.field(key)), v.what+": "+key, 0)
	list := make([]entry, 0, len(all))
	for _, e := range all {
		switch {
		case !envName().MatchString(e.name):
			v.r.at(e.key, "%s: %s: %q cannot be the name of a variable; use letters, digits and _", v.what, key, e.name)
		case ci.ReservedVariable(e.name):
			v.r.at(e.key, "%s: %s: docket sets %s itself in every step; choose another name", v.what, key, e.name)
		default:
			v.claim(e.key, e.name, key)
			list = append(list, e)
		}
	}
	return list
}

// inputs reads what a manual request may set.
func (v *variables) inputs(o *object) (list []ci.Input) {
	if !o.has("inputs") {
		return nil
	}
	names := newNamed("input")
	for _, n := range v.r.list(o.field("inputs"), v.what+": inputs") {
		if in, ok := v.input(n, names); ok {
			list = append(list, in)
		}
	}
	return list
}

func (v *variables) input(n ast.Node, names *named) (ci.Input, bool) {
	o := v.r.object(n, sectionInput, v.what+": an input")
	if o == nil || !o.need("name", "target") {
		return ci.Input{}, false
	}
	in := ci.Input{Name: o.text("name")}
	if in.Name == "" {
		o.emptyText("name")
		return in, false
	}
	o.what = v.what + ": the input " + in.Name
	variable := inputVariable(in.Name)
	switch {
	case !inputName().MatchString(in.Name) || len(in.Name) > 63:
		o.at("name", "%s cannot be named so; use letters, digits, _ and -, begin with a letter or _, at most 63 characters", o.what)
	case reservedInput(variable):
		o.at("name", "%s would set the variable %s, which is not for requests to set; choose another name", o.what, variable)
	default:
		before := len(v.r.faults.list)
		names.once(v.r, o.field("name"), in.Name)
		if len(v.r.faults.list) == before {
			v.claim(o.field("name"), variable, "the input "+in.Name)
		}
	}
	v.inputValues(o, &in)
	return in, true
}

func (v *variables) inputValues(o *object, in *ci.Input) {
	fits := func(n ast.Node, s string) {
		if len(s) > ci.MaxInput {
			v.r.at(n, "%s: a value is over %s, the most that an input can hold; shorten it", o.what, formatSize(ci.MaxInput))
		}
	}
	if o.has("options") {
		seen := newNamed("option")
		nodes := v.r.list(o.field("options"), o.what+": options")
		for _, n := range nodes {
			if s, ok := v.r.scalar(n, o.what+": an option", true); ok {
				fits(n, s)
				seen.once(v.r, n, s)
				in.Options = append(in.Options, s)
			}
		}
		if _, isList := v.r.resolve(o.field("options")).(*ast.SequenceNode); isList && len(nodes) == 0 {
			o.at("options", "%s has no options in its list; name some, or remove the key to allow any value", o.what)
		}
	}
	if o.has("default") {
		s, ok := v.r.scalar(o.field("default"), o.what+": default", true)
		if !ok {
			return
		}
		fits(o.field("default"), s)
		in.Default = s
	}
	if len(in.Options) > 0 && !slices.Contains(in.Options, in.Default) {
		if o.has("default") {
			o.at("default", "%s: the default %q is not among its options; they are %s", o.what, in.Default, quoteAll(in.Options))
		} else {
			o.at("options", "%s has options and no default; add one of them as `default:`", o.what)
		}
	}
}
