package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// address returns a key's http or https address; "" where it is missing or
// faulty.
func (o *object) address(key string) string {
	s := o.text(key)
	if s == "" {
		o.emptyText(key)
		return ""
	}
	if trouble := addressTrouble(s, "http", "https"); trouble != "" {
		o.badAddress(key, s, trouble)
		return ""
	}
	return s
}

// badAddress reports what is wrong with an address without showing any
// credentials in it.
func (o *object) badAddress(key, s, trouble string) {
	line, _ := position(o.r.resolve(o.field(key)))
	o.r.mask(line, credentialsIn(s))
	o.at(key, "%s: %s: %q %s", o.what, key, redactURL(s), trouble)
}

// emptyText reports a key whose text is "".
func (o *object) emptyText(key string) {
	if e, ok := o.fields[key]; ok {
		if s, isText := o.r.resolve(e.value).(*ast.StringNode); isText && s.Value == "" {
			o.at(key, "%s: %s is empty; give it a value, or remove the key", o.what, key)
		}
	}
}

// addressTrouble says what is wrong with a URL, or "".
func addressTrouble(s string, schemes ...string) string {
	if hasControl(s) || strings.Contains(s, " ") {
		return "holds blanks or control characters; remove them"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL; write it in full, as in https://ci.example.org"
	case !slices.Contains(schemes, strings.ToLower(u.Scheme)):
		return fmt.Sprintf("must begin with %s://; write it in full", strings.Join(schemes, ":// or "))
	case u.Host == "" || u.Hostname() == "":
		return "names no host; write it in full, as in https://ci.example.org"
	case u.User != nil:
		return "holds credentials, which would be shown; take them out"
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return "has a port that is not from 1 to 65535; correct it"
		}
	}
	return ""
}

// redactURL leaves out what stands between // and @.
func redactURL(s string) string {
	if i := strings.Index(s, "//"); i >= 0 {
		if j := strings.LastIndex(s, "@"); j > i {
			return s[:i+2] + "***" + s[j:]
		}
	}
	return s
}

// credentialsIn returns the part of a URL between // and @, or "".
func credentialsIn(s string) string {
	if i := strings.Index(s, "//"); i >= 0 {
		if j := strings.LastIndex(s, "@"); j > i+2 {
			return s[i+2 : j]
		}
	}
	return ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// listenTrouble says what is wrong with a listen address, or "".
func listenTrouble(s string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "is not HOST:PORT; write one, as in 127.0.0.1:8080 or [::1]:8080"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "has a port that is not a number from 0 to 65535; correct it"
	}
	if host == "" || hostPattern().MatchString(host) {
		return ""
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return "has a host that is neither an IP address nor a host name; correct it"
	}
	return ""
}

func hostPattern() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$`)
}

// cloneTrouble says what is wrong with a clone address, or "". Only the forms
// named here are handed to git: its other transports run commands.
func cloneTrouble(s string) string {
	switch {
	case hasControl(s) || strings.TrimSpace(s) != s:
		return "holds control characters or blanks at its ends; remove them"
	case strings.HasPrefix(s, "/"):
		return ""
	case strings.Contains(s, "::"):
		return "uses a git transport that can run commands; use https://, ssh://, git@host:path, file:// or an absolute path"
	case strings.Contains(s, "://"):
		return cloneURLTrouble(s)
	case scpPattern().MatchString(s):
		return ""
	}
	return "is not a clone address; use https://, ssh://, git@host:path, file:// or an absolute path"
}

// scpPattern is [user@]host:path, with nothing that ssh could take for an option.
func scpPattern() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*:[^-:\s][^\s]*$`)
}

func cloneURLTrouble(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "is not a URL; write it in full, as in https://github.com/acme/api.git"
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return "must be file:/// and an absolute path; correct it"
		}
		return ""
	case "https", "ssh":
	case "http":
		if !loopback(u.Hostname()) {
			return "goes over plain http, where anyone between can change the code; use https://"
		}
	default:
		return fmt.Sprintf("has the scheme %q, which docket does not clone from; use https://, ssh://, git@host:path, file:// or an absolute path", u.Scheme)
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Host, "-") {
		return "names no host; write it in full, as in https://github.com/acme/api.git"
	}
	if u.User == nil {
		return ""
	}
	_, password := u.User.Password()
	if password || u.Scheme != "ssh" {
		return "holds credentials; take them out and let the machine's ssh key or the integration's token open the repository"
	}
	if strings.HasPrefix(u.User.Username(), "-") {
		return "has a user that begins with a dash; correct it"
	}
	return ""
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// branchTrouble says why git would refuse a short branch name, or "".
func branchTrouble(s string) string {
	bad := s == "" || s == "@" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "refs/") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\") || hasControl(s)
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".")
	}
	if bad {
		return "is not a branch; write its short name, as in main"
	}
	return ""
}

// pipelineTrouble says why a path cannot be a file of the repository, or "".
func pipelineTrouble(s string) string {
	switch {
	case s == "" || path.IsAbs(s) || path.Clean(s) != s || s == "." || s == ".." || strings.HasPrefix(s, "../") || hasControl(s):
		return "is not a path inside the repository; write one, as in .docket.yml"
	case len(s) > 1024:
		return "is over 1024 bytes; use a shorter path"
	}
	return ""
}

// signingTrouble says what is wrong with a webhook's signing secret, or "".
func signingTrouble(value string) string {
	rest, ok := strings.CutPrefix(value, "whsec_")
	if !ok {
		return ""
	}
	if b, err := base64.StdEncoding.DecodeString(rest); err != nil || len(b) == 0 {
		return "begins with whsec_, but what follows is not base64; copy the whole secret"
	}
	return ""
}
