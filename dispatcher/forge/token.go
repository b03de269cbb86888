package forge

import (
	"context"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// Need is what a call needs to be allowed.
type Need int

// What docket does at GitHub.
const (
	Statuses Need = iota // write commit statuses
	Checks               // write check runs
	Contents             // read the repository: clone it
	Heads                // read branches, tags and pull requests
	Hooks                // read the repository's webhooks and their deliveries
	Again                // have one of them delivered again
)

// permissions are what a token of an installation is asked for: nothing that
// the call does not need.
func (n Need) permissions() *github.InstallationPermissions {
	read, write := github.String("read"), github.String("write")
	p := &github.InstallationPermissions{Metadata: read}
	switch n {
	case Statuses:
		p.Statuses = write
	case Checks:
		p.Checks = write
	case Contents:
		p.Contents = read
	case Heads:
		p.Contents, p.PullRequests = read, read
	case Hooks:
		p.RepositoryHooks = read
	case Again:
		p.RepositoryHooks = write
	}
	return p
}

// When a token is renewed before its end, and until when an old one will do
// where GitHub does not give a new one.
const (
	renewBefore = 5 * time.Minute
	lastUse     = 30 * time.Second
)

// tokenKey is what a token is good for.
type tokenKey struct {
	app          appKey
	installation int64
	need         Need
	repository   string // "" for all of the installation's
	id           int64  // of the repository, 0 if not known
}

// slot holds the token of one key. Who has turn may renew it, so that many
// who find it missing ask for one.
type slot struct {
	turn  chan struct{} // holds one token
	value string
	until time.Time // by docket's clock; zero: none
}

// forget drops a token that GitHub does not accept any more, unless another
// one has taken its place.
func (s *slot) forget(value string) {
	<-s.turn
	if s.value == value {
		s.value, s.until = "", time.Time{}
	}
	s.turn <- struct{}{}
}

// token is what goes into a request's header.
type token struct {
	value string
	slot  *slot // nil for a configured one
}

// token returns the token for an access: the configured one, or the App's for
// the installation.
func (f *Forge) token(ctx context.Context, in *ci.Integration, a Access) (token, error) {
	if in.App == nil {
		if in.Token.IsZero() {
			return token{}, ci.Errorf(ci.CodeForbidden, "the integration %s has neither a token nor an App; give it one of them", in.Name)
		}
		return token{value: in.Token.Reveal()}, nil
	}
	app, err := f.app(in)
	if err != nil {
		return token{}, err
	}
	installation, err := f.installation(ctx, in, a)
	if err != nil {
		return token{}, err
	}
	k := tokenKey{app: app.key, installation: installation, need: a.Need}
	if a.Alone {
		k.repository, k.id = a.Repository, a.RepositoryID
	}
	s := f.slot(k)
	value, err := f.fresh(ctx, in, k, s)
	return token{value, s}, err
}

func (f *Forge) slot(k tokenKey) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.tokens[k]; s != nil {
		return s
	}
	for old := range f.tokens { // of a key that is not in force any more
		if old.app.integration == k.app.integration && old.app != k.app {
			delete(f.tokens, old)
		}
	}
	s := &slot{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	f.tokens[k] = s
	return s
}

// fresh returns the slot's token, renewed if its end is near. Where that
// fails and the old one is still good, that one is returned.
func (f *Forge) fresh(ctx context.Context, in *ci.Integration, k tokenKey, s *slot) (string, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	left := s.until.Sub(f.now())
	if s.value != "" && left > renewBefore {
		return s.value, nil
	}
	value, until, err := f.mint(ctx, in, k)
	switch {
	case err == nil:
		s.value, s.until = value, until
	case s.value != "" && left > lastUse:
		return s.value, nil
	}
	return value, err
}

// mint asks GitHub for a new token of an installation. Its end is told by
// GitHub's clock and returned by docket's.
//
// Errors: *ClockError, *AnswerError, or the network's.
func (f *Forge) mint(ctx context.Context, in *ci.Integration, k tokenKey) (value string, until time.Time, err error) {
	opts := &github.InstallationTokenOptions{Permissions: k.need.permissions()}
	switch {
	case k.id != 0:
		opts.RepositoryIDs = []int64{k.id}
	case k.repository != "":
		_, name, err := splitRepository(k.repository)
		if err != nil {
			return "", time.Time{}, err
		}
		opts.Repositories = []string{name}
	}
	var t *github.InstallationToken
	resp, err := f.asApp(ctx, in, func(ctx context.Context, c *github.Client) (r *github.Response, err error) {
		t, r, err = c.Apps.CreateInstallationToken(ctx, k.installation, opts)
		return r, err
	})
	if err != nil {
		return "", time.Time{}, f.answerError(in, k.installation, resp, err)
	}
	if t.GetToken() == "" || t.ExpiresAt == nil {
		return "", time.Time{}, ci.Errorf(ci.CodeUnavailable, "%s gave no token for the installation %d", host(in), k.installation)
	}
	now := f.now()
	return t.GetToken(), now.Add(t.GetExpiresAt().Sub(sentAt(resp.Header, now))), nil
}
