package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"docket/store/ci"
)

// The headers that carry a signature.
const (
	HeaderSignature    = "X-Hub-Signature-256"
	HeaderSignatureOld = "X-Hub-Signature" // SHA-1, which is never enough
)

// Verify checks X-Hub-Signature-256 over exactly these bytes of the body
// against every configured secret and returns the name of the one that
// matched. How long it takes does not tell which secret came near. A SHA-1
// signature is never looked at, and an empty secret never matches.
//
// Every failure is CodeUnauthenticated. The rules are those of GitHub's
// "Validating webhook deliveries"; digits may be upper-case.
func Verify(secrets []ci.Secret, header http.Header, body []byte) (secret string, err error) {
	if !anyUsable(secrets) {
		return "", refuse("no webhook secret is configured for this integration, so no delivery can be trusted; give it one under webhook_secrets")
	}
	want, err := signature(header)
	if err != nil {
		return "", err
	}
	found := false
	for i, s := range secrets {
		mac := hmac.New(sha256.New, []byte(s.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), want) && usable(s) && !found {
			found, secret = true, s.Name
			if secret == "" {
				secret = "secret " + strconv.Itoa(i+1)
			}
		}
	}
	if !found {
		return "", refuse("%s does not match the body under any configured secret; set the webhook's secret on GitHub to the one in webhook_secrets, and see that no proxy changes the body", HeaderSignature)
	}
	return secret, nil
}

// signature returns the 32 bytes that the header claims.
func signature(header http.Header) ([]byte, error) {
	values := header.Values(HeaderSignature)
	switch {
	case len(values) == 0 && len(header.Values(HeaderSignatureOld)) > 0:
		return nil, refuse("the delivery is signed with SHA-1 alone (%s), which is not enough; GitHub has sent %s beside it since 2020, so update a GitHub Enterprise Server older than that, or see that no proxy drops the header", HeaderSignatureOld, HeaderSignature)
	case len(values) == 0:
		return nil, refuse("the delivery is not signed: %s is missing; set the webhook's secret on GitHub to the one in webhook_secrets", HeaderSignature)
	case len(values) > 1:
		return nil, refuse("%s is given %d times; a delivery has exactly one", HeaderSignature, len(values))
	}
	digits, ok := strings.CutPrefix(values[0], "sha256=")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, refuse(`%s is malformed; it is "sha256=" and 64 hex digits, as GitHub sends it`, HeaderSignature)
	}
	return sum, nil
}

func anyUsable(secrets []ci.Secret) bool {
	for _, s := range secrets {
		if usable(s) {
			return true
		}
	}
	return false
}

// usable reports whether a secret is one: anybody can guess a blank one.
func usable(s ci.Secret) bool { return strings.TrimSpace(s.Reveal()) != "" }

func refuse(format string, args ...any) error {
	return ci.Errorf(ci.CodeUnauthenticated, format, args...)
}
