package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text returns a key's text; "" where it is missing or faulty. Numbers are
// taken as they are written, so that 1.10 stays 1.10.
func (o *object) text(key string) string {
	e, ok := o.fields[key]
	if !ok {
		return ""
	}
	s, _ := o.r.text(e.value, o.what+": "+key)
	return s
}

// text returns a node's text. What is not text is a fault, and so is nothing.
func (r *reader) text(n ast.Node, what string) (string, bool) {
	return r.scalar(n, what, false)
}

// scalar is text that may also be true or false, for environment variables
// and inputs, which are text whatever they look like.
func (r *reader) scalar(n ast.Node, what string, bools bool) (string, bool) {
	n = r.resolve(n)
	var s string
	switch v := n.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		s = v.Value
	case *ast.LiteralNode:
		s = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		s = n.GetToken().Value
	case *ast.NullNode:
		r.at(n, "%s is empty; give it a value, or remove the key", what)
		return "", false
	case *ast.BoolNode:
		if !bools {
			r.at(n, "%s must be text, but this is true or false; quote it if it is meant as text", what)
			return "", false
		}
		s = n.GetToken().Value
	default:
		r.at(n, "%s must be text, but this is %s", what, kind(n))
		return "", false
	}
	if strings.ContainsRune(s, 0) {
		r.at(n, "%s holds a NUL byte; remove it", what)
		return "", false
	}
	return s, true
}

// flag returns a key's truth, or its default where it is missing or faulty.
func (o *object) flag(key string) bool {
	def := o.key(key).def == "true"
	e, ok := o.fields[key]
	if !ok {
		return def
	}
	n := o.r.resolve(e.value)
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value
	}
	if n != nil {
		o.r.at(n, "%s: %s must be true or false, but this is %s", o.what, key, kind(n))
	}
	return def
}

// whole returns a whole number between its key's bounds, or the default where
// the key is missing or faulty.
func (o *object) whole(key string) int64 {
	k := o.key(key)
	def, _ := strconv.ParseInt(k.def, 10, 64) // 0 where there is none
	e, ok := o.fields[key]
	if !ok {
		return def
	}
	n, ok := o.r.whole(e.value, o.what+": "+key, k.low, k.high)
	if !ok {
		return def
	}
	return n
}

func (r *reader) whole(node ast.Node, what string, low, high int64) (int64, bool) {
	node = r.resolve(node)
	if node == nil {
		return 0, false
	}
	i, isInt := node.(*ast.IntegerNode)
	if !isInt {
		r.at(node, "%s must be a whole number, but this is %s", what, kind(node))
		return 0, false
	}
	v, err := strconv.ParseInt(i.GetToken().Value, 10, 64)
	if err != nil || v < low || v > high {
		if high == math.MaxInt64 {
			r.at(node, "%s must be a whole number from %d up, in plain digits", what, low)
		} else {
			r.at(node, "%s must be a whole number from %d to %d, in plain digits", what, low, high)
		}
		return 0, false
	}
	return v, true
}

// share returns a number from 0 to 1, or the default where the key is missing
// or faulty.
func (o *object) share(key string) float64 {
	def, _ := strconv.ParseFloat(o.key(key).def, 64)
	if !o.has(key) {
		return def
	}
	n := o.r.resolve(o.field(key))
	switch n.(type) {
	case nil:
		return def
	case *ast.IntegerNode, *ast.FloatNode:
		if v, err := strconv.ParseFloat(n.GetToken().Value, 64); err == nil && v >= 0 && v <= 1 {
			return v
		}
	}
	o.at(key, "%s: %s must be a number from 0 to 1, as in 0.1", o.what, key)
	return def
}

