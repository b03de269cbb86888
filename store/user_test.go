package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Any text is a hash to the store.
const hashA, hashB = "$argon2id$a", "$argon2id$b"

func mustAddUser(t must, s *store.Store, name string, role ci.Role) {
	t.Helper()
	if err := s.AddUser(context.Background(), name, role, hashA, operator); err != nil {
		t.Fatalf("add user %s: %v", name, err)
	}
}

func mustSignIn(t must, s *store.Store, user string) (token string) {
	t.Helper()
	token, err := s.CreateSession(context.Background(), store.NewSession{User: user, Address: "192.0.2.1", PasswordHash: hashA})
	if err != nil {
		t.Fatalf("sign in %s: %v", user, err)
	}
	return token
}

func signedIn(t must, s *store.Store, token string) bool {
	t.Helper()
	_, _, err := s.Session(context.Background(), token, "192.0.2.1")
	if err != nil && ci.CodeOf(err) != ci.CodeUnauthenticated {
		t.Fatalf("session: %v", err)
	}
	return err == nil
}

func mustLink(t must, s *store.Store, user string) (value string) {
	t.Helper()
	value, _, err := s.CreateLoginLink(context.Background(), user, operator)
	if err != nil {
		t.Fatalf("login link for %q: %v", user, err)
	}
	return value
}

func TestUsers(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	list, err := s.Users()
	mustNil(t, err)
	if list == nil || len(list) != 0 {
		t.Fatalf("a new store has users %v", list)
	}
	mustAddUser(t, s, "mona", ci.Operator)
	mustAddUser(t, s, "hubot@acme", ci.Viewer)
	mustAddUser(t, s, "admin", ci.Admin)
	list, err = s.Users()
	mustNil(t, err)
	at := ci.At(c.now())
	if diff := cmp.Diff([]ci.User{{Name: "admin", Role: ci.Admin, CreatedAt: at}, {Name: "hubot@acme", Role: ci.Viewer, CreatedAt: at}, {Name: "mona", Role: ci.Operator, CreatedAt: at}}, list); diff != "" {
		t.Fatal(diff)
	}
	u, hash, err := s.User("mona")
	mustNil(t, err)
	if u.Role != ci.Operator || hash != hashA {
		t.Fatalf("user %+v, hash %q", u, hash)
	}
	mustNil(t, s.RemoveUser(t.Context(), "mona", operator))
	_, _, err = s.User("mona")
	mustCode(t, err, ci.CodeNotFound, "docket user list")
}

func TestUsers_Refusals(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAddUser(t, s, "mona", ci.Operator)
	for name, tt := range map[string]struct {
		do   func() error
		want ci.Code
	}{
		"a name that is taken": {func() error { return s.AddUser(t.Context(), "mona", ci.Viewer, hashB, operator) }, ci.CodeConflict},
		"no name":              {func() error { return s.AddUser(t.Context(), "", ci.Viewer, hashB, operator) }, ci.CodeInvalid},
		"a name with a NUL":    {func() error { return s.AddUser(t.Context(), "a\x00b", ci.Viewer, hashB, operator) }, ci.CodeInvalid},
		"a role of no one":     {func() error { return s.AddUser(t.Context(), "x", "king", hashB, operator) }, ci.CodeInvalid},
		"a lesser admin":       {func() error { return s.AddUser(t.Context(), "admin", ci.Operator, hashB, operator) }, ci.CodeInvalid},
		"another role of none": {func() error { return s.SetRole(t.Context(), "mona", "king", operator) }, ci.CodeInvalid},
		"removing a stranger":  {func() error { return s.RemoveUser(t.Context(), "x", operator) }, ci.CodeNotFound},
		"a stranger's word":    {func() error { return s.SetPassword(t.Context(), "x", hashB, operator) }, ci.CodeNotFound},
		"a stranger's role":    {func() error { return s.SetRole(t.Context(), "x", ci.Admin, operator) }, ci.CodeNotFound},
		"a stranger's link":    {func() error { _, _, err := s.CreateLoginLink(t.Context(), "x", operator); return err }, ci.CodeNotFound},
	} {
		mustCode(t, tt.do(), tt.want)
		if u, hash, err := s.User("mona"); err != nil || u.Role != ci.Operator || hash != hashA {
			t.Errorf("%s: mona is %+v %q, %v", name, u, hash, err)
		}
	}
	if d := decisionsOf(t, s, ""); len(d) != 1 {
		t.Errorf("refusals were written down: %+v", d)
	}
}

