package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/store/ci"
)

// initTokenFile is where init puts the admin token.
const initTokenFile = "admin.token"

func newInit(a *app) *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a configuration, a webhook secret and an admin token to begin with",
		Long: `Write into DIR (default: here) a commented docket.yaml, a fresh webhook secret
(github.secret, or gitea.secret) and an admin token (admin.token), both for their owner's
eyes only.

In /etc/docket the data directory is /var/lib/docket, and the secrets belong to the
package's user docket where there is one.

The configuration works as it stands, except that its repository acme/hello is a
placeholder. Nothing that exists is overwritten: if one of the files is there, nothing is
written at all.`,
		Example: `  docket init
  docket init /etc/docket
  docket init --provider gitea`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "%s does not take %q", cmd.CommandPath(), args[1])
			}
			start, ok := starterOf(provider)
			if !ok {
				return usagef(cmd, "--provider must be github or gitea (which is Forgejo too), not %q", provider)
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(dir, start)
		},
	}
	cmd.Flags().StringVar(&provider, "provider", ci.ProviderGitHub, "where the repository lies: `github` or gitea")
	return cmd
}

// newFile is one file to be made.
type newFile struct {
	path    string
	mode    os.FileMode
	content string
}

func (a *app) init(dir string, start starter) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("the directory cannot be found; name another: %w", err)
	}
	system := abs == filepath.Dir(systemConfig)
	files := []newFile{
		{filepath.Join(dir, start.secretFile()), 0o600, hex.EncodeToString(randomBytes(32)) + "\n"},
		{filepath.Join(dir, initTokenFile), 0o600, "dkt_" + base64.RawURLEncoding.EncodeToString(randomBytes(32)) + "\n"},
		{filepath.Join(dir, hereConfig), 0o644, initConfig(start, system)},
	}
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return existsError(f.path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s cannot be written; choose another directory: %w", f.path, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the directory cannot be made; choose another: %w", err)
	}
	for i, f := range files {
		if err := f.write(); err != nil {
			for _, made := range files[:i] { // all or nothing
				err = errors.Join(err, os.Remove(made.path))
			}
			return err
		}
	}
	service := false
	if system {
		if service, err = giveToService(files); err != nil {
			return err
		}
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, nextSteps(dir, start, service))
	return err
}

// giveToService lets the user that the package runs docket as read the
// secrets, if there is one and root made them.
func giveToService(files []newFile) (bool, error) {
	u, err := user.Lookup("docket")
	if err != nil || os.Geteuid() != 0 {
		return false, nil
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if f.mode&0o077 != 0 {
			continue
		}
		if err := os.Chown(f.path, uid, -1); err != nil {
			return false, fmt.Errorf("%s cannot be given to the user docket; do that by hand: %w", f.path, err)
		}
	}
	return true, nil
}

func existsError(path string) error {
	return fmt.Errorf("%s exists and is not overwritten; move it away, or choose another directory: docket init DIR", path)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}

// write makes the file as a whole or not at all, with its mode from the first
// moment, and never in place of another one.
func (f newFile) write() (err error) {
	temp := filepath.Join(filepath.Dir(f.path), fmt.Sprintf(".%s.%x", filepath.Base(f.path), randomBytes(6)))
	w, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return fmt.Errorf("%s cannot be written; choose another directory: %w", f.path, err)
	}
	defer func() { err = errors.Join(err, os.Remove(temp)) }()
	_, err = w.WriteString(f.content)
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return fmt.Errorf("%s cannot be written; see to free space and try again: %w", f.path, err)
	}
	if err := os.Link(temp, f.path); errors.Is(err, fs.ErrExist) {
		return existsError(f.path)
	} else if err != nil {
		return fmt.Errorf("%s cannot be made; choose another directory: %w", f.path, err)
	}
	return nil
}

// nextSteps is what a new user has to know.
func nextSteps(dir string, start starter, service bool) string {
	config := filepath.Join(dir, hereConfig)
	serve := "docket serve"
	if dir != "." {
		serve += " -c " + shellWord(config)
	}
	if service {
		serve = "systemctl enable --now docket"
	}
	return fmt.Sprintf(`Wrote %s, %s and %s.

Next:

 1. Put %s in %s, then start the server:

      %s

 2. %s
    YOUR-HOST is where %s reaches the listener on 127.0.0.1:8080: a proxy or a tunnel
    before it. Without one, listen on 0.0.0.0:8080 in %s and use
    http://YOUR-HOST:8080/hooks/%s.
`, hereConfig, start.secretFile(), initTokenFile, start.change, config, serve,
		fmt.Sprintf(start.hook, filepath.Join(dir, start.secretFile())), start.calls, config, start.name)
}

// shellWord quotes a word for a POSIX shell if it needs it.
func shellWord(s string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_./+:@%-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
