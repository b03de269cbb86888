package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"docket/store/ci"
)

// What a password may be.
const (
	minPassword = 12   // characters
	maxPassword = 1024 // bytes
)

// CheckPassword says why a password cannot be taken: CodeInvalid, or nil. Only
// its length counts.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password):
		return ci.Errorf(ci.CodeInvalid, "the password is not UTF-8")
	case strings.ContainsAny(password, "\r\n\x00"):
		return ci.Errorf(ci.CodeInvalid, "the password has a line break in it; it is one line")
	case utf8.RuneCountInString(password) < minPassword:
		return ci.Errorf(ci.CodeInvalid, "the password is too short: use at least %d characters, a few words for example", minPassword)
	case len(password) > maxPassword:
		return ci.Errorf(ci.CodeInvalid, "the password is too long: use at most %d bytes", maxPassword)
	}
	return nil
}

// HashPassword returns the argon2id hash of a password with its parameters, as
// a PHC string, for the store. CodeInvalid for a password that CheckPassword
// does not take.
func HashPassword(password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	return newHash(password, usualCost(), derive), nil
}

// cost is what one hash takes.
type cost struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

// usualCost is above what OWASP's Password Storage Cheat Sheet asks of
// argon2id (46 MiB and one pass).
func usualCost() cost { return cost{memory: 46 << 10, passes: 2, lanes: 1} }

const (
	saltBytes = 16
	hashBytes = 32
)

// deriver is argon2id, or what a test puts in its place.
type deriver func(password, salt []byte, c cost) []byte

func derive(password, salt []byte, c cost) []byte {
	return argon2.IDKey(password, salt, c.passes, c.memory, c.lanes, hashBytes)
}

func newHash(password string, c cost, derive deriver) string {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the program instead
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.lanes,
		b64(salt), b64(derive([]byte(password), salt, c)))
}

// parseHash reads a PHC string of newHash, of any cost that is not absurd.
func parseHash(phc string) (c cost, salt, sum []byte, err error) {
	bad := errors.New("the hash of a password cannot be read")
	part := strings.Split(phc, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, bad
	}
	if n, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); n != 3 || err != nil ||
		c.memory > 1<<20 || c.passes < 1 || c.passes > 64 || c.lanes < 1 {
		return c, nil, nil, bad
	}
	salt, err = base64.RawStdEncoding.Strict().DecodeString(part[4])
	if err == nil {
		sum, err = base64.RawStdEncoding.Strict().DecodeString(part[5])
	}
	if err != nil || len(salt) < 8 || len(sum) != hashBytes {
		return c, nil, nil, bad
	}
	return c, salt, sum, nil
}

const (
	// workers is how many hashes are computed at once: each holds memory.
	workers = 2
	// waiters is how many may wait for their turn. With more, nobody would get
	// an answer in good time.
	waiters = 32
)

// passwords computes hashes, a bounded number of them at once.
type passwords struct {
	cost    cost
	derive  deriver
	working chan struct{}
	present chan struct{} // working or waiting
}

func newPasswords() *passwords {
	return &passwords{
		cost: usualCost(), derive: derive,
		working: make(chan struct{}, workers), present: make(chan struct{}, workers+waiters),
	}
}

// turn waits for a turn to compute; done ends it. CodeUnavailable if too many
// wait already, or if ctx ends first.
func (p *passwords) turn(ctx context.Context) (done func(), err error) {
	busy := ci.Errorf(ci.CodeUnavailable, "too many people are signing in at this moment; try again in a few seconds")
	select {
	case p.present <- struct{}{}:
	default:
		return nil, busy
	}
	select {
	case p.working <- struct{}{}:
		return func() { <-p.working; <-p.present }, nil
	case <-ctx.Done():
		<-p.present
		return nil, busy
	}
}

// hash is HashPassword within the bounds.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	done, err := p.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return newHash(password, p.cost, p.derive), nil
}

// matches reports whether a password is that of a hash. For the hash "", that
// of nobody, it does the same work and says no: time does not tell who is a
// user. Errors: those of turn, and a hash that cannot be read.
func (p *passwords) matches(ctx context.Context, phc, password string) (bool, error) {
	done, err := p.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if phc == "" {
		p.derive([]byte(password), make([]byte, saltBytes), p.cost)
		return false, nil
	}
	c, salt, sum, err := parseHash(phc)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(p.derive([]byte(password), salt, c), sum) == 1, nil
}