// duration returns a duration between its key's bounds, or the default where
// the key is missing or faulty.
func (o *object) duration(key string) time.Duration {
	k := o.key(key)
	low, high := time.Duration(k.low), time.Duration(k.high)
	def, _ := time.ParseDuration(k.def) // 0 where there is none
	if !o.has(key) {
		return def
	}
	before := len(o.r.faults.list)
	s := o.text(key)
	if len(o.r.faults.list) > before || o.r.resolve(o.field(key)) == nil {
		return def
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		o.at(key, "%s: %s: %q is not a duration; write it with a unit, as in 90s, 30m or 1h30m", o.what, key, s)
	case d < low || d > high:
		o.at(key, "%s: %s must be from %s to %s", o.what, key, shortDuration(low), shortDuration(high))
	default:
		return d
	}
	return def
}

// interval is a duration that may also be 0, for never.
func (o *object) interval(key string) time.Duration {
	if e, ok := o.fields[key]; ok {
		if n := o.r.resolve(e.value); n != nil && n.GetToken() != nil && (n.GetToken().Value == "0" || n.GetToken().Value == "0s") {
			return 0
		}
	}
	return o.duration(key)
}

// shortDuration writes 1h instead of 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size returns a number of bytes between its key's bounds, or the default
// where the key is missing or faulty.
func (o *object) size(key string) int64 {
	k := o.key(key)
	low, high := k.low, k.high
	def, _ := parseSize(k.def) // 0 where there is none
	if !o.has(key) {
		return def
	}
	before := len(o.r.faults.list)
	s := o.text(key)
	if len(o.r.faults.list) > before || o.r.resolve(o.field(key)) == nil {
		return def
	}
	n, err := parseSize(s)
	switch {
	case err != nil:
		o.at(key, "%s: %s: %s", o.what, key, err)
	case n < low || n > high:
		o.at(key, "%s: %s must be from %s to %s", o.what, key, formatSize(low), formatSize(high))
	default:
		return n
	}
	return def
}

// parseSize reads plain bytes or a whole number of KiB, MiB or GiB.
func parseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BKMGTiabcdefghjklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(s[len(digits):])
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a whole number with KiB, MiB or GiB, as in 25MiB", s)
	}
	shift := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}
	by, ok := shift[unit]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit; sizes are in bytes, KiB, MiB or GiB (powers of 1024), as in 25MiB", s)
	}
	if n > math.MaxInt64>>by {
		return 0, fmt.Errorf("%q is too large; write a smaller size", s)
	}
	return n << by, nil
}

// formatSize writes bytes in the largest unit that stays whole.
func formatSize(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n != 0 && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprint(n)
}

// oneOf returns one of its key's words, or the default where the key is
// missing or faulty.
func (o *object) oneOf(key string) string {
	k := o.key(key)
	e, ok := o.fields[key]
	if !ok {
		return k.def
	}
	return o.r.oneOf(e.value, o.what+": "+key, k.def, k.words...)
}

func (r *reader) oneOf(n ast.Node, what, def string, words ...string) string {
	s, ok := r.text(n, what)
	if !ok {
		return def
	}
	if !slices.Contains(words, s) {
		r.at(n, "%s: %q is not known%s; it is one of %s", what, s, didYouMean(s, words), strings.Join(words, ", "))
		return def
	}
	return s
}

// name returns a name that can be a path component and part of an id.
func (o *object) name(key string) string {
	s := o.text(key)
	if s != "" && !namePattern().MatchString(s) {
		o.at(key, "%s: %q cannot be a name; use a to z, 0 to 9, '.', '_' and '-', begin with a letter or digit, at most 63 characters", o.what, s)
	}
	return s
}

func namePattern() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`) }

// named counts names and reports those that are given twice.
type named struct {
	noun  string
	lines map[string]int
}

func newNamed(noun string) *named { return &named{noun, map[string]int{}} }

// once reports a name that another one before it has.
func (u *named) once(r *reader, n ast.Node, name string) {
	if name == "" {
		return
	}
	line, _ := position(n)
	if first, twice := u.lines[name]; twice {
		r.at(n, "the %s %q is given twice, first in line %d; each needs a name of its own", u.noun, name, first)
		return
	}
	u.lines[name] = line
}
