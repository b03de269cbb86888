package runner

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// credential is what a git command may sign in with at the project's remote;
// its zero value is none.
//
// It reaches git as a file in memory on descriptor 3, which git's credential
// helper reads when the remote's own host asks. No argument, no variable and no
// file holds it, so nothing of it is left when the command has ended; another
// host, which a redirect or a submodule leads to, is never told.
type credential struct{ username, secret string }

// credentialFD is where a command finds its credential.
const credentialFD = 3

// askHelper answers git from descriptor 3; what git would have kept or
// forgotten is no matter of it.
var askHelper = fmt.Sprintf(`!f() { test "$1" = get && cat /proc/self/fd/%d; }; f`, credentialFD)

// env tells git to ask for the credential at the remote's host alone.
func (c credential) env(rem remote) []string {
	u, err := url.Parse(rem.url)
	if c.secret == "" || err != nil {
		return nil
	}
	return []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential." + u.Scheme + "://" + u.Host + ".helper", "GIT_CONFIG_VALUE_0=" + askHelper,
	}
}

// file returns a file in memory that says it in git's words; nil for none.
func (c credential) file() (*os.File, error) {
	if c.secret == "" {
		return nil, nil
	}
	if strings.ContainsAny(c.username+c.secret, "\n\r\x00") {
		return nil, errors.New("the credential for the remote has more than one line")
	}
	fd, err := unix.MemfdCreate("credential", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "credential")
	if _, err := fmt.Fprintf(f, "username=%s\npassword=%s\n", c.username, c.secret); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// signIn asks for a credential for the remote. refused is one that the remote
// did not accept, "" for none.
func (g *git) signIn(ctx context.Context, refused string) (c credential, err error) {
	if g.r.credential == nil || g.remote.protocol != "https" && g.remote.protocol != "http" || g.remote.password != "" {
		return c, nil
	}
	c.username, c.secret, err = g.r.credential(ctx, g.remote.url, refused)
	if err != nil {
		return credential{}, ci.Wrap(ci.CodeUnavailable, err, "there is no credential to fetch from %s with: %v", g.remote.shown, err)
	}
	g.masks.add(c.secret)
	return c, nil
}

// with returns the same git with a credential.
func (g *git) with(c credential) *git {
	signed := *g
	signed.cred = c
	return &signed
}

// remotely is run for a command that talks to the project's remote. It signs
// in; where the remote does not accept that any more, once more with a new
// credential. Where none is to be had it tries without: the repository may be
// one that everybody may read.
func (g *git) remotely(ctx context.Context, dir string, args ...string) ([]byte, error) {
	c, none := g.signIn(ctx, "")
	out, err := g.with(c).run(ctx, dir, args...)
	if c.secret != "" && faultOf(err) == faultRefused {
		again, e := g.signIn(ctx, c.secret)
		if e == nil && again != c {
			out, err = g.with(again).run(ctx, dir, args...)
		}
	}
	if f := faultOf(err); none != nil && (f == faultRefused || f == faultMissing) {
		return nil, none
	}
	return out, err
}
