package ci_test

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/store/ci"
)

func TestParseReceiptID(t *testing.T) {
	for s, want := range map[string]ci.ReceiptID{
		"github/12345/72d3162e-cc78": {Integration: "github", Installation: "12345", Delivery: "72d3162e-cc78"},
		"github/-/a/b?c%2F":          {Integration: "github", Installation: "-", Delivery: "a/b?c%2F"},
		"g/1//":                      {Integration: "g", Installation: "1", Delivery: "/"},
		"":                           {},
		"github":                     {},
		"github/1":                   {},
		"github/1/":                  {},
		"github//d":                  {},
		"/1/d":                       {},
	} {
		got, err := ci.ParseReceiptID(s)
		if got != want || (err == nil) != (want.Delivery != "") {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		if err == nil && got.String() != s {
			t.Errorf("%q came back as %q", s, got.String())
		}
		if err != nil && ci.CodeOf(err) != ci.CodeInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestNewReceiptID_WithoutAnInstallation(t *testing.T) {
	for in, want := range map[int64]string{0: "-", -1: "-", 7: "7"} {
		if got := ci.NewReceiptID("g", in, "d").Installation; got != want {
			t.Errorf("%d: %q", in, got)
		}
	}
	d := ci.Delivery{Integration: "g", Installation: 7, ID: "d"}
	if got := d.ReceiptID().String(); got != "g/7/d" {
		t.Errorf("%q", got)
	}
}

// Ensure that a path has three segments whatever the delivery id is, and that
// they decode to it.
func TestReceiptID_Path(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ci.ReceiptID{Integration: "g", Installation: "1", Delivery: rapid.StringMatching(`[ -~]{1,30}`).Draw(t, "id")}
		parts := strings.Split(id.Path(), "/")
		if len(parts) != 3 {
			t.Fatalf("%q", id.Path())
		}
		if got, err := url.PathUnescape(parts[2]); err != nil || got != id.Delivery {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]struct{ header, key bool }{
		"push":                   {true, true},
		"a b":                    {true, true},
		" a":                     {false, true},
		"a ":                     {false, true},
		" ":                      {false, false},
		"":                       {false, false},
		"~!":                     {true, true},
		"a\x7f":                  {false, false},
		"a\tb":                   {false, false},
		"a\nb":                   {false, false},
		"a\x00":                  {false, false},
		"é":                      {false, false},
		"\xff":                   {false, false},
		strings.Repeat("x", 200): {true, true},
		strings.Repeat("x", 201): {false, true},
		strings.Repeat("x", 255): {false, true},
		strings.Repeat("x", 256): {false, false},
	} {
		if got := ci.PrintableHeader(s); got != want.header {
			t.Errorf("header %q: %v", s, got)
		}
		if got := ci.PrintableKey(s); got != want.key {
			t.Errorf("key %q: %v", s, got)
		}
	}
}
