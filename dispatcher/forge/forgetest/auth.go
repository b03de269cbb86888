package forgetest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// appKey is the private key of every fake's App: making one is slow.
var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// PrivateKey returns the App's private key in PEM, as GitHub hands it out.
func (g *GitHub) PrivateKey() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())}))
}

// installation is one installation of the App.
type installation struct {
	id           int64
	all          bool // has every repository
	repositories []string
	permissions  map[string]string // nil: all
	suspended    bool
}

func (i *installation) has(name string) bool {
	return i.all || slices.ContainsFunc(i.repositories, func(s string) bool { return strings.EqualFold(s, name) })
}

// grant is what a token may do.
type grant struct {
	installation *installation     // nil: a person's token
	repositories []string          // nil: all of the installation's
	permissions  map[string]string // nil: all
	expires      time.Time         // by GitHub's clock; zero: never
}

// AddInstallation installs the App once more, on these repositories alone.
func (g *GitHub) AddInstallation(id int64, repositories ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.installations[id] = &installation{id: id, repositories: repositories}
}

// RemoveInstallation takes an installation away, and its tokens.
func (g *GitHub) RemoveInstallation(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.installations, id)
}

// Suspend suspends an installation, or ends that.
func (g *GitHub) Suspend(id int64, suspended bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.installations[id].suspended = suspended
}

// Permit makes these the only permissions of an installation, as in
// "statuses": "write".
func (g *GitHub) Permit(id int64, permissions map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.installations[id].permissions = permissions
}

// AddToken makes a person's token valid, for everything.
func (g *GitHub) AddToken(value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[value] = &grant{}
}

// TokenLifetime sets for how long new tokens of installations are good.
func (g *GitHub) TokenLifetime(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lifetime = d
}

// RevokeTokens makes every token of an installation invalid, as if all had
// expired.
func (g *GitHub) RevokeTokens() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.tokens {
		if t.installation != nil {
			t.expires = g.now().Add(-time.Second)
		}
	}
}

// Tokens returns every token of an installation that was given out.
func (g *GitHub) Tokens() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for value, t := range g.tokens {
		if t.installation != nil {
			list = append(list, value)
		}
	}
	return list
}

// caller is who made a request.
type caller struct {
	app   bool
	grant *grant
	token string
}

// signIn finds out who makes a request. The caller holds mu.
func (g *GitHub) signIn(r *http.Request) (c caller, refused *answer) {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "basic") {
		_, value, _ = r.BasicAuth()
	}
	c.token = value
	if strings.Count(value, ".") == 2 {
		c.app = true
		return c, g.checkJWT(value)
	}
	c.grant = g.tokens[value]
	bad := refusal(http.StatusUnauthorized, "Bad credentials")
	if c.grant == nil || !c.grant.expires.IsZero() && !g.now().Before(c.grant.expires) {
		return c, &bad
	}
	if in := c.grant.installation; in != nil {
		if g.installations[in.id] != in {
			return c, &bad
		}
		if in.suspended {
			no := refusal(http.StatusForbidden, "This installation has been suspended")
			return c, &no
		}
	}
	return c, nil
}

// checkJWT holds an App's own token against GitHub's rules and clock.
func (g *GitHub) checkJWT(value string) *answer {
	refuse := func(message string) *answer {
		a := refusal(http.StatusUnauthorized, "%s", message)
		return &a
	}
	parts := strings.Split(value, ".")
	decode := base64.RawURLEncoding.DecodeString
	var head struct{ Alg string }
	var claims struct {
		Iss      any
		Iat, Exp json.Number
	}
	signature, err := decode(parts[2])
	for i, into := range []any{&head, &claims} {
		b, e := decode(parts[i])
		if e != nil || err != nil || json.Unmarshal(b, into) != nil {
			return refuse("A JSON web token could not be decoded")
		}
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if head.Alg != "RS256" || rsa.VerifyPKCS1v15(&appKey().PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return refuse("A JSON web token could not be decoded")
	}
	now := g.now().Unix()
	iat, err := claims.Iat.Int64()
	if err != nil || iat > now {
		return refuse("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	exp, err := claims.Exp.Int64()
	switch {
	case err != nil || exp <= now:
		return refuse("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case exp > now+600:
		return refuse("'Expiration time' claim ('exp') is too far in the future")
	}
	if s, ok := claims.Iss.(string); !ok || s != strconv.Itoa(AppID) {
		a := refusal(http.StatusNotFound, "Integration not found")
		return &a
	}
	return nil
}

// createToken gives out a token of an installation.
func (g *GitHub) createToken(r *http.Request, _ caller) answer {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	in := g.installations[id]
	if in == nil {
		return notFound
	}
	if in.suspended {
		return refusal(http.StatusForbidden, "This installation has been suspended")
	}
	var want struct {
		Repositories  []string
		RepositoryIDs []int64 `json:"repository_ids"`
		Permissions   map[string]string
	}
	if r.ContentLength != 0 && json.NewDecoder(r.Body).Decode(&want) != nil {
		return refusal(http.StatusBadRequest, "Problems parsing JSON")
	}
	t := &grant{installation: in, expires: g.now().Add(g.lifetime), permissions: in.permissions}
	for p, level := range want.Permissions {
		if !allows(in.permissions, p, level) {
			return refusal(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	if want.Permissions != nil {
		t.permissions = want.Permissions
	}
	for _, repo := range g.repositories {
		_, short, _ := strings.Cut(repo.name, "/")
		if in.has(repo.name) && (slices.Contains(want.Repositories, short) || slices.Contains(want.RepositoryIDs, repo.id)) {
			t.repositories = append(t.repositories, repo.name)
		}
	}
	if n := len(want.Repositories) + len(want.RepositoryIDs); n > 0 && len(t.repositories) < n {
		return refusal(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	value := "ghs_" + hex.EncodeToString(randomBytes(18))
	g.tokens[value] = t
	return answer{status: http.StatusCreated, body: map[string]any{
		"token": value, "expires_at": t.expires.UTC().Format(time.RFC3339), "permissions": t.permissions,
	}}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// allows reports whether permissions include one at a level; nil are all.
func allows(permissions map[string]string, name, level string) bool {
	if permissions == nil || name == "metadata" && level == "read" {
		return true
	}
	has := permissions[name]
	return has == level || has == "write" && level == "read" || has == "admin"
}

// may says why a caller may not do something in a repository. The caller
// holds mu.
func (c caller) may(r *repository, permission, level string) *answer {
	if c.app {
		a := refusal(http.StatusUnauthorized, "A JSON web token could not be used here")
		return &a
	}
	if in := c.grant.installation; in != nil {
		if !in.has(r.name) || c.grant.repositories != nil && !slices.Contains(c.grant.repositories, r.name) {
			a := notFound
			return &a
		}
		if !allows(c.grant.permissions, permission, level) {
			a := refusal(http.StatusForbidden, "Resource not accessible by integration")
			return &a
		}
	}
	return nil
}

// findInstallation tells which installation a repository belongs to.
func (g *GitHub) findInstallation(r *http.Request, _ caller) answer {
	repo := g.repository(r.PathValue("owner") + "/" + r.PathValue("repo"))
	if repo == nil {
		return notFound
	}
	var found *installation
	for _, in := range g.installations {
		if in.has(repo.name) && (found == nil || !in.all) {
			found = in
		}
	}
	if found == nil {
		return notFound
	}
	return answer{status: http.StatusOK, body: map[string]any{"id": found.id, "app_id": AppID}}
}
