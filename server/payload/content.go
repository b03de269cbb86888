package payload

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// The content types that providers offer for a webhook.
const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// ContentType reports whether the body is a form (else it is JSON), from the
// headers alone. Any other type, none, and a Content-Encoding other than
// identity are CodeUnsupportedMedia.
func (p Provider) ContentType(header http.Header) (form bool, err error) {
	for _, v := range header.Values("Content-Encoding") {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return false, unsupported("Content-Encoding %q is not accepted; send the body as it is, as %s does, and see that no proxy compresses it", Clip(v, 100), p.Name)
		}
	}
	values := header.Values("Content-Type")
	if len(values) > 1 {
		return false, unsupported("Content-Type is given %d times; a delivery has exactly one", len(values))
	}
	if len(values) == 0 {
		return p.isForm("")
	}
	return p.isForm(values[0])
}

// Payload returns the JSON text in a body: the body itself, or the one payload
// value of a form. A byte order mark at its beginning is left off. The JSON
// itself is not looked at.
//
// Errors: CodeUnsupportedMedia for a content type that ContentType refuses;
// CodeMalformed for a form that cannot be read or whose payload is missing,
// empty or given twice, and for text that is not UTF-8.
func (p Provider) Payload(contentType string, body []byte) ([]byte, error) {
	form, err := p.isForm(contentType)
	if err != nil {
		return nil, err
	}
	if form {
		if body, err = p.FormPayload(body); err != nil {
			return nil, err
		}
	}
	if !utf8.Valid(body) {
		return nil, p.NotUTF8()
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), nil
}

// FormPayload returns the one payload value of a form, as it is. Errors are
// CodeMalformed.
func (p Provider) FormPayload(body []byte) ([]byte, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ci.Wrap(ci.CodeMalformed, err, "the form cannot be decoded; set the webhook's content type on %s to application/json, or send payload=JSON with percent-encoding", p.Name)
	}
	switch v := values["payload"]; {
	case len(v) == 0:
		return nil, Malformed("the form has no payload value; %s sends the JSON as payload=…, and a JSON body needs the content type application/json", p.Name)
	case len(v) > 1:
		return nil, Malformed("the form gives payload %d times; a delivery has exactly one", len(v))
	case v[0] == "":
		return nil, Malformed("the form's payload is empty; %s sends the JSON as payload=…", p.Name)
	default:
		return []byte(v[0]), nil
	}
}

// NotUTF8 is the error for a payload that is not UTF-8.
func (p Provider) NotUTF8() error {
	return Malformed("the payload is not valid UTF-8; JSON is UTF-8, as %s sends it", p.Name)
}

func (p Provider) isForm(contentType string) (bool, error) {
	// A parameter that cannot be read changes nothing: none has a meaning here.
	media, _, _ := mime.ParseMediaType(contentType)
	switch media {
	case typeJSON:
		return false, nil
	case typeForm:
		return true, nil
	}
	if strings.TrimSpace(contentType) == "" {
		return false, unsupported("Content-Type is missing; choose application/json under %q in the webhook's settings on %s", p.TypeField, p.Name)
	}
	return false, unsupported("Content-Type %q is not accepted; choose application/json under %q in the webhook's settings on %s", Clip(contentType, 100), p.TypeField, p.Name)
}

// Malformed is an error of CodeMalformed.
func Malformed(format string, args ...any) error {
	return ci.Errorf(ci.CodeMalformed, format, args...)
}

func unsupported(format string, args ...any) error {
	return ci.Errorf(ci.CodeUnsupportedMedia, format, args...)
}
