package payload

import (
	"crypto/hmac"
	"crypto/sha256"
	"strconv"
	"strings"

	"docket/store/ci"
)

// Match returns the name of the first secret under which the HMAC-SHA256 of
// the body is the claimed one. How long it takes does not tell which secret
// came near, and a blank secret never matches.
func Match(secrets []ci.Secret, body, claimed []byte) (name string, ok bool) {
	for i, s := range secrets {
		mac := hmac.New(sha256.New, []byte(s.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), claimed) && usable(s) && !ok {
			ok, name = true, s.Name
			if name == "" {
				name = "secret " + strconv.Itoa(i+1)
			}
		}
	}
	return name, ok
}

// NeedSecret refuses where no secret is one.
func NeedSecret(secrets []ci.Secret) error {
	for _, s := range secrets {
		if usable(s) {
			return nil
		}
	}
	return Refuse("no webhook secret is configured for this integration, so no delivery can be trusted; give it one under webhook_secrets")
}

// usable reports whether a secret is one: anybody can guess a blank one.
func usable(s ci.Secret) bool { return strings.TrimSpace(s.Reveal()) != "" }

// Refuse is an error of CodeUnauthenticated.
func Refuse(format string, args ...any) error {
	return ci.Errorf(ci.CodeUnauthenticated, format, args...)
}
