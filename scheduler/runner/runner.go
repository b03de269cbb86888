package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docket/store/ci"
)

// Options configure a Runner.
type Options struct {
	// DataDir holds mirrors/ and workspaces/. It is made if missing.
	DataDir string
	// Supervisor is the command line that ends in Supervise. The run's id is
	// appended to it, for people who read a process listing.
	Supervisor []string
	// Git is the git program, "git" by default, found once in the server's PATH.
	Git string
	// Now is the clock of recorded times, time.Now by default.
	Now func() time.Time
	// FetchTimeout bounds everything that one preparation does over the
	// network, tries included. Default 10 minutes.
	FetchTimeout time.Duration
	// Credential returns what a configured clone URL is fetched with: "" for
	// nothing. refused is a secret that the remote did not accept, "" for none.
	// It is asked before each command that talks to an http or https remote
	// whose URL holds no credentials; nil: never.
	Credential func(ctx context.Context, cloneURL, refused string) (username, secret string, err error)
}

// Runner carries runs. Its methods may be called at the same time; two calls
// for one project take turns only at its mirror.
type Runner struct {
	mirrors      string
	workspaces   string
	supervisor   []string
	git          string
	now          func() time.Time
	fetchTimeout time.Duration
	credential   func(ctx context.Context, cloneURL, refused string) (username, secret string, err error)
	machine      string // the kernel's boot id

	mu    sync.Mutex
	locks map[string]chan struct{} // by project: holds a token while its mirror is in use
}

// New makes DATA_DIR/{mirrors,workspaces} and returns a Runner over them.
func New(o Options) (*Runner, error) {
	if len(o.Supervisor) == 0 {
		return nil, errors.New("runner: no command line for the supervisor")
	}
	if o.Git == "" {
		o.Git = "git"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FetchTimeout <= 0 {
		o.FetchTimeout = 10 * time.Minute
	}
	git, err := exec.LookPath(o.Git)
	if err != nil {
		return nil, ci.Wrap(ci.CodeUnavailable, err, "the program %s is not in the server's PATH: install git 2.39 or later", o.Git)
	}
	git, err = filepath.Abs(git)
	if err != nil {
		return nil, err
	}
	machine, err := bootID()
	if err != nil {
		return nil, err
	}
	r := &Runner{
		supervisor: o.Supervisor, git: git, now: o.Now, fetchTimeout: o.FetchTimeout,
		credential: o.Credential,
		machine:    machine, locks: map[string]chan struct{}{},
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	// git compares real paths with safe.directory.
	data, err := filepath.EvalSymlinks(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	if data, err = filepath.Abs(data); err != nil {
		return nil, err
	}
	r.mirrors = filepath.Join(data, "mirrors")
	r.workspaces = filepath.Join(data, "workspaces")
	for _, dir := range []string{r.mirrors, r.workspaces} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make %s: %w", dir, err)
		}
	}
	return r, nil
}

// bootID tells this boot of this machine from any other.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the kernel's boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
