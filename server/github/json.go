package github

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// reader goes over one JSON text (RFC 8259) once, front to back: it keeps the
// few values that are asked for and checks that all of it is well formed.
// Keys are taken exactly, and of a key that is given twice the last one
// counts. After the first fault it is at its end.
//
// encoding/json goes over every byte twice, which for a payload of which a
// few fields are wanted is most of the work of taking a delivery in.
type reader struct {
	text  string
	at    int
	depth int
	err   error // the text is not JSON
	wrong string
}

// maxDepth is how deep values may lie in each other, as in encoding/json.
const maxDepth = 10000

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: "+format, append([]any{r.at}, args...)...)
	}
	r.at = len(r.text)
}

// next skips white space and returns the byte that follows, 0 at the end.
func (r *reader) next() byte {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// end checks that nothing follows the value.
func (r *reader) end() {
	if r.err == nil && (r.next() != 0 || r.at < len(r.text)) {
		r.fail("text after the value")
	}
}

func (r *reader) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail("values lie more than %d deep", maxDepth)
		return false
	}
	r.at++
	return true
}

// object reads an object and calls field for each of its keys, at the key's
// value, which field must read. Where there is something else that is skipped
// and noted under name; null counts as absent.
func (r *reader) object(name string, field func(key string)) bool {
	if r.next() != '{' {
		r.other(name)
		return false
	}
	if !r.enter() {
		return false
	}
	if r.next() == '}' {
		r.at++
		r.depth--
		return true
	}
	for r.err == nil {
		if r.next() != '"' {
			r.fail("want a key")
			return false
		}
		key := r.string()
		if r.next() != ':' {
			r.fail("want a colon after a key")
			return false
		}
		r.at++
		field(key)
		switch r.next() {
		case ',':
			r.at++
		case '}':
			r.at++
			r.depth--
			return true
		default:
			r.fail("want a comma or the end of an object")
		}
	}
	return false
}

// other skips a value of a type that is not wanted there.
func (r *reader) other(name string) {
	kind := "number"
	switch r.next() {
	case '{':
		kind = "object"
	case '[':
		kind = "array"
	case '"':
		kind = "string"
	case 't', 'f':
		kind = "boolean"
	case 'n':
		kind = ""
	}
	r.skip()
	if kind != "" && r.wrong == "" && r.err == nil {
		r.wrong = "the payload's " + name + " is a JSON " + kind + ", which it never is in GitHub's"
	}
}

// textOf reads a string into *v; null is "".
func (r *reader) textOf(name string, v *string) {
	*v = ""
	if r.next() != '"' {
		r.other(name)
		return
	}
	*v = r.string()
}

// boolOf reads a boolean into *v; null is false.
func (r *reader) boolOf(name string, v *bool) {
	*v = false
	switch r.next() {
	case 't':
		*v = true
		r.skip()
	case 'f':
		r.skip()
	default:
		r.other(name)
	}
}

// skip passes over a value and returns its text.
func (r *reader) skip() string {
	c := r.next()
	start := r.at
	switch {
	case c == '{':
		r.object("", func(string) { r.skip() })
	case c == '[':
		r.array()
	case c == '"':
		r.quoted()
	case c == 't':
		r.literal("true")
	case c == 'f':
		r.literal("false")
	case c == 'n':
		r.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		r.number()
	default:
		r.fail("want a value")
	}
	if r.err != nil {
		return ""
	}
	return r.text[start:r.at]
}

func (r *reader) array() {
	if !r.enter() {
		return
	}
	if r.next() == ']' {
		r.at++
		r.depth--
		return
	}
	for r.err == nil {
		r.skip()
		switch r.next() {
		case ',':
			r.at++
		case ']':
			r.at++
			r.depth--
			return
		default:
			r.fail("want a comma or the end of an array")
		}
	}
}

func (r *reader) literal(word string) {
	if len(r.text)-r.at < len(word) || r.text[r.at:r.at+len(word)] != word {
		r.fail("want %s", word)
		return
	}
	r.at += len(word)
}

func (r *reader) number() {
	if r.text[r.at] == '-' {
		r.at++
	}
	zero := r.at < len(r.text) && r.text[r.at] == '0'
	if n := r.digits(); zero && n > 1 {
		r.fail("a number begins with 0")
	}
	if r.at < len(r.text) && r.text[r.at] == '.' {
		r.at++
		r.digits()
	}
	if r.at < len(r.text) && r.text[r.at]|0x20 == 'e' {
		r.at++
		if r.at < len(r.text) && (r.text[r.at] == '+' || r.text[r.at] == '-') {
			r.at++
		}
		r.digits()
	}
}

func (r *reader) digits() int {
	start := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	if r.at == start {
		r.fail("want a digit")
	}
	return r.at - start
}

// string reads a string and returns its value.
func (r *reader) string() string {
	start := r.at
	plain := r.quoted()
	switch {
	case r.err != nil:
		return ""
	case plain:
		return r.text[start+1 : r.at-1]
	}
	var s string
	if err := json.Unmarshal([]byte(r.text[start:r.at]), &s); err != nil {
		r.fail("%v", err)
	}
	return s
}

// quoted passes over a string and reports whether it has no escapes.
func (r *reader) quoted() (plain bool) {
	plain = true
	text := r.text
	for i := r.at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			r.at = i + 1
			return plain
		case c == '\\':
			plain = false
			if i++; i < len(text) && text[i] == 'u' {
				if !isHex4(text[i+1:]) {
					r.at = i
					r.fail("want four hex digits")
					return false
				}
				i += 4
			} else if i >= len(text) || !isEscape(text[i]) {
				r.at = min(i, len(text))
				r.fail("no such escape")
				return false
			}
		case c < 0x20:
			r.at = i
			r.fail("a control character in a string")
			return false
		}
	}
	r.at = len(text)
	r.fail("a string without its end")
	return false
}

func isEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

func isHex4(s string) bool {
	if len(s) < 4 {
		return false
	}
	_, err := strconv.ParseUint(s[:4], 16, 16)
	return err == nil
}
