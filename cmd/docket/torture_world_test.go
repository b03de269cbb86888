//go:build torture

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// tortureWorld is what lives as long as the test: the configuration, the
// repository, the receivers outside and the binary.
type tortureWorld struct {
	t    *testing.T
	seed uint64
	dir  string // kept if the test fails

	size          tortureSize
	config        string
	configText    string
	recoverConfig string // the same, with recovery
	url           string
	token         string
	secret        ci.Secret // of the webhooks
	ledger        string    // where steps write that they ran
	commits       []string  // of the one branch of the repository, oldest first
	repos         []tortureRepository

	server  *tortureServer
	outside *tortureOutside

	acknowledged tortureTrap // something new, as a sender saw it
	told         tortureTrap // something outside, as a receiver saw it

	book   *tortureBook
	deck   *tortureDeck
	faults []*tortureFault
	copies tortureCopies

	fresh       atomic.Int64 // acknowledgements of something new
	unavailable atomic.Int64 // answers "not now"
	broken      atomic.Int64 // the life whose disk has failed; 0: none
	prunedTo    time.Time    // bodies of before may be gone
	bodiesGone  int
	runs        int // at the end

	wrong atomic.Int32
}

// tortureRepository is a repository at the provider, and the projects that
// its pushes start.
type tortureRepository struct {
	id       int64
	name     string
	branches int
	weight   int // of a hundred pushes
	hook     int64
	projects []tortureProject
}

type tortureProject struct {
	name      string
	supersede ci.SupersedePolicy
	requeue   bool
	steps     string
	fails     bool
	events    string // of its webhook; "": it has none
}

const (
	tortureSay  = `{name: say, run: 'read -r n < number; echo "$DOCKET_RUN $DOCKET_COMMIT $n begin" >> "$LEDGER"'}`
	tortureDone = `{name: done, run: 'echo "$DOCKET_RUN $DOCKET_COMMIT - end" >> "$LEDGER"'}`
)

// tortureRepositories is one of each kind. Those that supersede have few
// branches, so that it happens; those that do not have many.
func tortureRepositories(size tortureSize) []tortureRepository {
	return []tortureRepository{
		{id: 101, name: "acme/plain", branches: 12, weight: size.carried, projects: []tortureProject{
			{name: "plain", supersede: ci.SupersedeNone, steps: tortureSay + ", " + tortureDone, events: "[run.finished]"},
		}},
		{id: 102, name: "acme/bad", branches: 6, weight: size.carried, projects: []tortureProject{
			{name: "bad", supersede: ci.SupersedeNone, steps: tortureSay + ", {name: fail, run: exit 1}", fails: true, events: "[run.finished, run.failed]"},
		}},
		{id: 103, name: "acme/slow", branches: 3, weight: 50 - size.carried, projects: []tortureProject{
			{name: "slow", supersede: ci.SupersedePending, requeue: true, events: "[run.queued, run.started, run.finished]",
				steps: tortureSay + ", {name: sleep, run: sleep 0.05}, " + tortureDone},
		}},
		// One push, two runs.
		{id: 104, name: "acme/twice", branches: 2, weight: 50 - size.carried, projects: []tortureProject{
			{name: "twice", supersede: ci.SupersedePending, steps: tortureSay + ", " + strings.Replace(tortureDone, "}", ", deploy: true}", 1), events: "[run.finished]"},
			{name: "twice-again", supersede: ci.SupersedeRunning, steps: tortureSay + ", {name: sleep, run: sleep 0.05}, " + tortureDone},
		}},
		// Nobody but GitHub itself delivers to it, each push once.
		{id: tortureMissedID, name: "acme/missed", branches: 4, projects: []tortureProject{
			{name: "missed", supersede: ci.SupersedeNone, steps: tortureSay + ", " + tortureDone, events: "[run.finished]"},
		}},
	}
}

func newTortureWorld(t *testing.T, size tortureSize) *tortureWorld {
	t.Helper()
	binary := tortureBinary(t)
	dir, err := os.MkdirTemp("", "docket-torture-")
	if err != nil {
		t.Fatal(err)
	}
	w := &tortureWorld{
		t: t, seed: size.seed, size: size, dir: dir, recoverConfig: filepath.Join(dir, "recover.yaml"), config: filepath.Join(dir, "docket.yaml"), ledger: filepath.Join(dir, "ledger"),
		token: store.TokenPrefix + hex.EncodeToString(randomBytes(32)), secret: ci.NewSecret("", hex.EncodeToString(randomBytes(32))),
		repos: tortureRepositories(size),
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(dir)
			return
		}
		t.Logf("seed %d; everything is kept in %s; the server's log ends with:\n%s", size.seed, dir, w.server.logTail(40))
	})
	w.server = newTortureServer(w, binary)
	w.outside = newTortureOutside(w)
	w.makeRepository()
	w.makeConfig()
	w.outside.makeHooks()
	w.book = newTortureBook(w)
	return w
}

// rng returns a source of chance of its own for each number.
func (w *tortureWorld) rng(n uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, n)) }

// client returns an HTTP client that keeps its own connections.
func (w *tortureWorld) client() *http.Client {
	tr := &http.Transport{}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: noRedirect, Timeout: time.Minute}
}

// fail reports a fault; of many the first hundred.
func (w *tortureWorld) fail(format string, args ...any) {
	w.t.Helper()
	switch n := w.wrong.Add(1); {
	case n <= 100:
		w.t.Errorf(format, args...)
	case n == 101:
		w.t.Error("and more faults, not shown")
	}
}

