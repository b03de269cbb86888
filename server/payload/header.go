package payload

import (
	"net/http"

	"docket/store/ci"
)

// Header returns the one value of a header that a delivery must have. Missing,
// more than one and unprintable ones are CodeMalformed.
func Header(h http.Header, name string) (string, error) {
	v := h.Values(name)
	if len(v) == 0 {
		return "", Malformed("the header %s is missing; every delivery has one", name)
	}
	if len(v) > 1 {
		return "", Malformed("the header %s is there %d times; want one", name, len(v))
	}
	if !ci.PrintableHeader(v[0]) {
		return "", Malformed("the header %s is not 1 to %d printable ASCII characters", name, ci.MaxHeaderValue)
	}
	return v[0], nil
}

// Claimed returns the first of some headers that has one printable value, of a
// delivery that nobody has verified; "" for none.
func Claimed(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Values(name); len(v) == 1 && ci.PrintableHeader(v[0]) {
			return v[0]
		}
	}
	return ""
}
