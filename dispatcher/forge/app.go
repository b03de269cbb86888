package forge

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	jwt "github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// How long an App's own token is good. GitHub refuses one that was made in its
// future and one that ends more than ten minutes from its now, so both ends
// leave room for a clock that is a little off.
const (
	backdate = time.Minute
	lifetime = 5 * time.Minute
)

// appKey is an App as it is configured now; another key file makes another.
type appKey struct {
	integration, api string
	id               int64
	key              [sha256.Size]byte
}

// app signs in as a GitHub App.
type app struct {
	key       appKey
	transport *ghinstallation.AppsTransport
}

// app returns the integration's App. Errors: CodeInvalid for a key that
// cannot be read.
func (f *Forge) app(in *ci.Integration) (*app, error) {
	pem := in.App.PrivateKey.Reveal()
	k := appKey{in.Name, in.APIURL, in.App.ID, sha256.Sum256([]byte(pem))}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.apps[k]; a != nil {
		return a, nil
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(pem))
	if err != nil {
		return nil, ci.Errorf(ci.CodeInvalid, "the private key in %s of the integration %s is no RSA key in PEM; make one on the App's page and put it there", in.App.PrivateKey.Name, in.Name)
	}
	tr, err := ghinstallation.NewAppsTransportWithOptions(f.client.Transport, in.App.ID,
		ghinstallation.WithSigner(signer{ghinstallation.NewRSASigner(jwt.SigningMethodRS256, key), f.now}))
	if err != nil {
		return nil, err
	}
	for old := range f.apps { // of the configuration before
		if old.integration == in.Name {
			delete(f.apps, old)
		}
	}
	a := &app{k, tr}
	f.apps[k] = a
	return a, nil
}

// signer sets the times of a token by docket's clock.
type signer struct {
	ghinstallation.Signer
	now func() time.Time
}

// Sign implements ghinstallation.Signer.
func (s signer) Sign(claims jwt.Claims) (string, error) {
	now := s.now().Truncate(time.Second)
	if c, ok := claims.(*jwt.RegisteredClaims); ok {
		c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(now.Add(-backdate)), jwt.NewNumericDate(now.Add(lifetime))
	}
	return s.Signer.Sign(claims)
}

// asApp makes a call as the App itself.
//
// Errors: *ClockError where this machine's clock is why the App was not let
// in; else those of call, with the answer wherever there was one.
func (f *Forge) asApp(ctx context.Context, in *ci.Integration, call func(context.Context, *github.Client) (*github.Response, error)) (*github.Response, error) {
	a, err := f.app(in)
	if err != nil {
		return nil, err
	}
	c := github.NewClient(&http.Client{Transport: a.transport, CheckRedirect: f.client.CheckRedirect})
	if err := f.aim(c, in); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := call(ctx, c)
	if resp == nil || resp.Response == nil {
		return nil, err
	}
	if err != nil && resp.StatusCode == http.StatusUnauthorized {
		if clock := f.clockError(resp.Response); clock != nil {
			return resp, clock
		}
	}
	return resp, err
}
