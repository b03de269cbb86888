package github

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// The content types that GitHub offers for a webhook.
const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// ContentType reports whether the body is a form (else it is JSON), from the
// headers alone. Any other type, none, and a Content-Encoding other than
// identity are CodeUnsupportedMedia.
func ContentType(header http.Header) (form bool, err error) {
	for _, v := range header.Values("Content-Encoding") {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return false, unsupported("Content-Encoding %q is not accepted; send the body as it is, as GitHub does, and see that no proxy compresses it", clip(v, 100))
		}
	}
	values := header.Values("Content-Type")
	if len(values) > 1 {
		return false, unsupported("Content-Type is given %d times; a delivery has exactly one", len(values))
	}
	if len(values) == 0 {
		return isForm("")
	}
	return isForm(values[0])
}

// Payload returns the JSON text in a body whose signature holds: the body
// itself, or the one payload value of a form. A byte order mark at its
// beginning is left off. The JSON itself is not looked at: Parse does that.
//
// Errors: CodeUnsupportedMedia for a content type that ContentType refuses;
// CodeMalformed for a form that cannot be read or whose payload is missing,
// empty or given twice, and for text that is not UTF-8.
func Payload(contentType string, body []byte) ([]byte, error) {
	form, err := isForm(contentType)
	if err != nil {
		return nil, err
	}
	if form {
		if body, err = formPayload(body); err != nil {
			return nil, err
		}
	}
	if !utf8.Valid(body) {
		return nil, malformed("the payload is not valid UTF-8; JSON is UTF-8, as GitHub sends it")
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), nil
}

func formPayload(body []byte) ([]byte, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ci.Wrap(ci.CodeMalformed, err, "the form cannot be decoded; set the webhook's content type on GitHub to application/json, or send payload=JSON with percent-encoding")
	}
	switch p := values["payload"]; {
	case len(p) == 0:
		return nil, malformed("the form has no payload value; GitHub sends the JSON as payload=…, and a JSON body needs the content type application/json")
	case len(p) > 1:
		return nil, malformed("the form gives payload %d times; a delivery has exactly one", len(p))
	case p[0] == "":
		return nil, malformed("the form's payload is empty; GitHub sends the JSON as payload=…")
	default:
		return []byte(p[0]), nil
	}
}

func isForm(contentType string) (bool, error) {
	// A parameter that cannot be read changes nothing: none has a meaning here.
	media, _, _ := mime.ParseMediaType(contentType)
	switch media {
	case typeJSON:
		return false, nil
	case typeForm:
		return true, nil
	}
	if strings.TrimSpace(contentType) == "" {
		return false, unsupported("Content-Type is missing; choose application/json under \"Content type\" in the webhook's settings on GitHub")
	}
	return false, unsupported("Content-Type %q is not accepted; choose application/json under \"Content type\" in the webhook's settings on GitHub", clip(contentType, 100))
}

// clip cuts s to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func malformed(format string, args ...any) error {
	return ci.Errorf(ci.CodeMalformed, format, args...)
}

func unsupported(format string, args ...any) error {
	return ci.Errorf(ci.CodeUnsupportedMedia, format, args...)
}
