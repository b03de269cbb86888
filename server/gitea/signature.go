package gitea

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// HeaderSignature carries the signature: the HMAC-SHA256's bare hex digits.
const HeaderSignature = "X-Gitea-Signature"

// signatures are all headers that carry it, and what stands before the digits.
func signatures() []struct{ name, prefix string } {
	return []struct{ name, prefix string }{
		{HeaderSignature, ""},
		{"X-Forgejo-Signature", ""},
		{"X-Hub-Signature-256", "sha256="},
	}
}

// Verify checks a delivery's signature against every configured secret and
// returns the name of the one that matched. It is given under up to three
// names, and each that is there must hold. X-Gogs-Signature and SHA-1 are
// never looked at, and an empty secret never matches. How long it takes does
// not tell which secret came near.
//
// The signature is over exactly these bytes of the body. Of a form Gitea signs
// the JSON in it instead: then that is taken out first, from a form that is
// encoded the one way in which Gitea encodes it, and nothing of it is read.
//
// Every failure is CodeUnauthenticated.
func Verify(secrets []ci.Secret, header http.Header, body []byte) (secret string, err error) {
	if err := payload.NeedSecret(secrets); err != nil {
		return "", err
	}
	want, err := signature(header)
	if err != nil {
		return "", err
	}
	secret, ok := payload.Match(secrets, body, want)
	if !ok {
		if text := formText(header, body); text != nil {
			secret, ok = payload.Match(secrets, text, want)
		}
	}
	if !ok {
		return "", payload.Refuse("the signature does not match the body under any configured secret; set the webhook's Secret on Gitea to the one in webhook_secrets, and see that no proxy changes the body")
	}
	return secret, nil
}

// signature returns the 32 bytes that all of the headers claim.
func signature(header http.Header) (sum []byte, err error) {
	if !signed(header) {
		return nil, unsigned(header)
	}
	first := ""
	for _, s := range signatures() {
		values := header.Values(s.name)
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return nil, payload.Refuse("%s is given %d times; a delivery has exactly one", s.name, len(values))
		}
		digits, ok := strings.CutPrefix(values[0], s.prefix)
		claim, err := hex.DecodeString(digits)
		if !ok || err != nil || len(claim) != sha256.Size {
			return nil, payload.Refuse("%s is malformed; it is %s64 hex digits, as Gitea sends it", s.name, quoted(s.prefix))
		}
		if first != "" && !bytes.Equal(claim, sum) {
			return nil, payload.Refuse("%s and %s differ; Gitea sends one signature under all names, so see what the proxy in between changes", first, s.name)
		}
		first, sum = s.name, claim
	}
	return sum, nil
}

// signed reports whether any header carries a signature. Without a secret
// Gitea sends them all, empty.
func signed(header http.Header) bool {
	for _, s := range signatures() {
		for _, v := range header.Values(s.name) {
			if v != "" && v != s.prefix {
				return true
			}
		}
	}
	return false
}

func unsigned(header http.Header) error {
	if v := header.Get("X-Hub-Signature"); v != "" && v != "sha1=" {
		return payload.Refuse("the delivery is signed with SHA-1 alone (X-Hub-Signature), which is not enough; Gitea sends %s beside it, so see that no proxy drops that", HeaderSignature)
	}
	return payload.Refuse("the delivery is not signed; put the secret of webhook_secrets into Secret in the webhook's settings on Gitea (before 1.9 Gitea cannot sign, so update it), and see that no proxy drops %s", HeaderSignature)
}

func quoted(prefix string) string {
	if prefix == "" {
		return ""
	}
	return `"` + prefix + `" and `
}

// formText returns the JSON in a form, nil where the body is none or is not
// encoded as Gitea does it: one text has one form, so that nobody can make
// other bytes of a signed one.
func formText(header http.Header, body []byte) []byte {
	if form, err := ContentType(header); err != nil || !form {
		return nil
	}
	text, err := provider().FormPayload(body)
	if err != nil || (url.Values{"payload": {string(text)}}).Encode() != string(body) {
		return nil
	}
	return text
}