// Ensure that whatever changes who a user is ends what he got in with before,
// leaves others alone, and is in the audit trail.
func TestUsers_AChangeSignsOut(t *testing.T) {
	for name, tt := range map[string]struct {
		do           func(s *store.Store) error
		kind, reason string
		keeps        bool
	}{
		"removed":           {func(s *store.Store) error { return s.RemoveUser(t.Context(), "mona", operator) }, ci.DecisionUserRemoved, "the user mona removed; 2 sessions ended", false},
		"another password":  {func(s *store.Store) error { return s.SetPassword(t.Context(), "mona", hashB, operator) }, ci.DecisionPasswordChanged, "the user mona got a new password; 2 sessions ended", false},
		"another role":      {func(s *store.Store) error { return s.SetRole(t.Context(), "mona", ci.Viewer, operator) }, ci.DecisionRoleChanged, "the user mona was operator and is now viewer; 2 sessions ended", false},
		"out everywhere":    {func(s *store.Store) error { _, err := s.EndSessionsOf(t.Context(), "mona", operator); return err }, ci.DecisionSignedOut, "the user mona signed out everywhere; 2 sessions ended", false},
		"the same role":     {func(s *store.Store) error { return s.SetRole(t.Context(), "mona", ci.Operator, operator) }, ci.DecisionLoginLink, "", true},
		"another's removal": {func(s *store.Store) error { return s.RemoveUser(t.Context(), "mon", operator) }, ci.DecisionUserRemoved, "the user mon removed", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.MustOpen(t)
			for _, u := range []string{"mona", "mon", "monalisa"} {
				mustAddUser(t, s, u, ci.Operator)
			}
			mine := []string{mustSignIn(t, s, "mona"), mustSignIn(t, s, "mona")}
			other, link := mustSignIn(t, s, "monalisa"), mustLink(t, s, "mona")
			mustNil(t, tt.do(s))
			for _, token := range mine {
				if got := signedIn(t, s, token); got != tt.keeps {
					t.Errorf("the session holds: %t", got)
				}
			}
			if _, err := s.LoginLink(link); (err == nil) != tt.keeps {
				t.Errorf("the login link: %v", err)
			}
			if !signedIn(t, s, other) {
				t.Error("somebody else was signed out")
			}
			d := decisionsOf(t, s, "")[0]
			if d.Kind != tt.kind || tt.reason != "" && d.Reason != tt.reason || d.By != operator || d.User == "" {
				t.Errorf("the decision: %+v", d)
			}
		})
	}
}

