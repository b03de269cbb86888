package store

import (
	"bytes"
	"context"
	"time"

	"docket/store/ci"
)

// LoginLinkLife is how long a login link can be used.
const LoginLinkLife = 15 * time.Minute

func errNoLink() error {
	return ci.Errorf(ci.CodeUnauthenticated, "this login link was used already, or is more than %d minutes old; make a new one with `docket login-link`", int(LoginLinkLife.Minutes()))
}

// CreateLoginLink makes a link's value, which is kept nowhere and signs user in
// once: "" stands for ci.AdminUser, who needs no record. CodeNotFound if there
// is no such user.
func (s *Store) CreateLoginLink(ctx context.Context, user string, by ci.By) (value string, link ci.LoginLink, err error) {
	if user == "" {
		user = ci.AdminUser
	}
	value, digest := newSecret()
	err = s.update(ctx, func(t *tx) error {
		_, ok, err := t.roleOf(user)
		if err != nil {
			return err
		}
		if !ok {
			return noUser(user)
		}
		if err := t.dropLinks(func(l ci.LoginLink) bool { return !t.now.Before(l.ExpiresAt.Time) }); err != nil {
			return err
		}
		link = ci.LoginLink{User: user, CreatedAt: ci.At(t.now), ExpiresAt: ci.At(t.now.Add(LoginLinkLife)), By: by}
		if err := t.put(bucketLinks, digest, mustJSON(link)); err != nil {
			return err
		}
		return t.decide(ci.Decision{Kind: ci.DecisionLoginLink, User: user, By: by, Reason: "a login link for the user " + user + " was made"})
	})
	if err != nil {
		return "", ci.LoginLink{}, err
	}
	return value, link, nil
}

// LoginLink returns the link of a value without using it up, or CodeUnauthenticated.
func (s *Store) LoginLink(value string) (link ci.LoginLink, err error) {
	err = s.view(func(t *tx) (err error) {
		link, err = t.liveLink(secretDigest(value))
		return err
	})
	return link, err
}

// UseLoginLink uses a link up and signs a browser in, in one write: of two
// that try at once one gets in. CodeUnauthenticated if it is not good any more.
func (s *Store) UseLoginLink(ctx context.Context, value, address string) (token string, link ci.LoginLink, err error) {
	if _, err := s.LoginLink(value); err != nil {
		return "", ci.LoginLink{}, err // no write for a value out of the air
	}
	key := secretDigest(value)
	token, digest := newSecret()
	err = s.update(ctx, func(t *tx) (err error) {
		if link, err = t.liveLink(key); err != nil {
			return err
		}
		if err := t.delete(bucketLinks, key); err != nil {
			return err
		}
		return t.beginSession(digest, link.User, address)
	})
	if err != nil {
		return "", ci.LoginLink{}, err
	}
	return token, link, nil
}

func (t *tx) liveLink(digest []byte) (link ci.LoginLink, err error) {
	v := t.get(bucketLinks, digest)
	if v == nil {
		return link, errNoLink()
	}
	if link, err = decodeJSON[ci.LoginLink]("login link", v); err != nil {
		return link, err
	}
	role, ok, err := t.roleOf(link.User)
	link.Role = role
	if err == nil && (!ok || !t.now.Before(link.ExpiresAt.Time)) {
		err = errNoLink()
	}
	return link, err
}

func (t *tx) dropLinksOf(user string) error {
	return t.dropLinks(func(l ci.LoginLink) bool { return l.User == user })
}

// dropLinks looks at all links: they are as many as were made in the last
// minutes, and each new one removes those that have expired.
func (t *tx) dropLinks(which func(ci.LoginLink) bool) error {
	var keys [][]byte
	err := t.bucket(bucketLinks).ForEach(func(k, v []byte) error {
		l, err := decodeJSON[ci.LoginLink]("login link", v)
		if err == nil && which(l) {
			keys = append(keys, bytes.Clone(k))
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.deleteAll(bucketLinks, keys)
}
