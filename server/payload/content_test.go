package payload_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"docket/server/payload"
	"docket/store/ci"
)

// hub is a provider.
var hub = payload.Provider{Name: "GitHub", TypeField: "Content type"}

func TestContentType(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for what, tc := range map[string]struct {
		header http.Header
		form   bool
		says   string
	}{
		"JSON":                          {http.Header{"Content-Type": {"application/json"}}, false, ""},
		"JSON with a parameter":         {http.Header{"Content-Type": {"application/json; charset=utf-8"}}, false, ""},
		"JSON in capitals":              {http.Header{"Content-Type": {"Application/JSON"}}, false, ""},
		"JSON with an odd parameter":    {http.Header{"Content-Type": {"application/json; charset"}}, false, ""},
		"a form":                        {http.Header{"Content-Type": {form}}, true, ""},
		"a form with a parameter":       {http.Header{"Content-Type": {form + ";charset=UTF-8"}}, true, ""},
		"none":                          {http.Header{}, false, `Content-Type is missing; choose application/json under "Content type"`},
		"an empty one":                  {http.Header{"Content-Type": {""}}, false, "is missing"},
		"text":                          {http.Header{"Content-Type": {"text/plain"}}, false, `choose application/json under "Content type" in the webhook's settings on GitHub`},
		"a relative of JSON":            {http.Header{"Content-Type": {"application/vnd.github+json"}}, false, "is not accepted"},
		"a multipart form":              {http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, false, "is not accepted"},
		"nonsense":                      {http.Header{"Content-Type": {"\xff/;;"}}, false, "is not accepted"},
		"two":                           {http.Header{"Content-Type": {"application/json", form}}, false, "given 2 times"},
		"JSON, identity":                {http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"Identity"}}, false, ""},
		"JSON, compressed":              {http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, false, `Content-Encoding "gzip" is not accepted`},
		"JSON, compressed after it all": {http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "br"}}, false, `"br"`},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := hub.ContentType(tc.header)
			if tc.says == "" {
				if err != nil || got != tc.form {
					t.Fatalf("ContentType = %v, %v, want %v", got, err, tc.form)
				}
				return
			}
			if ci.CodeOf(err) != ci.CodeUnsupportedMedia || !strings.Contains(ci.MessageOf(err), tc.says) {
				t.Fatalf("error %v (%s), want one that says %q", err, ci.CodeOf(err), tc.says)
			}
		})
	}
}

func TestPayload(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for what, tc := range map[string]struct {
		contentType, body, want string
		code                    ci.Code
	}{
		"JSON as it is":                 {"application/json", ` {"a":1} `, ` {"a":1} `, ""},
		"JSON after a byte order mark":  {"application/json", "\ufeff{}", "{}", ""},
		"JSON with a charset":           {"application/json; charset=utf-8", "{}", "{}", ""},
		"a form":                        {form, `payload=%7B%22ref%22%3A%22refs%2Fheads%2Fa%2Bb%22%2C%22x%22%3A%221+2%22%7D`, `{"ref":"refs/heads/a+b","x":"1 2"}`, ""},
		"a form with another value":     {form, "a=b&payload=%7B%7D", "{}", ""},
		"a form after a mark":           {form, "payload=%EF%BB%BF%7B%7D", "{}", ""},
		"a form without payload":        {form, "a=b", "", ci.CodeMalformed},
		"an empty form":                 {form, "", "", ci.CodeMalformed},
		"an empty payload":              {form, "payload=", "", ci.CodeMalformed},
		"a payload without value":       {form, "payload", "", ci.CodeMalformed},
		"payload twice":                 {form, "payload=%7B%7D&payload=%7B%7D", "", ci.CodeMalformed},
		"payload twice, once empty":     {form, "payload=&payload=%7B%7D", "", ci.CodeMalformed},
		"a broken escape":               {form, "payload=%7", "", ci.CodeMalformed},
		"JSON labelled a form":          {form, `{"a":"b"}`, "", ci.CodeMalformed},
		"malformed UTF-8":               {"application/json", "{\"a\":\"\xff\"}", "", ci.CodeMalformed},
		"malformed UTF-8 in a form":     {form, "payload=%FF", "", ci.CodeMalformed},
		"UTF-16":                        {"application/json", "\xfe\xff\x00{\x00}", "", ci.CodeMalformed},
		"another type":                  {"text/plain", "{}", "", ci.CodeUnsupportedMedia},
		"no type":                       {"", "{}", "", ci.CodeUnsupportedMedia},
		"a form labelled JSON is taken": {"application/json", "payload=%7B%7D", "payload=%7B%7D", ""}, // Parse refuses it
	} {
		t.Run(what, func(t *testing.T) {
			got, err := hub.Payload(tc.contentType, []byte(tc.body))
			if ci.CodeOf(err) != tc.code || string(got) != tc.want {
				t.Fatalf("Payload = %q, %v (%s), want %q, %s", got, err, ci.CodeOf(err), tc.want, tc.code)
			}
		})
	}
}

// Ensure that any body either is refused or gives one UTF-8 text that is in
// the body, and that what a form was made of comes out of it again.
func FuzzPayload(f *testing.F) {
	f.Add(true, []byte(`payload=%7B%22ref%22%3A%22refs%2Fheads%2Fa%2Bb%22%2C%22x%22%3A%221+2%22%7D`))
	f.Add(true, []byte("payload=&payload=1"))
	f.Add(true, []byte("payload=%zz"))
	f.Add(false, []byte("\ufeff{}"))
	f.Add(false, []byte("\xff"))
	f.Fuzz(func(t *testing.T, form bool, body []byte) {
		contentType := "application/json"
		if form {
			contentType = "application/x-www-form-urlencoded"
		}
		if utf8.Valid(body) && len(body) > 0 {
			made := url.Values{"payload": {string(body)}, "other": {"x"}}.Encode()
			if got, err := hub.Payload("application/x-www-form-urlencoded", []byte(made)); err != nil || !bytes.Equal(got, bytes.TrimPrefix(body, []byte("\ufeff"))) {
				t.Fatalf("the form of %q gives %q, %v", body, got, err)
			}
		}
		got, err := hub.Payload(contentType, body)
		if err != nil {
			if ci.CodeOf(err) != ci.CodeMalformed || got != nil {
				t.Fatalf("Payload = %q, %v", got, err)
			}
			return
		}
		if !utf8.Valid(got) {
			t.Fatalf("Payload = %q is not UTF-8", got)
		}
		if form {
			v, err := url.ParseQuery(string(body))
			if err != nil || len(v["payload"]) != 1 || strings.TrimPrefix(v.Get("payload"), "\ufeff") != string(got) {
				t.Fatalf("Payload(%q) = %q", body, got)
			}
		} else if !bytes.Equal(bytes.TrimPrefix(body, []byte("\ufeff")), got) {
			t.Fatalf("Payload(%q) = %q", body, got)
		}
	})
}