// Ensure that a password that was changed between its check and the session
// signs nobody in.
func TestCreateSession_TheCheckedPasswordIsTheUsers(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAddUser(t, s, "mona", ci.Operator)
	mustNil(t, s.SetPassword(t.Context(), "mona", hashB, operator))
	for _, n := range []store.NewSession{{User: "mona", PasswordHash: hashA}, {User: "mona"}, {User: "gone", PasswordHash: hashA}, {User: "admin"}} {
		if _, err := s.CreateSession(t.Context(), n); ci.CodeOf(err) != ci.CodeUnauthenticated {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

// Ensure that a session lasts 30 days after its last use, and that its use is
// written down no more than once an hour.
func TestSession_Slides(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustAddUser(t, s, "mona", ci.Operator)
	token := mustSignIn(t, s, "mona")
	if _, _, err := s.Session(t.Context(), token+"x", ""); ci.CodeOf(err) != ci.CodeUnauthenticated {
		t.Fatalf("a token that is none: %v", err)
	}
	began := ci.At(c.now())
	use := func(after time.Duration, address string, renewed bool, want ci.Session) {
		t.Helper()
		c.add(after)
		se, moved, err := s.Session(t.Context(), token, address)
		mustNil(t, err)
		if diff := cmp.Diff(want, se); diff != "" || moved != renewed {
			t.Fatalf("renewed %t, %s", moved, diff)
		}
	}
	is := func(seen time.Duration, address string) ci.Session {
		at := began.Add(seen)
		return ci.Session{User: "mona", Role: ci.Operator, CreatedAt: began, SeenAt: ci.At(at), ExpiresAt: ci.At(at.Add(store.SessionLife)), Address: address}
	}
	use(time.Hour-time.Millisecond, "192.0.2.2", false, is(0, "192.0.2.1"))
	use(time.Millisecond, "192.0.2.2", true, is(time.Hour, "192.0.2.2"))
	use(0, "192.0.2.3", false, is(time.Hour, "192.0.2.2"))
	use(store.SessionLife-time.Millisecond, "192.0.2.3", true, is(time.Hour+store.SessionLife-time.Millisecond, "192.0.2.3"))
	c.add(store.SessionLife)
	if signedIn(t, s, token) {
		t.Fatal("it lasts for ever")
	}
}

// Ensure that a session holds where its use cannot be written down.
func TestSession_HoldsOnAStoreThatTakesNoWrites(t *testing.T) {
	c := newClock()
	var full bool
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now, Failpoint: func(string) error {
		if full {
			return errors.New("no space")
		}
		return nil
	}})
	mustAddUser(t, s, "mona", ci.Operator)
	token := mustSignIn(t, s, "mona")
	c.add(2 * time.Hour)
	full = true
	se, renewed, err := s.Session(t.Context(), token, "")
	mustNil(t, err)
	if renewed || se.Role != ci.Operator {
		t.Fatalf("renewed %t, %+v", renewed, se)
	}
	full = false
}

func TestEndSession_EndsThatOne(t *testing.T) {
	s := storetest.MustOpen(t)
	mustAddUser(t, s, "mona", ci.Operator)
	one, two := mustSignIn(t, s, "mona"), mustSignIn(t, s, "mona")
	for range 2 {
		mustNil(t, s.EndSession(t.Context(), one))
	}
	if signedIn(t, s, one) || !signedIn(t, s, two) {
		t.Fatal("the wrong one ended")
	}
}

// Ensure that a user's sessions are bounded: the one not used for longest
// gives way to a new one.
func TestCreateSession_TheOldestGivesWay(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustAddUser(t, s, "mona", ci.Operator)
	var tokens []string
	for range store.MaxSessions {
		tokens = append(tokens, mustSignIn(t, s, "mona"))
		c.add(2 * time.Hour)
	}
	if !signedIn(t, s, tokens[0]) { // used just now
		t.Fatal("the first is gone too early")
	}
	mustSignIn(t, s, "mona")
	if !signedIn(t, s, tokens[0]) || signedIn(t, s, tokens[1]) || !signedIn(t, s, tokens[2]) {
		t.Fatal("another than the one not used for longest gave way")
	}
}

// Ensure that sessions nobody uses any more leave the store as new ones come.
func TestCreateSession_ExpiredOnesGo(t *testing.T) {
	c := newClock()
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	mustAddUser(t, s, "gone", ci.Viewer)
	mustAddUser(t, s, "mona", ci.Operator)
	for range 40 {
		mustSignIn(t, s, "gone")
	}
	c.add(store.SessionLife)
	const fresh = 20
	for range fresh {
		mustSignIn(t, s, "mona")
	}
	wantSessions(t, s, path, fresh)
}

// Ensure that a new session looks at all the others where they are few,
// wherever its digest lies among theirs.
func TestCreateSession_FewExpiredOnesGoAtOnce(t *testing.T) {
	c := newClock()
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	mustAddUser(t, s, "gone", ci.Viewer)
	mustAddUser(t, s, "mona", ci.Operator)
	for range 15 {
		mustSignIn(t, s, "gone")
	}
	c.add(store.SessionLife)
	mustSignIn(t, s, "mona")
	wantSessions(t, s, path, 1)
}

// keysIn counts the keys of a table.
func keysIn(t *testing.T, tx *bolt.Tx, name string) (n int) {
	t.Helper()
	mustNil(t, store.TableOf(tx, name).ForEach(func(_, _ []byte) error { n++; return nil }))
	return n
}

// wantSessions closes a store and counts the sessions in its file.
func wantSessions(t *testing.T, s *store.Store, path string, want int) {
	t.Helper()
	mustNil(t, s.Close())
	surgery(t, path, func(tx *bolt.Tx) error {
		for _, name := range []string{"sessions", "user_sessions"} {
			if n := keysIn(t, tx, name); n != want {
				t.Errorf("%d in %s, want %d", n, name, want)
			}
		}
		return nil
	})
}

// Ensure that a link signs in once, within 15 minutes, and that looking at it
// does not use it up.
func TestLoginLink(t *testing.T) {
	c := newClock()
	s := storetest.MustOpenAt(t, dbPath(t), store.Options{Now: c.now})
	mustAddUser(t, s, "mona", ci.Viewer)
	for _, tt := range []struct {
		user, is string
		role     ci.Role
	}{{"mona", "mona", ci.Viewer}, {"", "admin", ci.Admin}, {"admin", "admin", ci.Admin}} {
		value := mustLink(t, s, tt.user)
		c.add(store.LoginLinkLife - time.Millisecond)
		for range 2 {
			l, err := s.LoginLink(value)
			mustNil(t, err)
			if l.User != tt.is || l.By != operator {
				t.Fatalf("link %+v", l)
			}
		}
		token, _, err := s.UseLoginLink(t.Context(), value, "192.0.2.1")
		mustNil(t, err)
		se, _, err := s.Session(t.Context(), token, "")
		mustNil(t, err)
		if se.User != tt.is || se.Role != tt.role {
			t.Fatalf("signed in as %+v", se)
		}
		_, _, err = s.UseLoginLink(t.Context(), value, "192.0.2.1")
		mustCode(t, err, ci.CodeUnauthenticated, "docket login-link")
	}
	d := decisionsOf(t, s, "")[0]
	if d.Kind != ci.DecisionLoginLink || d.User != "admin" || d.By != operator {
		t.Fatalf("the decision: %+v", d)
	}
	late := mustLink(t, s, "mona")
	c.add(store.LoginLinkLife)
	_, err := s.LoginLink(late)
	mustCode(t, err, ci.CodeUnauthenticated)
	_, _, err = s.UseLoginLink(t.Context(), late, "")
	mustCode(t, err, ci.CodeUnauthenticated)
}

// Ensure that of many who use one link at once, one gets in.
func TestLoginLink_OneGetsIn(t *testing.T) {
	s := storetest.MustOpen(t)
	value := mustLink(t, s, "")
	var in sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 16 {
		in.Go(func() {
			if _, _, err := s.UseLoginLink(t.Context(), value, ""); err == nil {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	in.Wait()
	if n != 1 {
		t.Fatalf("%d got in", n)
	}
}

// Ensure that links nobody used leave the store as new ones come.
func TestCreateLoginLink_ExpiredOnesGo(t *testing.T) {
	c := newClock()
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	for range 5 {
		mustLink(t, s, "")
	}
	c.add(store.LoginLinkLife)
	mustLink(t, s, "")
	mustNil(t, s.Close())
	surgery(t, path, func(tx *bolt.Tx) error {
		if n := keysIn(t, tx, "login_links"); n != 1 {
			t.Errorf("%d links", n)
		}
		return nil
	})
}

// Ensure that no password, token or link can be read from the file.
func TestUsers_NothingInTheFileOpensADoor(t *testing.T) {
	path := dbPath(t)
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustAddUser(t, s, "mona", ci.Operator)
	secrets := []string{mustSignIn(t, s, "mona"), mustLink(t, s, "mona")}
	mustNil(t, s.Close())
	file := string(mustRead(t, path))
	for _, secret := range secrets {
		if len(secret) < 43 || strings.Contains(file, secret) {
			t.Errorf("%q is in the file, or short", secret)
		}
	}
}

// Ensure that verify notices what is wrong with who may get in.
func TestVerify_Users(t *testing.T) {
	for name, tt := range map[string]struct {
		cut  func(c cut)
		want string
	}{
		"a user under another name":       {func(c cut) { c.move("users", "mona", func([]byte) []byte { return []byte("lisa") }) }, `user "lisa"`},
		"a role that is none":             {func(c cut) { c.replace("users", "mona", "operator", "overlord") }, `user "mona"`},
		"no password":                     {func(c cut) { c.replace("users", "mona", hashA, "") }, `user "mona"`},
		"a user who cannot be read":       {func(c cut) { c.put("users", []byte("x"), []byte("{")) }, `user "x"`},
		"a session without its index":     {func(c cut) { c.drop("user_sessions", "mona") }, "not filed under the user"},
		"an index without its session":    {func(c cut) { c.drop("sessions", "mona") }, "has no such session"},
		"a session of another user":       {func(c cut) { c.replace("sessions", "mona", "mona", "lisa") }, "has no such session"},
		"a session of nobody":             {func(c cut) { c.drop("users", "mona") }, `there is no user "mona"`},
		"a session that never ends":       {func(c cut) { c.replace("sessions", "mona", `"expires_at":"2026`, `"expires_at":"3026`) }, "expires at 3026"},
		"a session that cannot be read":   {func(c cut) { c.put("sessions", []byte("x"), []byte("{")) }, "session 78"},
		"a login link of nobody":          {func(c cut) { c.replace("login_links", `"user":"mona"`, `"user":"mona"`, `"user":"lisa"`) }, `there is no user "lisa"`},
		"a login link that is not a link": {func(c cut) { c.put("login_links", []byte("x"), []byte("{")) }, "login link 78"},
	} {
		t.Run(name, func(t *testing.T) {
			path := dbPath(t)
			s := storetest.MustOpenAt(t, path, store.Options{Now: newClock().now})
			mustAddUser(t, s, "mona", ci.Operator)
			mustSignIn(t, s, "mona")
			mustLink(t, s, "mona")
			mustLink(t, s, "")
			mustNil(t, s.Close())
			broken := path + ".broken"
			copyFile(t, path, broken)
			surgery(t, broken, func(tx *bolt.Tx) error { tt.cut(cut{t, tx}); return nil })
			list, err := store.VerifyFile(t.Context(), broken)
			mustNil(t, err)
			if !strings.Contains(strings.Join(list, "\n"), tt.want) {
				t.Errorf("want %q in %q", tt.want, list)
			}
		})
	}
}
