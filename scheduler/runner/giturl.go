package runner

import (
	"net/url"
	"regexp"
	"strings"

	"docket/store/ci"
)

// scpURL is git's short form of an ssh address. Neither part may begin with a
// dash, which ssh would read as an option.
var scpURL = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*$`)

// remote is a configured clone URL, checked.
type remote struct {
	url      string // as configured: for git's configuration file alone
	shown    string // without credentials: for people, .git/config and the log
	password string // "" or what must be masked
	protocol string // of "https", "http", "ssh" and "file"
	path     string // of a local repository, "" for others
}

// parseRemote accepts https://, http://, ssh://, git@host:path, file:// and
// absolute paths. ext:: and every other helper is refused.
func parseRemote(s string) (remote, error) {
	bad := func() (remote, error) {
		return remote{}, ci.Errorf(ci.CodeInvalid, "the clone URL %q is not one that docket uses: give https://, ssh://, git@host:path, file:// or an absolute path as clone_url", redact(s))
	}
	if s == "" || strings.ContainsAny(s, "\x00\n\r") {
		return bad()
	}
	if s[0] == '/' {
		return remote{url: s, shown: s, protocol: "file", path: s}, nil
	}
	if scpURL.MatchString(s) {
		return remote{url: s, shown: s, protocol: "ssh"}, nil
	}
	u, err := url.Parse(s)
	if err != nil || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.Username(), "-") {
		return bad()
	}
	r := remote{url: s, protocol: u.Scheme}
	switch u.Scheme {
	case "https", "http", "ssh":
		if u.Host == "" {
			return bad()
		}
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return bad()
		}
		r.path = u.Path
	default:
		return bad()
	}
	if r.password, _ = u.User.Password(); r.password == "" && u.Scheme != "ssh" {
		r.password = u.User.Username() // a token alone
	}
	r.shown = redact(s)
	return r, nil
}

// redact takes the credentials out of a URL. An ssh user is none.
func redact(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User == nil {
		return s
	}
	if u.Scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	return u.String()
}

// checkRef refuses what is not a full ref by git's own rules, so that a ref
// can be an argument and a refspec.
func checkRef(ref string) error {
	bad := ci.Errorf(ci.CodeInvalid, "%q is not a full git ref, as refs/heads/main is", ref)
	rest, ok := strings.CutPrefix(ref, "refs/")
	if !ok || rest == "" || strings.HasSuffix(ref, ".") || strings.ContainsAny(ref, " ~^:?*[\\\x7f") ||
		strings.Contains(ref, "..") || strings.Contains(ref, "@{") {
		return bad
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return bad
		}
	}
	for _, c := range []byte(ref) {
		if c < 0x20 {
			return bad
		}
	}
	return nil
}

// refName names a ref for people.
func refName(ref string) string {
	branch, tag := ci.SplitRef(ref)
	switch {
	case branch != "":
		return "branch " + branch
	case tag != "":
		return "tag " + tag
	}
	return "ref " + ref
}
