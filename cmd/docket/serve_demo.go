package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"docket/store"
	"docket/store/ci"
)

// The demo's project, and the repository that its pushes claim to be from.
const (
	demoProject    = "hello"
	demoRepository = "demo/hello"
	demoAddress    = "127.0.0.1:8080"
)

// demoFiles is the demo's repository at its one commit.
var demoFiles = []struct{ name, text string }{
	{"README", "The demo of docket.\n"},
	{"greet.sh", "#!/bin/sh\necho \"hello from $DOCKET_COMMIT\"\necho \"pushed to $DOCKET_BRANCH, asked for by $DOCKET_EVENT\"\n"},
}

var demoConfig = template.Must(template.New("demo").Parse(`# The demo's configuration, written by docket serve --demo.
data_dir: data
public_url: http://{{.Address}}
listen:
  - address: {{.Address}}
limits:
  free_space: 16MiB
integrations:
  - name: demo
    provider: github
    webhook_secrets:
      - {file: demo.secret}
admin_token: {file: admin.token}
projects:
  - name: hello
    integration: demo
    repository: demo/hello
    clone_url: {{.Repository}}
    inputs:
      - {name: greeting, default: hello, options: [hello, goodbye]}
    steps:
      - {name: test, run: sh ./greet.sh}
      - {name: deploy, run: 'echo "$GREETING, $DOCKET_RUN"', deploy: true}
`))

// serveDemo runs the appliance on a temporary data directory, with a local
// repository and one signed push to begin with.
func (a *app) serveDemo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "docket-demo-")
	if err != nil {
		return fmt.Errorf("the demo cannot make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	demo := &demonstration{app: a, dir: dir, config: filepath.Join(dir, hereConfig)}
	if demo.commit, err = makeDemoRepository(ctx, demo.repository()); err != nil {
		return err
	}
	if err := demo.writeConfig(); err != nil {
		return err
	}
	cfg, err := Load(demo.config, a.getenv)
	if err != nil {
		return err
	}
	demo.appliance = &appliance{
		log: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})), config: cfg,
		reload: func() (*ci.Config, error) { return Load(demo.config, a.getenv) },
		ready:  func(ctx context.Context, addresses []string) error { return demo.show(ctx, addresses[0]) },
	}
	return a.serve(ctx, demo.appliance)
}

type demonstration struct {
	app       *app
	appliance *appliance
	dir       string
	config    string
	commit    string
}

func (d *demonstration) repository() string { return filepath.Join(d.dir, "hello.git") }

func (d *demonstration) writeConfig() error {
	var text strings.Builder
	err := demoConfig.Execute(&text, struct{ Address, Repository string }{freeAddress(demoAddress), d.repository()})
	if err != nil {
		return err
	}
	for _, f := range []newFile{
		{filepath.Join(d.dir, "demo.secret"), 0o600, hex.EncodeToString(randomBytes(32)) + "\n"},
		{filepath.Join(d.dir, initTokenFile), 0o600, store.TokenPrefix + hex.EncodeToString(randomBytes(32)) + "\n"},
		{d.config, 0o600, text.String()},
	} {
		if err := f.write(); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress returns the wished address, or another port of the same host
// where that one is taken.
func freeAddress(wish string) string {
	host, _, _ := net.SplitHostPort(wish)
	for _, address := range []string{wish, net.JoinHostPort(host, "0")} {
		if ln, err := net.Listen("tcp", address); err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	return wish
}

// makeDemoRepository makes a repository with one commit on main.
func makeDemoRepository(ctx context.Context, dir string) (commit string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for _, f := range demoFiles {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			return "", err
		}
	}
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=demo", "-c", "user.email=demo@example.org"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("the demo needs git, and `git %s` failed: %w: %s", args[0], err, out)
		}
		return strings.TrimSpace(string(out)), nil
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message=Say hello"},
	} {
		if _, err := git(args...); err != nil {
			return "", err
		}
	}
	return git("rev-parse", "HEAD")
}

// show delivers the push, says where to look, and prints the run's log.
func (d *demonstration) show(ctx context.Context, address string) error {
	out := d.app.out
	fmt.Fprintf(out, "docket is listening on http://%s/\n\n", address)
	run, err := d.push(ctx, address)
	if err != nil {
		return err
	}
	if err := d.waitFor(ctx, run); err != nil {
		return err
	}
	token, _, err := d.appliance.store.CreateLoginLink(ctx, "", ci.By{Kind: ci.ByServer, Name: "demo"})
	if err != nil {
		return err
	}
	exe := os.Args[0]
	fmt.Fprintf(out, `
Open the page; this link signs one browser in, once:

  http://%[4]s/login/link?token=%[7]s

Or look around in another terminal:

  %[1]s runs list -c %[2]s
  %[1]s runs show %[3]s -c %[2]s
  %[1]s receipts list -c %[2]s
  %[1]s runs start hello --input greeting=goodbye -c %[2]s

The API is at http://%[4]s/api/v1 (its token is in %[5]s).
Ctrl-C ends the demo and removes %[6]s.
`, exe, d.config, run, address, filepath.Join(d.dir, initTokenFile), d.dir, token)
	return nil
}

// push delivers a signed push of the demo's commit, as GitHub would.
func (d *demonstration) push(ctx context.Context, address string) (run string, err error) {
	payload, err := json.Marshal(map[string]any{
		"ref": "refs/heads/main", "before": strings.Repeat("0", 40), "after": d.commit, "created": true,
		"repository":  map[string]any{"id": 1, "full_name": demoRepository, "default_branch": "main"},
		"pusher":      map[string]any{"name": "demo"},
		"sender":      map[string]any{"login": "demo"},
		"head_commit": map[string]any{"id": d.commit, "message": "Say hello"},
	})
	if err != nil {
		return "", err
	}
	secret := d.appliance.config.Integrations[0].WebhookSecrets[0]
	header := hookHeader(ci.ProviderGitHub, ci.EventPush, newGUID(d.app.now()), secret, payload)
	reply, err := postHook(ctx, "http://"+address+"/hooks/demo", header, payload)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var accepted struct {
		Receipt string `json:"receipt"`
		Runs    []struct {
			ID string `json:"id"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(body, &accepted); err != nil || reply.StatusCode != http.StatusAccepted || len(accepted.Runs) != 1 {
		return "", fmt.Errorf("the demo's push was answered with %s: %s", reply.Status, body)
	}
	fmt.Fprintf(d.app.out, "Delivered a signed push of commit %s: 202, so it is on disk.\n  receipt %s\n  run     %s\n\n",
		ci.ShortCommit(d.commit), accepted.Receipt, accepted.Runs[0].ID)
	return accepted.Runs[0].ID, nil
}

// waitFor waits for a run's end and prints its log.
func (d *demonstration) waitFor(ctx context.Context, id string) error {
	changed, stop := d.appliance.store.Watch(store.TopicRuns)
	defer stop()
	for {
		run, err := d.appliance.store.Run(id)
		if err != nil {
			return err
		}
		if run.State.Final() {
			fmt.Fprintf(d.app.out, "Run %s %s after %s. Its log:\n", id, run.State, run.FinishedAt.Sub(run.CreatedAt.Time))
			return d.printLog(run)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *demonstration) printLog(run ci.Run) error {
	log, err := d.appliance.store.Logs().Open(run.ID, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	for {
		c, err := log.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Step < 0 || c.Step >= len(run.Steps) {
			continue
		}
		for line := range strings.Lines(string(c.Data)) {
			fmt.Fprintf(d.app.out, "  %-8s %s", run.Steps[c.Step].Name, line)
		}
	}
}
