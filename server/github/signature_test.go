package github_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"testing"

	"docket/server/github"
	"docket/store/ci"
)

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func sign1(secret, body string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha1=" + hex.EncodeToString(mac.Sum(nil))
}

func secrets(values ...string) []ci.Secret {
	var out []ci.Secret
	for _, v := range values {
		out = append(out, ci.NewSecret("name of "+v, v))
	}
	return out
}

func signed(values ...string) http.Header {
	h := http.Header{}
	for _, v := range values {
		h.Add("X-Hub-Signature-256", v)
	}
	return h
}

func mustRefuse(t *testing.T, name string, err error, says string) {
	t.Helper()
	if ci.CodeOf(err) != ci.CodeUnauthenticated || name != "" {
		t.Fatalf("got name %q, error %v; want a refusal", name, err)
	}
	if !strings.Contains(ci.MessageOf(err), says) {
		t.Errorf("the refusal is %q, want it to say %q", ci.MessageOf(err), says)
	}
}

func TestVerify_TakesTheSignatureOverTheExactBytes(t *testing.T) {
	const body = `{"ref":"refs/heads/main","head_commit":{"message":"fix … 😊"}}`
	const given = "sha256=afab1486456514f62afa6c53cb3e417df4347b2a04822a38714e337b779292d5"
	if len(body) != 66 {
		t.Fatalf("the body has %d bytes, want 66", len(body))
	}
	name, err := github.Verify(secrets("k-01"), signed(given), []byte(body))
	if err != nil || name != "name of k-01" {
		t.Fatalf("Verify = %q, %v", name, err)
	}
	again := `{ "ref" : "refs/heads/main", "head_commit": {"message": "fix \u2026 \ud83d\ude0a"}}`
	name, err = github.Verify(secrets("k-01"), signed(given), []byte(again))
	mustRefuse(t, name, err, "does not match")

	for _, odd := range []string{"\ufeff{}", "{}\r\n", `{"a":1,"a":2}`, "{}\n", "", "\xff\x00"} {
		if _, err := github.Verify(secrets("k-01"), signed(sign("k-01", odd)), []byte(odd)); err != nil {
			t.Errorf("body %q under its own signature: %v", odd, err)
		}
	}
}

func TestVerify_TakesAFormsRawBytes(t *testing.T) {
	body := `payload=%7B%22ref%22%3A%22refs%2Fheads%2Fa%2Bb%22%2C%22x%22%3A%221+2%22%7D`
	const given = "sha256=20bdeb87eb1e66ca6d3e6915c70730a1492e3784cdbc079d8b5b197eb3707a2c"
	if _, err := github.Verify(secrets("k-02"), signed(given), []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func TestVerify_HeaderShapes(t *testing.T) {
	const body = `{"zen":"x"}`
	const upper = "CC8274C65BCFCB21A2102EF2E12D1E714E6DC6BFE73389BC104DC456DC6FADFD"
	good := sign("k-04", body)
	with := func(h http.Header, key, value string) http.Header {
		h.Set(key, value)
		return h
	}
	for what, tc := range map[string]struct {
		header http.Header
		says   string // "" for accepted
	}{
		"lower-case hex is accepted":             {signed(good), ""},
		"upper-case hex is accepted":             {signed("sha256=" + upper), ""},
		"no header is refused":                   {http.Header{}, "is missing"},
		"an empty header is refused":             {signed(""), "malformed"},
		"a prefix alone is refused":              {signed("sha256="), "malformed"},
		"63 digits are refused":                  {signed(good[:len(good)-1]), "malformed"},
		"65 digits are refused":                  {signed(good + "0"), "malformed"},
		"66 digits are refused":                  {signed(good + "00"), "malformed"},
		"three digits are refused":               {signed("sha256=abc"), "malformed"},
		"a byte over ASCII is refused":           {signed(good[:70] + "\xe9"), "malformed"},
		"bare hex is refused":                    {signed(good[len("sha256="):]), "malformed"},
		"another algorithm's name is refused":    {signed("sha1=" + good[len("sha256="):]), "malformed"},
		"two good headers are refused":           {signed(good, good), "given 2 times"},
		"two values joined are refused":          {signed(good + ", " + good), "malformed"},
		"another body's signature is refused":    {signed(sign("k-04", body+" ")), "does not match"},
		"another secret's signature is refused":  {signed(sign("k-05", body)), "does not match"},
		"SHA-1 alone is refused and says so":     {with(http.Header{}, "X-Hub-Signature", sign1("k-04", body)), "SHA-1 alone"},
		"SHA-1 does not rescue a wrong SHA-256":  {with(signed(sign("x", body)), "X-Hub-Signature", sign1("k-04", body)), "does not match"},
		"SHA-1 does not rescue an empty SHA-256": {with(signed(""), "X-Hub-Signature", sign1("k-04", body)), "malformed"},
		"a wrong SHA-1 harms no good SHA-256":    {with(signed(good), "X-Hub-Signature", "sha1=00"), ""},
	} {
		t.Run(what, func(t *testing.T) {
			name, err := github.Verify(secrets("k-04"), tc.header, []byte(body))
			if tc.says != "" {
				mustRefuse(t, name, err, tc.says)
				return
			}
			if err != nil || name != "name of k-04" {
				t.Fatalf("Verify = %q, %v", name, err)
			}
		})
	}
}

func TestVerify_Secrets(t *testing.T) {
	const body = "{}"
	for what, tc := range map[string]struct {
		secrets []ci.Secret
		key     string
		name    string // "" for refused
	}{
		"the first of two matches":             {secrets("old", "new"), "old", "name of old"},
		"the second of two matches":            {secrets("old", "new"), "new", "name of new"},
		"a repeated secret is the first one":   {[]ci.Secret{ci.NewSecret("a", "k"), ci.NewSecret("b", "k")}, "k", "a"},
		"a nameless secret goes by position":   {[]ci.Secret{ci.NewSecret("a", "j"), ci.NewSecret("", "k")}, "k", "secret 2"},
		"no secrets refuse":                    {nil, "", ""},
		"an empty secret never matches":        {secrets(""), "", ""},
		"an empty one beside another neither":  {secrets("", "k"), "", ""},
		"a blank secret never matches":         {secrets(" \n", "k"), " \n", ""},
		"one good secret beside an empty does": {secrets("", "k"), "k", "name of k"},
	} {
		t.Run(what, func(t *testing.T) {
			name, err := github.Verify(tc.secrets, signed(sign(tc.key, body)), []byte(body))
			if tc.name == "" {
				mustRefuse(t, name, err, "secret")
				return
			}
			if err != nil || name != tc.name {
				t.Fatalf("Verify = %q, %v, want %q", name, err, tc.name)
			}
		})
	}
}

func TestVerify_KnownSHA1Vector(t *testing.T) {
	body, err := os.ReadFile(payloads(t) + "/ping/sha1-vector-secret-123.json")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"X-Hub-Signature": {"sha1=355e155fc3d10c4e5f2c6086a01281d2e947d932"}}
	if sign1("123", string(body)) != h.Get("X-Hub-Signature") {
		t.Fatal("the vector's bytes were changed")
	}
	name, err := github.Verify(secrets("123"), h, body)
	mustRefuse(t, name, err, "SHA-1 alone")
}

// payloads returns the folder of real payloads.
func payloads(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		t.Skip("DOCKET_PAYLOADS is not set: it names the folder of real payloads that this test reads")
	}
	return dir
}
