package github

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"docket/server/payload"
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
	if err := payload.NeedSecret(secrets); err != nil {
		return "", err
	}
	want, err := signature(header)
	if err != nil {
		return "", err
	}
	secret, found := payload.Match(secrets, body, want)
	if !found {
		return "", payload.Refuse("%s does not match the body under any configured secret; set the webhook's secret on GitHub to the one in webhook_secrets, and see that no proxy changes the body", HeaderSignature)
	}
	return secret, nil
}

// signature returns the 32 bytes that the header claims.
func signature(header http.Header) ([]byte, error) {
	values := header.Values(HeaderSignature)
	switch {
	case len(values) == 0 && len(header.Values(HeaderSignatureOld)) > 0:
		return nil, payload.Refuse("the delivery is signed with SHA-1 alone (%s), which is not enough; GitHub has sent %s beside it since 2020, so update a GitHub Enterprise Server older than that, or see that no proxy drops the header", HeaderSignatureOld, HeaderSignature)
	case len(values) == 0:
		return nil, payload.Refuse("the delivery is not signed: %s is missing; set the webhook's secret on GitHub to the one in webhook_secrets", HeaderSignature)
	case len(values) > 1:
		return nil, payload.Refuse("%s is given %d times; a delivery has exactly one", HeaderSignature, len(values))
	}
	digits, ok := strings.CutPrefix(values[0], "sha256=")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, payload.Refuse(`%s is malformed; it is "sha256=" and 64 hex digits, as GitHub sends it`, HeaderSignature)
	}
	return sum, nil
}
