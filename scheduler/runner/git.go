package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"docket/store/ci"
)

// gitGrace is how long git has to remove its lock files.
const gitGrace = 5 * time.Second

// maxGitOutput bounds what is kept of a git command's stdout, maxGitError of
// its stderr, in bytes.
const (
	maxGitOutput = 64 << 20
	maxGitError  = 16 << 10
)

// git runs git commands in one session, with a configuration of its own: of
// the host's, the user's and earlier steps' it reads nothing.
type git struct {
	r      *Runner
	s      *session
	w      workspace
	remote remote
	masks  *masker
	cred   credential
	stderr func(p []byte) // for the log; nil where nobody reads along

	lfs       bool     // smudge large files
	protocols []string // that a command may use; nil for the remote's own
}

// gitError is a git command that failed.
type gitError struct {
	command string
	exit    int
	stderr  string // masked
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: exit code %d: %s", e.command, e.exit, e.reason())
}

// reason returns the line of stderr that says most.
func (e *gitError) reason() string {
	var last string
	for line := range strings.SplitSeq(e.stderr, "\n") {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "fatal: "); ok {
			return rest
		}
		if line != "" {
			last = line
		}
	}
	if last == "" {
		return "git said nothing"
	}
	return strings.TrimPrefix(last, "error: ")
}

// configure writes the configuration that git is to read for one remote, one
// mirror and one workspace. The URL is in this file only, so that no command
// line and no .git/config shows its credentials.
func (g *git) configure(mirrors ...string) error {
	var b bytes.Buffer
	section := func(name string, keys ...string) {
		b.WriteString("[" + name + "]\n")
		for i := 0; i < len(keys); i += 2 {
			b.WriteString("\t" + keys[i] + " = " + quoteConfig(keys[i+1]) + "\n")
		}
	}
	section("core", "hooksPath", "/dev/null", "fsmonitor", "false", "autocrlf", "false", "attributesFile", "/dev/null", "excludesFile", "/dev/null")
	section("protocol", "version", "2", "allow", "never") // GIT_ALLOW_PROTOCOL names the few
	section("credential", "helper", "")
	section("gc", "auto", "0") // tidy does it, under the lock
	section("maintenance", "auto", "false")
	section("fetch", "unpackLimit", "1", "recurseSubmodules", "false", "writeCommitGraph", "false")
	section("submodule", "recurse", "false")
	section("advice", "detachedHead", "false")
	section("init", "defaultBranch", "main")
	section("transfer", "credentialsInUrl", "allow")
	section("status", "showUntrackedFiles", "all")
	if g.lfs {
		section(`filter "lfs"`, "smudge", "git-lfs smudge -- %f", "process", "git-lfs filter-process", "clean", "git-lfs clean -- %f", "required", "true")
	} else {
		section(`filter "lfs"`, "smudge", "", "process", "", "clean", "", "required", "false")
	}
	safe := append([]string{g.w.src()}, mirrors...)
	if p := strings.TrimSuffix(g.remote.path, "/"); p != "" {
		safe = append(safe, p, p+"/.git", p+".git", p+".git/.git") // git adds these by itself
	}
	for _, dir := range safe {
		section("safe", "directory", dir)
	}
	section(`remote "`+remoteName+`"`, "url", g.remote.url)
	return os.WriteFile(g.w.gitconfig(), b.Bytes(), 0o600)
}

// remoteName is what docket's own configuration calls the project's remote. A
// workspace's origin is another one, without credentials.
const remoteName = "docket"

// quoteConfig quotes a value for git's configuration file.
func quoteConfig(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v) + `"`
}

// passedOn are the variables of the server's own that git may need to reach a
// remote. Steps get none of them.
var passedOn = []string{
	"SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
}

func (g *git) env() []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = defaultPath
	}
	protocols := g.protocols
	if protocols == nil {
		protocols = []string{g.remote.protocol}
	}
	env := []string{
		"PATH=" + path, "HOME=" + g.w.home(), "TMPDIR=" + g.w.tmp(), "LC_ALL=C", "LANGUAGE=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + g.w.gitconfig(), "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=never",
		"GIT_SSH_COMMAND=ssh -oBatchMode=yes", "GIT_ALLOW_PROTOCOL=" + strings.Join(protocols, ":"),
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_CEILING_DIRECTORIES=" + g.w.dir,
	}
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, g.cred.env(g.remote)...)
}

