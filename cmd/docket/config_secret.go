package main

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// maxSecretBytes bounds a secret's file.
const maxSecretBytes = 64 << 10

// secretKind says what a secret may consist of.
type secretKind int

const (
	secretBytes       secretKind = iota // anything
	secretHeader                        // goes into an HTTP header: printable, no blanks
	secretEnv                           // goes into a step's environment: no NUL, at most 32 KiB
	secretAddress                       // an http or https address
	secretSigning                       // signs a webhook: whsec_ and base64, or anything
	secretRSA                           // a GitHub App's private key: RSA in PEM
	secretHeaderValue                   // is the whole value of an HTTP header: printable, no blanks at its ends
)

// loader reads secrets from where the configuration says they are.
type loader struct {
	*reader
	dir      string // relative paths begin here
	getenv   func(string) string
	readFile func(path string) ([]byte, error)
}

// path makes a configured path absolute or relative to the working directory.
func (l *loader) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(l.dir, p)
}

// secret reads {file: PATH}, {env: NAME} or {credential: NAME}. It returns the zero secret after a
// fault and for a missing key.
func (l *loader) secret(o *object, key string, k secretKind) ci.Secret {
	if !o.has(key) {
		return ci.Secret{}
	}
	return l.secretOf(o.field(key), o.what+": "+key, k)
}

func (l *loader) secretOf(n ast.Node, what string, k secretKind) ci.Secret {
	n = l.resolve(n)
	switch v := n.(type) {
	case nil:
		return ci.Secret{}
	case *ast.MappingNode:
	case *ast.NullNode:
		l.at(n, "%s is empty; write {file: PATH} or {env: NAME}", what)
		return ci.Secret{}
	default:
		line, _ := position(v)
		l.mask(line, secretText(v))
		l.at(n, "%s is written here as it is; put the secret into a file that only docket can read and write {file: PATH}, or {env: NAME}", what)
		return ci.Secret{}
	}
	o := l.object(n, sectionSecret, what)
	if o == nil {
		return ci.Secret{}
	}
	given := 0
	for _, key := range []string{"file", "env", "credential"} {
		if o.has(key) {
			given++
		}
	}
	switch {
	case given != 1:
		l.at(n, "%s needs one of file, env and credential; write {file: PATH} or {env: NAME}", what)
		return ci.Secret{}
	case o.has("env"):
		return l.secretFromEnv(o, what, k)
	case o.has("credential"):
		return l.secretFromCredential(o, what, k)
	}
	return l.secretFromFile(o, what, k)
}

// secretText returns a literal secret as it stands in the file, for masking.
func secretText(n ast.Node) string {
	if v, ok := n.(*ast.LiteralNode); ok {
		return "\n" + v.Value.GetToken().Origin
	}
	if _, ok := n.(ast.ScalarNode); ok {
		return n.GetToken().Origin
	}
	return ""
}

func (l *loader) secretFromEnv(o *object, what string, k secretKind) ci.Secret {
	name := o.text("env")
	if name == "" {
		o.emptyText("env")
		return ci.Secret{}
	}
	if !envName().MatchString(name) {
		o.at("env", "%s: %q cannot be the name of an environment variable; use letters, digits and _", what, name)
		return ci.Secret{}
	}
	value := l.getenv(name)
	if value == "" {
		o.at("env", "%s: the environment variable %s is not set or empty; set it for docket, or use {file: PATH}", what, name)
		return ci.Secret{}
	}
	return l.accept(o, "env", what, "env "+name, value, k)
}

func (l *loader) secretFromFile(o *object, what string, k secretKind) ci.Secret {
	path := o.text("file")
	if path == "" {
		o.emptyText("file")
		return ci.Secret{}
	}
	full := l.path(path)
	b, err := l.readFile(full)
	if err != nil {
		o.at("file", "%s: %s", what, fileTrouble(full, err))
		return ci.Secret{}
	}
	return l.accept(o, "file", what, path, string(b), k)
}

