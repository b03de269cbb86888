package gitea_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"docket/server/gitea"
	"docket/store/ci"
)

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func secrets(values ...string) []ci.Secret {
	var out []ci.Secret
	for _, v := range values {
		out = append(out, ci.NewSecret("name of "+v, v))
	}
	return out
}

// headers are name, value pairs; a name may come twice.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
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

func TestVerify_HeaderShapes(t *testing.T) {
	const body = `{"ref":"refs/heads/main","message":"fix … 😊"}`
	good, bad := sign("k", body), sign("k", body+" ")
	mac := hmac.New(sha1.New, []byte("k"))
	mac.Write([]byte(body))
	sha1 := "sha1=" + hex.EncodeToString(mac.Sum(nil))
	const g, f, h = "X-Gitea-Signature", "X-Forgejo-Signature", "X-Hub-Signature-256"
	for what, tc := range map[string]struct {
		header http.Header
		says   string // "" for accepted
	}{
		"Gitea's alone is accepted":             {headers(g, good), ""},
		"Forgejo's alone is accepted":           {headers(f, good), ""},
		"GitHub's alone is accepted":            {headers(h, "sha256="+good), ""},
		"all three are accepted":                {headers(g, good, f, good, h, "sha256="+good), ""},
		"upper-case hex is accepted":            {headers(g, strings.ToUpper(good), h, "sha256="+good), ""},
		"Gogs' and SHA-1 beside harm nothing":   {headers(g, good, "X-Gogs-Signature", bad, "X-Hub-Signature", "sha1=00"), ""},
		"no header is refused":                  {headers("X-GitHub-Event", "push"), "put the secret of webhook_secrets into Secret"},
		"empty ones are unsigned":               {headers(g, "", f, "", h, "sha256="), "is not signed"},
		"Gogs' alone is unsigned":               {headers("X-Gogs-Signature", good), "is not signed"},
		"SHA-1 alone says so":                   {headers("X-Hub-Signature", sha1), "SHA-1 alone"},
		"an empty SHA-1 alone is unsigned":      {headers("X-Hub-Signature", "sha1="), "is not signed"},
		"a good one beside an empty is refused": {headers(g, good, h, "sha256="), "malformed"},
		"an empty one beside a good is refused": {headers(g, "", f, good), "malformed"},
		"Gitea's disagrees with GitHub's":       {headers(g, good, h, "sha256="+bad), "differ"},
		"GitHub's disagrees with Gitea's":       {headers(g, bad, h, "sha256="+good), "differ"},
		"Forgejo's disagrees":                   {headers(g, good, f, bad), "X-Gitea-Signature and X-Forgejo-Signature differ"},
		"all agree and none holds":              {headers(g, bad, f, bad, h, "sha256="+bad), "does not match"},
		"SHA-1 does not rescue":                 {headers(g, bad, "X-Hub-Signature", sha1), "does not match"},
		"Gitea's with a prefix is refused":      {headers(g, "sha256="+good), "malformed"},
		"GitHub's without one is refused":       {headers(h, good), "malformed"},
		"63 digits are refused":                 {headers(g, good[1:]), "malformed"},
		"65 digits are refused":                 {headers(g, good+"0"), "malformed"},
		"66 digits are refused":                 {headers(g, good+"00"), "malformed"},
		"a byte over ASCII is refused":          {headers(g, good[:62]+"\xe9\xe9"), "malformed"},
		"two good ones are refused":             {headers(g, good, g, good), "given 2 times"},
		"an empty one twice is unsigned":        {headers(g, "", g, ""), "is not signed"},
	} {
		t.Run(what, func(t *testing.T) {
			name, err := gitea.Verify(secrets("other", "k"), tc.header, []byte(body))
			if tc.says != "" {
				mustRefuse(t, name, err, tc.says)
				return
			}
			if err != nil || name != "name of k" {
				t.Fatalf("Verify = %q, %v", name, err)
			}
		})
	}
}

func TestVerify_NeedsASecret(t *testing.T) {
	for what, list := range map[string][]ci.Secret{"none": nil, "an empty one": secrets(""), "a blank one": secrets(" ")} {
		t.Run(what, func(t *testing.T) {
			name, err := gitea.Verify(list, headers("X-Gitea-Signature", sign("", "{}")), []byte("{}"))
			mustRefuse(t, name, err, "webhook_secrets")
		})
	}
}

// Ensure that a form is taken whose JSON Gitea has signed, in the one encoding
// that Gitea gives it.
func TestVerify_Forms(t *testing.T) {
	const text = `{"ref":"refs/heads/a+b","x":"1 2é"}`
	form := url.Values{"payload": {text}}.Encode()
	const kind = "application/x-www-form-urlencoded"
	for what, tc := range map[string]struct {
		contentType, body, signed string
		ok                        bool
	}{
		"signed over its JSON":             {kind, form, text, true},
		"signed over its own bytes":        {kind, form, form, true},
		"with a charset":                   {kind + "; charset=utf-8", form, text, true},
		"signed over something else":       {kind, form, text + " ", false},
		"with another value beside":        {kind, form + "&x=1", text, false},
		"with an empty value beside":       {kind, form + "&", text, false},
		"escaped in another way":           {kind, strings.Replace(form, "+", "%20", 1), text, false},
		"with lower-case escapes":          {kind, strings.Replace(form, "%7B", "%7b", 1), text, false},
		"with its payload twice":           {kind, form + "&" + form, text, false},
		"that is broken":                   {kind, "payload=%zz", text, false},
		"labelled JSON":                    {"application/json", form, text, false},
		"without a content type":           {"", form, text, false},
		"that is no form, signed as it is": {kind, text, text, true}, // and then refused as a form without payload
	} {
		t.Run(what, func(t *testing.T) {
			h := headers("X-Gitea-Signature", sign("k", tc.signed))
			if tc.contentType != "" {
				h.Set("Content-Type", tc.contentType)
			}
			name, err := gitea.Verify(secrets("k"), h, []byte(tc.body))
			if !tc.ok {
				mustRefuse(t, name, err, "does not match")
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}
