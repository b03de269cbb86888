package payload

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Reader goes over one JSON text (RFC 8259) once, front to back: it keeps the
// few values that are asked for and checks that all of it is well formed.
// Keys are taken exactly, and of a key that is given twice the last one
// counts. After the first fault it is at its end. What it returns shares the
// text's memory.
//
// encoding/json goes over every byte twice, which for a payload of which a
// few fields are wanted is most of the work of taking a delivery in.
type Reader struct {
	// Err says where the text is not JSON, nil while it is.
	Err error
	// Wrong says for people which value is not of its type, "" for none.
	Wrong string

	whose string
	text  string
	at    int
	depth int
}

// Reader returns one at the beginning of a text.
func (p Provider) Reader(text string) Reader { return Reader{whose: p.Name, text: text} }

// maxDepth is how deep values may lie in each other, as in encoding/json.
const maxDepth = 10000

func (r *Reader) fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("offset %d: "+format, append([]any{r.at}, args...)...)
	}
	r.at = len(r.text)
}

// Next skips white space and returns the byte that follows, 0 at the end.
func (r *Reader) Next() byte {
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

// End checks that nothing follows the value.
func (r *Reader) End() {
	if r.Err == nil && (r.Next() != 0 || r.at < len(r.text)) {
		r.fail("text after the value")
	}
}

func (r *Reader) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail("values lie more than %d deep", maxDepth)
		return false
	}
	r.at++
	return true
}

// Object reads an object and calls field for each of its keys, at the key's
// value, which field must read. Where there is something else that is skipped
// and noted under name; null counts as absent.
func (r *Reader) Object(name string, field func(key string)) bool {
	if r.Next() != '{' {
		r.other(name)
		return false
	}
	if !r.enter() {
		return false
	}
	if r.Next() == '}' {
		r.at++
		r.depth--
		return true
	}
	for r.Err == nil {
		if r.Next() != '"' {
			r.fail("want a key")
			return false
		}
		key := r.Unquote()
		if r.Next() != ':' {
			r.fail("want a colon after a key")
			return false
		}
		r.at++
		field(key)
		switch r.Next() {
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
func (r *Reader) other(name string) {
	kind := "number"
	switch r.Next() {
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
	r.Skip()
	if kind != "" && r.Wrong == "" && r.Err == nil {
		r.Wrong = "the payload's " + name + " is a JSON " + kind + ", which it never is in " + r.whose + "'s"
	}
}

// Text reads a string into *v; null is "".
func (r *Reader) Text(name string, v *string) {
	*v = ""
	if r.Next() != '"' {
		r.other(name)
		return
	}
	*v = r.Unquote()
}

// TextIn reads an object's field into *v where its key is the wanted one, and
// skips any other.
func (r *Reader) TextIn(key, wanted, name string, v *string) {
	if key == wanted {
		r.Text(name, v)
		return
	}
	r.Skip()
}

// Bool reads a boolean into *v; null is false.
func (r *Reader) Bool(name string, v *bool) {
	*v = false
	switch r.Next() {
	case 't':
		*v = true
		r.Skip()
	case 'f':
		r.Skip()
	default:
		r.other(name)
	}
}

// Skip passes over a value and returns its text.
func (r *Reader) Skip() string {
	c := r.Next()
	start := r.at
	switch {
	case c == '{':
		r.Object("", func(string) { r.Skip() })
	case c == '[':
		r.array(func() { r.Skip() })
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
	if r.Err != nil {
		return ""
	}
	return r.text[start:r.at]
}

// List reads an array and calls each at each of its values, which it must
// read. Where there is something else that is skipped and noted under name;
// null counts as absent.
func (r *Reader) List(name string, each func()) bool {
	if r.Next() != '[' {
		r.other(name)
		return false
	}
	r.array(each)
	return true
}

func (r *Reader) array(each func()) {
	if !r.enter() {
		return
	}
	if r.Next() == ']' {
		r.at++
		r.depth--
		return
	}
	for r.Err == nil {
		each()
		switch r.Next() {
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

func (r *Reader) literal(word string) {
	if len(r.text)-r.at < len(word) || r.text[r.at:r.at+len(word)] != word {
		r.fail("want %s", word)
		return
	}
	r.at += len(word)
}

func (r *Reader) number() {
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

func (r *Reader) digits() int {
	start := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	if r.at == start {
		r.fail("want a digit")
	}
	return r.at - start
}

// Unquote reads a string, which Next has shown to be there, and returns its value.
func (r *Reader) Unquote() string {
	start := r.at
	plain := r.quoted()
	switch {
	case r.Err != nil:
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
func (r *Reader) quoted() (plain bool) {
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