// secretFromCredential reads a secret that the service manager gives docket
// under a name.
func (l *loader) secretFromCredential(o *object, what string, k secretKind) ci.Secret {
	name := o.text("credential")
	if name == "" {
		o.emptyText("credential")
		return ci.Secret{}
	}
	if name == "." || name == ".." || hasControl(name) || strings.Contains(name, "/") {
		o.at("credential", "%s: no credential can be named %q; give the name that stands in LoadCredential= of docket.service", what, name)
		return ci.Secret{}
	}
	dir := l.getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		o.at("credential", "%s: there are no credentials, as only a service of systemd has them; start docket as one, or use {file: PATH}", what)
		return ci.Secret{}
	}
	b, err := l.readFile(filepath.Join(dir, name))
	if err != nil {
		o.at("credential", "%s: the credential %s cannot be read; give docket.service LoadCredential=%s:PATH and restart it", what, name, name)
		return ci.Secret{}
	}
	return l.accept(o, "credential", what, "credential "+name, string(b), k)
}

// accept drops one newline at the end and checks what is left.
func (l *loader) accept(o *object, key, what, name, value string, k secretKind) ci.Secret {
	value = strings.TrimSuffix(value, "\n")
	value = strings.TrimSuffix(value, "\r")
	if trouble := secretTrouble(value, k); trouble != "" {
		o.at(key, "%s: the secret from %s %s", what, name, trouble)
		return ci.Secret{}
	}
	return ci.NewSecret(name, value)
}

// secretTrouble says what is wrong with a secret, never what it is.
func secretTrouble(value string, k secretKind) string {
	if strings.TrimSpace(value) == "" {
		return "is empty or blank; put the secret in"
	}
	switch k {
	case secretHeader:
		for i := range len(value) {
			if value[i] <= ' ' || value[i] > '~' {
				return "holds a blank or a byte that no token has; check that the file holds the token alone"
			}
		}
	case secretHeaderValue:
		if strings.TrimSpace(value) != value || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return "holds a byte that no header has, or blanks at its ends; check that the file holds the header's value alone, on one line"
		}
	case secretEnv:
		if strings.ContainsRune(value, 0) {
			return "holds a NUL byte, which no environment variable can; encode it, for example with base64"
		}
		if len(value) > ci.MaxInput {
			return fmt.Sprintf("is over %s, the most that a step's variable can hold; keep it in a file on the machine instead", formatSize(ci.MaxInput))
		}
	case secretAddress:
		if trouble := addressTrouble(value, "http", "https"); trouble != "" {
			return "is not an address; put the whole https:// address in"
		}
	case secretSigning:
		if trouble := signingTrouble(value); trouble != "" {
			return trouble
		}
	case secretRSA:
		return rsaTrouble(value)
	}
	return ""
}

// rsaTrouble says why a text is not the private key of a GitHub App, or "".
func rsaTrouble(value string) string {
	const how = "generate one on GitHub in the App's settings under Private keys, and give the .pem file that it downloads"
	block, _ := pem.Decode([]byte(value))
	switch {
	case block == nil:
		return "is not in PEM; " + how
	case strings.Contains(block.Type, "PUBLIC"):
		return "is a public key, and the private one is needed; " + how
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return "is locked with a passphrase; " + how
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return ""
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "is not a whole private key; " + how
	}
	if _, ok := key.(*rsa.PrivateKey); !ok {
		return "is a private key, but not an RSA one; " + how
	}
	return ""
}

// readSecretFile reads a regular file of at most maxSecretBytes.
func readSecretFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular{}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err == nil && len(b) > maxSecretBytes {
		err = &fs.PathError{Op: "read", Path: path, Err: errTooLarge{}}
	}
	return b, err
}

type errNotRegular struct{}

func (errNotRegular) Error() string { return "not a regular file" }

type errTooLarge struct{}

func (errTooLarge) Error() string { return "over 64 KiB" }

// fileTrouble says why a file cannot be read and what to do.
func fileTrouble(path string, err error) string {
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file %s does not exist; create it or correct the path", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the file %s may not be read; let the user that docket runs as read it", path)
	case errors.As(err, &cause):
		return fmt.Sprintf("the file %s cannot be read (%v); give the path of a readable file", path, cause.Err)
	}
	return fmt.Sprintf("the file %s cannot be read (%v); give the path of a readable file", path, err)
}
