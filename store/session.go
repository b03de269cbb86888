package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"docket/store/ci"
)

const (
	// SessionLife is how long a session lasts after it was last used.
	SessionLife = 30 * 24 * time.Hour
	// sessionSlide is how often, at most, its use is written down.
	sessionSlide = time.Hour
	// maxSessions bounds the sessions of one user: the one that was not used
	// for longest gives way.
	maxSessions = 50
	// sweptSessions is how many sessions each new one looks at, to remove those
	// that have expired: more than one, so that they never pile up.
	sweptSessions = 16
)

// NewSession is what a session begins with.
type NewSession struct {
	User    string
	Address string // of the browser, shown to people
	// PasswordHash is the one that the password was compared with. If the user
	// has another one by now, the password is no longer the user's.
	PasswordHash string
}

func errNotSignedIn() error {
	return ci.Errorf(ci.CodeUnauthenticated, "you are not signed in, or no longer; sign in again")
}

// newSecret returns a random value and the digest that is kept of it.
func newSecret() (value string, digest []byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	value = base64.RawURLEncoding.EncodeToString(raw[:])
	return value, secretDigest(value)
}

func secretDigest(value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return sum[:]
}

func userSessionKey(user string, digest []byte) []byte {
	return append(append([]byte(user), 0), digest...)
}