// fatal reports a fault and ends the test. Only for the test's own goroutine.
func (w *tortureWorld) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format, args...)
}

func (w *tortureWorld) gitDir() string  { return filepath.Join(w.dir, "remote.git") }
func (w *tortureWorld) dataDir() string { return filepath.Join(w.dir, "data") }

// tortureBranch is the name of a repository's branch.
func tortureBranch(n int) string { return fmt.Sprintf("work-%d", n) }

// makeRepository makes one git repository for all projects: a line of commits,
// each with its number in the file number.
func (w *tortureWorld) makeRepository() {
	w.t.Helper()
	const commits = 300
	var in bytes.Buffer
	for i := range commits {
		message := fmt.Sprintf("Count to %d", i)
		number := fmt.Sprintf("%d\n", i)
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter t <t@example.org> %d +0000\ndata %d\n%s\n", i+1, 1_700_000_000+i, len(message), message)
		fmt.Fprintf(&in, "M 100644 inline number\ndata %d\n%s\n", len(number), number)
	}
	for i := range 12 {
		fmt.Fprintf(&in, "reset refs/heads/%s\nfrom :%d\n\n", tortureBranch(i), commits-i)
	}
	git := func(stdin *bytes.Buffer, args ...string) string {
		w.t.Helper()
		cmd := exec.Command("git", append([]string{"-C", w.gitDir()}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
		if stdin != nil {
			cmd.Stdin = stdin
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			w.fatal("git %s: %v: %s", args[0], err, errs.String())
		}
		return out.String()
	}
	if err := os.Mkdir(w.gitDir(), 0o755); err != nil {
		w.fatal("%v", err)
	}
	git(nil, "init", "--quiet", "--bare", "--initial-branch=main")
	git(&in, "fast-import", "--quiet")
	w.commits = strings.Fields(git(nil, "rev-list", "--reverse", "main"))
	if len(w.commits) != commits {
		w.fatal("the repository has %d commits, want %d", len(w.commits), commits)
	}
}

func (w *tortureWorld) makeConfig() {
	w.t.Helper()
	address := torturePort(w)
	w.url = "http://" + address
	var c strings.Builder
	fmt.Fprintf(&c, `data_dir: data
public_url: %s
listen: [{address: '%s'}]
scan_interval: 200ms
shutdown_grace: 20s
admin_token: {file: admin.token}
limits: {concurrent_runs: 4, free_space: 16MiB}
integrations:
  - name: torture
    provider: github
    api_url: %s/api/v3/
    webhook_secrets: [{file: hook.secret}]
    recover_every: 0
    token: {file: github.token}
projects:
`, w.url, address, w.outside.github.URL)
	for _, r := range w.repos {
		for _, p := range r.projects {
			interrupt := ci.OnInterruptStop
			if p.requeue {
				interrupt = ci.OnInterruptRequeue
			}
			fmt.Fprintf(&c, `  - name: %s
    integration: torture
    repository: %s
    clone_url: %s
    on: {push: {branches: ["work-*"]}}
    supersede: %s
    on_interrupt: %s
    env: {LEDGER: %s}
    steps: [%s]
`, p.name, r.name, w.gitDir(), p.supersede, interrupt, w.ledger, p.steps)
			if p.events != "" {
				fmt.Fprintf(&c, "    notify: [{webhook: '%s', secret: {file: notify.secret}, events: %s}]\n", w.outside.target(p.name), p.events)
			}
		}
	}
	w.configText = c.String()
	for name, text := range map[string]string{
		w.config: w.configText, w.recoverConfig: strings.Replace(w.configText, "recover_every: 0\n", "recover_every: 1m\n", 1), filepath.Join(w.dir, "admin.token"): w.token, filepath.Join(w.dir, "hook.secret"): w.secret.Reveal(),
		filepath.Join(w.dir, "github.token"): tortureGitHubToken, filepath.Join(w.dir, "notify.secret"): tortureNotifySecret,
	} {
		mustWrite(w.t, name, text)
	}
}

// torturePort finds a free port below those that the system hands out by
// itself: nobody takes it while the server is dead, least of all a client that
// would then be connected to itself.
func torturePort(w *tortureWorld) string {
	w.t.Helper()
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 12_000+rng.IntN(18_000))
		if ln, err := net.Listen("tcp", address); err == nil {
			ln.Close()
			return address
		}
	}
	w.fatal("no free port was found below 30000")
	return ""
}

// chooseRepository draws one that the senders push to.
func (w *tortureWorld) chooseRepository(rng *rand.Rand) *tortureRepository {
	n := rng.IntN(100)
	for i := range w.repos {
		if n -= w.repos[i].weight; n < 0 {
			return &w.repos[i]
		}
	}
	return &w.repos[0]
}

// repository returns a repository by its id.
func (w *tortureWorld) repository(id int64) *tortureRepository {
	for i := range w.repos {
		if w.repos[i].id == id {
			return &w.repos[i]
		}
	}
	return nil
}

// project returns a project by its name.
func (w *tortureWorld) project(name string) tortureProject {
	for _, r := range w.repos {
		for _, p := range r.projects {
			if p.name == name {
				return p
			}
		}
	}
	w.fail("there is no project %q", name)
	return tortureProject{}
}
