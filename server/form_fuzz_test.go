package server_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"docket/server"
	"docket/store/ci"
)

// Ensure that every form that a browser can send is read as it was filled in,
// and that any body is either refused or the fields that it names.
func FuzzForm(f *testing.F) {
	f.Add("name", "a+b&c=d", "é\x00%", []byte("name=a+b&name=%zz"))
	f.Add("", "", "\xff", []byte("a;b=1"))
	f.Add("next", "//x", "=", []byte("%6eext=%2f%2Fx&"))
	f.Fuzz(func(t *testing.T, name, first, second string, raw []byte) {
		sent := url.Values{name: {first, second}, "other": {second}}
		if name == "other" {
			delete(sent, "other")
		}
		body := []byte(sent.Encode())
		got, err := readForm("application/x-www-form-urlencoded; charset=utf-8", body)
		if len(body) > server.MaxLoginForm {
			if ci.CodeOf(err) != ci.CodeTooLarge {
				t.Fatalf("%d bytes: %v", len(body), err)
			}
		} else if err != nil || !slices.Equal(got[name], sent[name]) || len(got) != len(sent) {
			t.Fatalf("%v was sent and %v read, %v", sent, got, err)
		}
		got, err = readForm("application/x-www-form-urlencoded", raw)
		switch {
		case ci.CodeOf(err) == ci.CodeTooLarge:
			if len(raw) <= server.MaxLoginForm {
				t.Fatalf("%d bytes: %v", len(raw), err)
			}
		case err != nil:
			if _, e := url.ParseQuery(string(raw)); ci.CodeOf(err) != ci.CodeMalformed || e == nil {
				t.Fatalf("%q: %v", raw, err)
			}
		default:
			again, err := readForm("application/x-www-form-urlencoded", []byte(got.Encode()))
			if err == nil && again.Encode() != got.Encode() || err != nil && ci.CodeOf(err) != ci.CodeTooLarge {
				t.Fatalf("%q is %v, and that is %v, %v", raw, got, again, err)
			}
		}
		if got, err := readForm("text/plain", raw); len(raw) > 0 && len(raw) <= server.MaxLoginForm && ci.CodeOf(err) != ci.CodeUnsupportedMedia {
			t.Fatalf("as text: %v, %v", got, err)
		}
	})
}

func readForm(contentType string, body []byte) (url.Values, error) {
	r := httptest.NewRequest(http.MethodPost, "/login?name=of+the+address", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return server.PostForm(httptest.NewRecorder(), r)
}

// Ensure that what a sign-in goes on to is always a page of this server, by the
// rules that browsers resolve addresses by, and never the sign-in itself.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/runs/api-1?step=a#l", "//x", "/\\x", "/\t/x", "http://x", "/login?next=/login", "/./login", "/%2e/x", "/..//x", "javascript:1", "/a%0d%0ab", "/login-x"} {
		f.Add(s)
	}
	base, err := url.Parse("https://ci.example.org/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := server.LocalPath(next)
		to, err := base.Parse(got)
		if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || to.User != nil {
			t.Fatalf("%q leads to %q: %v, %v", next, got, to, err)
		}
		// Browsers leave out some bytes and take a backslash for a slash.
		if len(got) > 1 && got[1] == '/' || bytes.ContainsAny([]byte(got), "\\\t\r\n\x00") || got == "" || got[0] != '/' {
			t.Fatalf("%q leads to %q", next, got)
		}
	})
}

// Ensure that a place in a log that is taken is the one that was written, and
// none is before the log's start.
func FuzzLogPosition(f *testing.F) {
	for _, s := range []string{"1:0", "2:9223372036854775807", "-1:3", "1:-1", "99999999999999999999:1", "1", ":", "+1:+2", "01:002"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		attempt, offset, text := server.LogPosition(s)
		if attempt < 0 || offset < 0 {
			t.Fatalf("%q is %d:%d", s, attempt, offset)
		}
		if a, o, again := server.LogPosition(text); a != attempt || o != offset || again != text {
			t.Fatalf("%q is %q, and that is %d:%d", s, text, a, o)
		}
	})
}
