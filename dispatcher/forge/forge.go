// Package forge is docket's way to GitHub's API: it signs in as a GitHub App
// or with a configured token, keeps the tokens of installations for as long as
// they are good, and tells a limit, a clock that is off and a refusal apart.
//
// No token leaves it but in a request's header and as a clone's credential;
// what GitHub says is handed on with the token masked.
package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// maxAnswer is how much of one answer is read, in bytes: a page of a hundred
// pull requests is some 3 MB.
const maxAnswer = 32 << 20

// callTimeout bounds one call, and the sign-in that it needs, where the
// caller's context has no earlier end.
const callTimeout = 30 * time.Second

// Options are what a Forge works with. Config is required.
type Options struct {
	Config  func() *ci.Config // the configuration in force; asked at every call
	Client  *http.Client      // its Transport is used; redirects are never followed
	Now     func() time.Time  // default time.Now
	Version string            // of docket, for the User-Agent, default "dev"
}

// Forge calls GitHub for every configured integration. Its methods may be
// called at the same time.
type Forge struct {
	config func() *ci.Config
	client *http.Client
	now    func() time.Time
	agent  string

	mu     sync.Mutex
	apps   map[appKey]*app
	tokens map[tokenKey]*slot
	found  map[string]foundInstallation // by App and repository
}

// New returns a Forge that has called nothing yet.
func New(o Options) *Forge {
	f := &Forge{
		config: o.Config, client: Outward(o.Client, maxAnswer), now: o.Now, agent: "docket/" + o.Version,
		apps: map[appKey]*app{}, tokens: map[tokenKey]*slot{}, found: map[string]foundInstallation{},
	}
	if f.now == nil {
		f.now = time.Now
	}
	if o.Version == "" {
		f.agent = "docket/dev"
	}
	return f
}

// Close lets go of connections that are kept open.
func (f *Forge) Close() { f.client.CloseIdleConnections() }

// Access says on whose behalf and for what GitHub is called.
type Access struct {
	Integration string
	// Installation of the App; 0: the only configured one, else the
	// repository's as GitHub tells it. Without an App it has no meaning.
	Installation int64
	Repository   string // owner/name
	RepositoryID int64  // 0: not known
	Need         Need
	// Alone asks for a token that is good for this repository and no other.
	Alone bool
}

// Do makes a call with the token that an access needs. call is repeated once
// where GitHub does not accept a token of an installation any more, so it must
// make its request anew each time.
//
// Errors are those of call, which come with the answer wherever there was one;
// before it was called they are the package's own or the network's.
func (f *Forge) Do(ctx context.Context, a Access, call func(context.Context, *github.Client) (*github.Response, error)) (*github.Response, error) {
	in, err := f.integration(a.Integration)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for again := false; ; again = true {
		tok, err := f.token(ctx, in, a)
		if err != nil {
			return nil, err
		}
		c, err := f.clientFor(in, tok.value)
		if err != nil {
			return nil, err
		}
		resp, err := call(ctx, c)
		if resp == nil || resp.Response == nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusUnauthorized && tok.slot != nil && !again {
			tok.slot.forget(tok.value)
			continue
		}
		if err != nil {
			hideIn(resp.Response, tok.value)
		}
		return resp, err
	}
}

// integration returns a configured integration of GitHub.
func (f *Forge) integration(name string) (*ci.Integration, error) {
	in := f.config().Integration(name)
	switch {
	case in == nil:
		return nil, ci.Errorf(ci.CodeNotFound, "the integration %s is not configured any more; add it again", name)
	case in.Provider == ci.ProviderGitea:
		return nil, ci.Errorf(ci.CodeInvalid, "the integration %s is not one of GitHub", name)
	}
	return in, nil
}

// clientFor makes a client for one call. A kept one would refuse calls by
// itself from what it remembers of rate limits.
func (f *Forge) clientFor(in *ci.Integration, token string) (*github.Client, error) {
	c := github.NewClient(f.client)
	if token != "" {
		c = c.WithAuthToken(token)
	}
	return c, f.aim(c, in)
}

// aim points a client at the integration's API.
func (f *Forge) aim(c *github.Client, in *ci.Integration) error {
	base, err := url.Parse(in.APIURL)
	if err != nil || base.Host == "" {
		return ci.Errorf(ci.CodeInvalid, "the api_url of the integration %s is not a URL; correct it", in.Name)
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	c.BaseURL, c.UserAgent = base, f.agent
	return nil
}

// splitRepository takes owner/name apart. Both become parts of a path, so
// they are what GitHub allows in names and nothing else.
func splitRepository(s string) (owner, repo string, err error) {
	owner, repo, ok := strings.Cut(s, "/")
	if !ok || !isName(owner) || !isName(repo) {
		return "", "", ci.Errorf(ci.CodeInvalid, "%q is not an owner/name of GitHub; correct the project's repository", s)
	}
	return owner, repo, nil
}

func isName(s string) bool {
	if s == "" || s == "." || s == ".." {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

func host(in *ci.Integration) string {
	if u, err := url.Parse(in.APIURL); err == nil && u.Host != "" {
		return u.Host
	}
	return fmt.Sprintf("the API of the integration %s", in.Name)
}
