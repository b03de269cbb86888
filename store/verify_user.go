package store

import (
	"bytes"

	"docket/store/ci"
)

// users checks who may get in. A store that no docket has written to since
// before there were users lacks the buckets.
func (v *verifier) users() error {
	if v.t.bucket(bucketUsers) == nil {
		return nil
	}
	err := v.each(bucketUsers, func(k, val []byte) error {
		u, err := decodeJSON[user]("user", val)
		if err != nil || u.Name != string(k) || checkUserRole(u.Name, u.Role) != nil || u.Hash == "" {
			v.broken("user %q: named %q, role %q: %v", k, u.Name, u.Role, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.sessions(); err != nil {
		return err
	}
	return v.links()
}

func (v *verifier) sessions() error {
	err := v.each(bucketSessions, func(k, val []byte) error {
		se, err := decodeJSON[ci.Session]("session", val)
		if err != nil {
			v.broken("session %x: %v", k, err)
			return nil
		}
		if v.t.bucket(bucketUserSessions).Get(userSessionKey(se.User, k)) == nil {
			v.broken("session %x: not filed under the user %q", k, se.User)
		}
		if _, ok, err := v.t.roleOf(se.User); err == nil && !ok {
			v.broken("session %x: there is no user %q", k, se.User)
		}
		if se.SeenAt.Before(se.CreatedAt.Time) || !se.ExpiresAt.Equal(se.SeenAt.Add(SessionLife)) {
			v.broken("session %x: seen at %v, and expires at %v", k, se.SeenAt, se.ExpiresAt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.each(bucketUserSessions, func(k, _ []byte) error {
		name, digest, ok := bytes.Cut(k, []byte{0})
		se, found, err := v.t.session(digest)
		if err == nil && (!ok || !found || se.User != string(name)) {
			v.broken("index of sessions: %q has no such session", k)
		}
		return nil
	})
}

func (v *verifier) links() error {
	return v.each(bucketLinks, func(k, val []byte) error {
		l, err := decodeJSON[ci.LoginLink]("login link", val)
		if err != nil {
			v.broken("login link %x: %v", k, err)
			return nil
		}
		if _, ok, err := v.t.roleOf(l.User); err == nil && !ok {
			v.broken("login link %x: there is no user %q", k, l.User)
		}
		return nil
	})
}