// CreateSession signs a browser in and returns the session's token, which is
// kept nowhere. CodeUnauthenticated if the user was removed or has another
// password by now.
func (s *Store) CreateSession(ctx context.Context, n NewSession) (token string, err error) {
	token, digest := newSecret()
	err = s.update(ctx, func(t *tx) error {
		u, ok, err := t.user(n.User)
		if err != nil {
			return err
		}
		if !ok || u.Hash != n.PasswordHash {
			return errNotSignedIn()
		}
		return t.beginSession(digest, n.User, n.Address)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

func (t *tx) beginSession(digest []byte, user, address string) error {
	if err := t.boundSessions(user); err != nil {
		return err
	}
	if err := t.sweepSessions(digest); err != nil {
		return err
	}
	se := ci.Session{
		User: user, CreatedAt: ci.At(t.now), SeenAt: ci.At(t.now), ExpiresAt: ci.At(t.now.Add(SessionLife)), Address: address,
	}
	if err := t.put(bucketSessions, digest, mustJSON(se)); err != nil {
		return err
	}
	return t.put(bucketUserSessions, userSessionKey(user, digest), nil)
}

func (t *tx) session(digest []byte) (se ci.Session, ok bool, err error) {
	v := t.get(bucketSessions, digest)
	if v == nil {
		return se, false, nil
	}
	se, err = decodeJSON[ci.Session]("session", v)
	return se, err == nil, err
}

func (t *tx) dropSession(user string, digest []byte) error {
	if err := t.delete(bucketUserSessions, userSessionKey(user, digest)); err != nil {
		return err
	}
	return t.delete(bucketSessions, digest)
}

// sessionsOf returns the digests of a user's sessions.
func (t *tx) sessionsOf(user string) (digests [][]byte) {
	prefix := append([]byte(user), 0)
	c := t.bucket(bucketUserSessions).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		digests = append(digests, bytes.Clone(k[len(prefix):]))
	}
	return digests
}

// boundSessions makes room for one more session of a user.
func (t *tx) boundSessions(user string) error {
	digests := t.sessionsOf(user)
	if len(digests) < maxSessions {
		return nil
	}
	var oldest []byte
	var seen ci.Time
	for _, d := range digests {
		se, _, err := t.session(d)
		if err != nil {
			return err
		}
		if oldest == nil || se.SeenAt.Before(seen.Time) {
			oldest, seen = d, se.SeenAt
		}
	}
	return t.dropSession(user, oldest)
}

// sweepSessions removes expired sessions among those that follow a digest.
// Digests are random, so all have their turn.
func (t *tx) sweepSessions(digest []byte) error {
	type expired struct {
		user   string
		digest []byte
	}
	var list []expired
	c := t.bucket(bucketSessions).Cursor()
	k, v := c.Seek(digest)
	wrapped := false
	for range sweptSessions {
		if k == nil && !wrapped {
			k, v = c.First()
			wrapped = true
		}
		if k == nil || wrapped && bytes.Compare(k, digest) >= 0 {
			break
		}
		se, err := decodeJSON[ci.Session]("session", v)
		if err != nil {
			return err
		}
		if !t.now.Before(se.ExpiresAt.Time) {
			list = append(list, expired{se.User, bytes.Clone(k)})
		}
		k, v = c.Next()
	}
	for _, x := range list {
		if err := t.dropSession(x.user, x.digest); err != nil {
			return err
		}
	}
	return nil
}

// Session returns the session of a token with the role that its user has now,
// or CodeUnauthenticated. Once an hour its use is written down and its end
// moves on: renewed says so. Where that cannot be written the session holds
// all the same. The token is looked up by its digest, so that timing tells
// nothing about it.
func (s *Store) Session(ctx context.Context, token, address string) (se ci.Session, renewed bool, err error) {
	digest := secretDigest(token)
	err = s.view(func(t *tx) (err error) {
		se, err = t.liveSession(digest)
		renewed = err == nil && !t.now.Before(se.SeenAt.Add(sessionSlide))
		return err
	})
	if err != nil {
		return ci.Session{}, false, err
	}
	if !renewed {
		return se, false, nil
	}
	var moved ci.Session
	err = s.update(ctx, func(t *tx) (err error) {
		if moved, err = t.liveSession(digest); err != nil {
			return err
		}
		role := moved.Role
		moved.Role, moved.Address = "", address
		moved.SeenAt, moved.ExpiresAt = ci.At(t.now), ci.At(t.now.Add(SessionLife))
		if err := t.put(bucketSessions, digest, mustJSON(moved)); err != nil {
			return err
		}
		moved.Role = role
		return nil
	})
	switch ci.CodeOf(err) {
	case "":
		return moved, true, nil
	case ci.CodeUnauthenticated: // ended meanwhile
		return ci.Session{}, false, err
	}
	return se, false, nil
}

func (t *tx) liveSession(digest []byte) (ci.Session, error) {
	se, ok, err := t.session(digest)
	if err != nil {
		return se, err
	}
	if !ok || !t.now.Before(se.ExpiresAt.Time) {
		return se, errNotSignedIn()
	}
	if se.Role, ok, err = t.roleOf(se.User); err == nil && !ok {
		err = errNotSignedIn()
	}
	return se, err
}

// EndSession signs one browser out. Ending what is not there is no error.
func (s *Store) EndSession(ctx context.Context, token string) error {
	digest := secretDigest(token)
	return s.update(ctx, func(t *tx) error {
		se, ok, err := t.session(digest)
		if err != nil || !ok {
			return err
		}
		return t.dropSession(se.User, digest)
	})
}

// EndSessionsOf signs a user out everywhere, unused login links included, and
// returns how many sessions there were.
func (s *Store) EndSessionsOf(ctx context.Context, user string, by ci.By) (n int, err error) {
	err = s.update(ctx, func(t *tx) (err error) {
		if n, err = t.endSessionsOf(user); err != nil {
			return err
		}
		if err := t.dropLinksOf(user); err != nil {
			return err
		}
		return t.decide(ci.Decision{Kind: ci.DecisionSignedOut, User: user, By: by, Reason: "the user " + user + " signed out everywhere" + endedSessions(n)})
	})
	return n, err
}

func (t *tx) endSessionsOf(user string) (n int, err error) {
	digests := t.sessionsOf(user)
	for _, d := range digests {
		if err := t.dropSession(user, d); err != nil {
			return 0, err
		}
	}
	return len(digests), nil
}
