package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"docket/store/ci"
)

// TokenPrefix begins every token's value, so that scanners for leaked secrets
// and people recognise one.
const TokenPrefix = "dkt_"

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// CreateToken makes a token and returns its value, which is kept nowhere.
// CodeConflict if the name is taken, CodeInvalid for a bad name or role.
func (s *Store) CreateToken(ctx context.Context, name string, role ci.Role) (value string, err error) {
	if !tokenName.MatchString(name) {
		return "", ci.Errorf(ci.CodeInvalid, "token name %q: use 1 to 63 letters, digits, dots, dashes, underscores or @, beginning with a letter or digit", name)
	}
	if !role.Valid() {
		return "", ci.Errorf(ci.CodeInvalid, "role %q: use viewer, operator or admin", role)
	}
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	value = TokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	sum := sha256.Sum256([]byte(value))
	err = s.update(ctx, func(t *tx) error {
		if key, err := t.tokenByName(name); err != nil {
			return err
		} else if key != nil {
			return ci.Errorf(ci.CodeConflict, "there is a token named %q already; revoke it first or choose another name", name)
		}
		return t.put(bucketTokens, sum[:], mustJSON(ci.Token{Name: name, Role: role, CreatedAt: ci.At(t.now)}))
	})
	if err != nil {
		return "", err
	}
	return value, nil
}

func (t *tx) tokenByName(name string) (key []byte, err error) {
	c := t.bucket(bucketTokens).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		tok, err := decodeJSON[ci.Token]("token", v)
		if err != nil {
			return nil, err
		}
		if tok.Name == name {
			return slices.Clone(k), nil
		}
	}
	return nil, nil
}

// Tokens lists tokens by name.
func (s *Store) Tokens() (list []ci.Token, err error) {
	list = []ci.Token{}
	err = s.view(func(t *tx) error {
		c := t.bucket(bucketTokens).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			tok, err := decodeJSON[ci.Token]("token", v)
			if err != nil {
				return err
			}
			list = append(list, tok)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b ci.Token) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// RevokeToken makes a token worthless, or returns CodeNotFound.
func (s *Store) RevokeToken(ctx context.Context, name string) error {
	return s.update(ctx, func(t *tx) error {
		key, err := t.tokenByName(name)
		if err != nil {
			return err
		}
		if key == nil {
			return ci.Errorf(ci.CodeNotFound, "no token is named %q; `docket token list` shows those there are", name)
		}
		return t.delete(bucketTokens, key)
	})
}

// Authenticate returns the token of a value, or CodeUnauthenticated. The value
// is looked up by its SHA-256 digest, so that timing tells nothing about it.
func (s *Store) Authenticate(value string) (tok ci.Token, err error) {
	sum := sha256.Sum256([]byte(value))
	err = s.view(func(t *tx) error {
		v := t.get(bucketTokens, sum[:])
		if v == nil {
			return ci.Errorf(ci.CodeUnauthenticated, "this token is not known here; it may have been revoked, and `docket token create` makes a new one")
		}
		tok, err = decodeJSON[ci.Token]("token", v)
		return err
	})
	return tok, err
}