// run runs git in a directory and returns its stdout. A failure is a
// *gitError, or what ended ctx.
func (g *git) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return g.bounded(ctx, maxGitOutput, dir, args...)
}

func (g *git) bounded(ctx context.Context, limit int, dir string, args ...string) ([]byte, error) {
	var out, stderr bytes.Buffer
	over := false
	secret, err := g.cred.file()
	if err != nil {
		return nil, err
	}
	if secret != nil {
		defer secret.Close()
	}
	e, err := g.s.run(ctx, work{
		command: command{Path: g.r.git, Argv: append([]string{"git"}, args...), Env: g.env(), Dir: dir},
		out: func(p []byte) {
			if out.Len()+len(p) > limit {
				over, p = true, p[:limit-out.Len()]
			}
			out.Write(p)
		},
		err: func(p []byte) {
			if g.stderr != nil {
				g.stderr(p)
			}
			stderr.Write(p[:min(len(p), maxGitError-stderr.Len())])
		},
		extra: secret,
		grace: gitGrace,
	})
	switch {
	case ctx.Err() != nil && (err != nil || e.stopped != ""):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	case e.exit != 0:
		return nil, &gitError{command: args[0], exit: e.exit, stderr: g.masks.text(stderr.String())}
	case over:
		return nil, ci.Errorf(ci.CodeTooLarge, "git %s printed more than %d bytes", args[0], limit)
	}
	return out.Bytes(), nil
}

// fault is a kind of a failed fetch, which decides what is tried next.
type fault int

const (
	faultOther   fault = iota // perhaps temporary
	faultGone                 // the remote does not have, or does not give, what was asked for
	faultRefused              // credentials, host key, ownership, protocol: the same again would fail again
	faultMissing              // no repository there
)

// gitFaults tells kinds of failures by what git 2.39 and later print with
// LC_ALL=C; the first that fits counts.
var gitFaults = []struct {
	fault fault
	text  string
}{
	{faultGone, "not our ref"},
	{faultGone, "unadvertised object"},
	{faultGone, "couldn't find remote ref"},
	{faultGone, "could not find remote ref"},
	{faultGone, "no such remote ref"},
	{faultRefused, "Authentication failed"},
	{faultRefused, "could not read Username"},
	{faultRefused, "could not read Password"},
	{faultRefused, "terminal prompts disabled"},
	{faultRefused, "returned error: 401"},
	{faultRefused, "returned error: 403"},
	{faultRefused, "Permission denied"},
	{faultRefused, "Host key verification failed"},
	{faultRefused, "dubious ownership"},
	{faultRefused, "not allowed"},
	{faultRefused, "certificate"},
	{faultMissing, "does not appear to be a git repository"},
	{faultMissing, "does not exist"},
	{faultMissing, "not found"},
}

// faultOf tells what kind of failure an error is.
func faultOf(err error) fault {
	var e *gitError
	if errors.As(err, &e) {
		for _, f := range gitFaults {
			if strings.Contains(e.stderr, f.text) {
				return f.fault
			}
		}
	}
	return faultOther
}

// remoteError turns the failure of a command that used the network into a
// sentence for people.
func (g *git) remoteError(err error) error {
	var e *gitError
	if !errors.As(err, &e) {
		return err
	}
	switch faultOf(err) {
	case faultRefused:
		return ci.Wrap(ci.CodeForbidden, err, "the remote %s refused access or could not be trusted (%s): let the integration's token or App read it, give the server's user credentials for it, or mend the project's clone_url", g.remote.shown, e.reason())
	case faultMissing:
		return ci.Wrap(ci.CodeUnavailable, err, "there is no repository at %s, or it may not be seen without credentials (%s): mend the project's clone_url", g.remote.shown, e.reason())
	}
	return ci.Wrap(ci.CodeUnavailable, err, "cannot fetch from %s: %s", g.remote.shown, e.reason())
}
