package server_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"docket/server"
	"docket/store/ci"
	"docket/store/storetest"
)

func matches(t *testing.T, hash, password string) (bool, error) {
	t.Helper()
	return server.New(server.Options{Store: storetest.MustOpen(t), Pages: renderer()}).Matches(t.Context(), hash, password)
}

// Ensure that a hash says how it was made, never twice the same, and holds
// for its password alone.
func TestHashPassword(t *testing.T) {
	hash, err := server.HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=47104,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(hash) {
		t.Errorf("the hash %q", hash)
	}
	cheap := server.HashCheaply(password)
	if other := server.HashCheaply(password); other == cheap {
		t.Error("two hashes are the same")
	}
	for _, hash := range []string{hash, cheap} { // of any cost
		for try, want := range map[string]bool{password: true, password + "x": false} {
			if ok, err := matches(t, hash, try); err != nil || ok != want {
				t.Errorf("%q with %q: %t, %v", try, hash, ok, err)
			}
		}
	}
}

// Ensure that a hash made by argon2's reference implementation holds:
// echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1, from its test.c.
func TestMatches_AHashOfTheReferenceImplementation(t *testing.T) {
	const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := matches(t, hash, "password"); err != nil || !ok {
		t.Errorf("%t, %v", ok, err)
	}
}

func TestMatches_HashesThatCannotBeRead(t *testing.T) {
	good := server.HashCheaply(password)
	for name, hash := range map[string]string{
		"not a hash": "x", "another kind": strings.Replace(good, "argon2id", "argon2i", 1), "another version": strings.Replace(good, "v=19", "v=16", 1),
		"no memory": strings.Replace(good, "m=64", "m=x", 1), "absurd memory": strings.Replace(good, "m=64", "m=4000000000", 1),
		"no passes": strings.Replace(good, "t=1", "t=0", 1), "absurd passes": strings.Replace(good, "t=1", "t=100000", 1),
		"no lanes": strings.Replace(good, "p=1", "p=0", 1), "cut short": good[:len(good)-4], "bad base64": good[:len(good)-1] + "!",
	} {
		if ok, err := matches(t, hash, password); ok || err == nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

// Ensure that who leaves while he waits is not waited for, and leaves his place.
func TestMatches_EndsWithItsRequest(t *testing.T) {
	p := newPages(t)
	started, release := make(chan struct{}), make(chan struct{})
	p.server.SetPasswordWork(func(server.PasswordWork) { started <- struct{}{}; <-release })
	done := make(chan int, server.Workers)
	for range server.Workers {
		go func() { done <- p.browser().login("viewer", password).status }()
		<-started
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range server.Workers + server.Waiters + 1 {
		ok, err := p.server.Matches(ctx, server.HashCheaply(password), password)
		if ok || ci.CodeOf(err) != ci.CodeUnavailable {
			t.Fatalf("%t, %v", ok, err)
		}
	}
	if n := p.server.PasswordsPresent(); n != server.Workers {
		t.Errorf("%d are present, want %d", n, server.Workers)
	}
	close(release)
	for range server.Workers {
		if code := <-done; code != 303 {
			t.Errorf("who had a turn: %d", code)
		}
	}
}

func TestCheckPassword(t *testing.T) {
	for try, want := range map[string]string{
		"": "too short", "elevenchars": "too short", "zwölf Zeichn": "", "twelve chars": "", strings.Repeat("ü", 11): "too short", strings.Repeat("ü", 12): "",
		strings.Repeat("x", 1024): "", strings.Repeat("x", 1025): "too long", "not utf-8 \xff\xff\xff": "UTF-8", "two lines\nof text": "line break", "a\x00b very long": "line break",
	} {
		err := server.CheckPassword(try)
		if want == "" && err != nil || want != "" && (ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(ci.MessageOf(err), want)) {
			t.Errorf("%.20q: %v, want %q", try, err, want)
		}
		if err != nil && try != "" && strings.Contains(err.Error(), try) {
			t.Errorf("the sentence shows the password: %v", err)
		}
	}
}
