package store

import (
	"context"
	"fmt"

	"docket/store/ci"
)

// user is a user's record.
type user struct {
	ci.User
	Hash string `json:"hash"` // of the password, with its parameters; the store does not look into it
}

func noUser(name string) error {
	return ci.Errorf(ci.CodeNotFound, "no user is named %q; `docket user list` shows those there are", name)
}

func (t *tx) user(name string) (u user, ok bool, err error) {
	v := t.get(bucketUsers, []byte(name))
	if v == nil {
		return u, false, nil
	}
	u, err = decodeJSON[user]("user", v)
	return u, err == nil, err
}

// roleOf returns what somebody may do who is signed in, and whether he still
// may sign in at all.
func (t *tx) roleOf(name string) (role ci.Role, ok bool, err error) {
	u, ok, err := t.user(name)
	if err != nil || ok {
		return u.Role, ok, err
	}
	return ci.Admin, name == ci.AdminUser, nil
}

// AddUser adds somebody who signs in with a password. CodeConflict if the
// name is taken, CodeInvalid for a bad name or role.
func (s *Store) AddUser(ctx context.Context, name string, role ci.Role, passwordHash string, by ci.By) error {
	if !tokenName.MatchString(name) {
		return ci.Errorf(ci.CodeInvalid, "user name %q: use 1 to 63 letters, digits, dots, dashes, underscores or @, beginning with a letter or digit", name)
	}
	if err := checkUserRole(name, role); err != nil {
		return err
	}
	return s.update(ctx, func(t *tx) error {
		if t.get(bucketUsers, []byte(name)) != nil {
			return ci.Errorf(ci.CodeConflict, "there is a user named %q already; remove that one first or choose another name", name)
		}
		u := user{ci.User{Name: name, Role: role, CreatedAt: ci.At(t.now)}, passwordHash}
		if err := t.put(bucketUsers, []byte(name), mustJSON(u)); err != nil {
			return err
		}
		// A login link may have signed somebody in under this name before.
		return t.changedUser(name, ci.DecisionUserAdded, "added as "+string(role), by)
	})
}

// checkUserRole also keeps AdminUser what it is: were a user of that name less
// than an admin, a login link for nobody in particular would open less than it says.
func checkUserRole(name string, role ci.Role) error {
	if !role.Valid() {
		return ci.Errorf(ci.CodeInvalid, "role %q: use viewer, operator or admin", role)
	}
	if name == ci.AdminUser && role != ci.Admin {
		return ci.Errorf(ci.CodeInvalid, "the user %q is who signs in with a login link made for nobody in particular, and so an admin; choose another name for a %s", name, role)
	}
	return nil
}

// Users lists users by name.
func (s *Store) Users() (list []ci.User, err error) {
	list = []ci.User{}
	err = s.view(func(t *tx) error {
		return t.bucket(bucketUsers).ForEach(func(_, v []byte) error {
			u, err := decodeJSON[user]("user", v)
			list = append(list, u.User)
			return err
		})
	})
	return list, err
}

// User returns a user and the hash of the password, or CodeNotFound.
func (s *Store) User(name string) (u ci.User, passwordHash string, err error) {
	err = s.view(func(t *tx) error {
		rec, ok, err := t.user(name)
		if err == nil && !ok {
			err = noUser(name)
		}
		u, passwordHash = rec.User, rec.Hash
		return err
	})
	return u, passwordHash, err
}

// RemoveUser removes a user, who is signed out everywhere, or returns CodeNotFound.
func (s *Store) RemoveUser(ctx context.Context, name string, by ci.By) error {
	return s.update(ctx, func(t *tx) error {
		if t.get(bucketUsers, []byte(name)) == nil {
			return noUser(name)
		}
		if err := t.delete(bucketUsers, []byte(name)); err != nil {
			return err
		}
		return t.changedUser(name, ci.DecisionUserRemoved, "removed", by)
	})
}

// SetPassword gives a user another password, which signs the user out
// everywhere, or returns CodeNotFound.
func (s *Store) SetPassword(ctx context.Context, name, passwordHash string, by ci.By) error {
	return s.changeUser(ctx, name, func(u *user) (kind, reason string) {
		u.Hash = passwordHash
		return ci.DecisionPasswordChanged, "got a new password"
	}, by)
}

// SetRole gives a user another role, which signs the user out everywhere. The
// same role again changes nothing. CodeNotFound, CodeInvalid for a bad role.
func (s *Store) SetRole(ctx context.Context, name string, role ci.Role, by ci.By) error {
	if err := checkUserRole(name, role); err != nil {
		return err
	}
	return s.changeUser(ctx, name, func(u *user) (kind, reason string) {
		if u.Role == role {
			return "", ""
		}
		reason = "was " + string(u.Role) + " and is now " + string(role)
		u.Role = role
		return ci.DecisionRoleChanged, reason
	}, by)
}

// changeUser writes a user back with the decision that change names, or
// leaves all as it is when it names none.
func (s *Store) changeUser(ctx context.Context, name string, change func(*user) (kind, reason string), by ci.By) error {
	return s.update(ctx, func(t *tx) error {
		u, ok, err := t.user(name)
		if err != nil {
			return err
		}
		if !ok {
			return noUser(name)
		}
		kind, reason := change(&u)
		if kind == "" {
			return nil
		}
		if err := t.put(bucketUsers, []byte(name), mustJSON(u)); err != nil {
			return err
		}
		return t.changedUser(name, kind, reason, by)
	})
}

// changedUser ends what a user could get in with before, and writes down why.
func (t *tx) changedUser(name, kind, reason string, by ci.By) error {
	n, err := t.endSessionsOf(name)
	if err != nil {
		return err
	}
	if err := t.dropLinksOf(name); err != nil {
		return err
	}
	return t.decide(ci.Decision{Kind: kind, User: name, By: by, Reason: "the user " + name + " " + reason + endedSessions(n)})
}

func endedSessions(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; one session ended"
	}
	return fmt.Sprintf("; %d sessions ended", n)
}
