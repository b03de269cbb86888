package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/store/ci"
)

// secretFiles is a file system of secrets for parseConfig.
func secretFiles(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if s, ok := files[path]; ok {
			return []byte(s), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
}

func noEnv(string) string { return "" }

func mustParse(t *testing.T, text string, files map[string]string) *ci.Config {
	t.Helper()
	cfg, err := parseConfig("/etc/docket/docket.yaml", text, noEnv, secretFiles(files))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// exampleSecrets are the files that the commented example names.
func exampleSecrets() map[string]string {
	files := map[string]string{"/etc/docket/slack.url": "https://hooks.slack.example/T/B/x\n"}
	for _, name := range []string{"admin.token", "github.secret", "github.token", "npm.token", "notify.secret", "gitea.secret", "gitea.token", "otlp.authorization"} {
		files["/etc/docket/"+name] = "value-of-" + name + "\n"
	}
	return files
}

// Ensure that the commented example is a valid configuration that says what
// its comments say.
func TestExampleConfiguration(t *testing.T) {
	cfg := mustParse(t, mustRead(t, "../../packaging/docket.yaml"), exampleSecrets())
	secret := func(name string) ci.Secret {
		return ci.NewSecret("/etc/docket/"+name, "value-of-"+name)
	}
	hook := "https://hooks.example.org/ci"
	want := &ci.Config{
		DataDir:   "/var/lib/docket",
		PublicURL: "https://ci.example.org",
		Listen:    []ci.Listen{{Address: "127.0.0.1:8080"}, {Address: "0.0.0.0:9000", Serve: []string{"hooks"}}},
		Limits:    ci.Limits{Body: 25 << 20, ConcurrentRuns: 2, Log: 16 << 20, FreeSpace: 1 << 30},

		Retention:     ci.Retention{Runs: 8760 * time.Hour, Bodies: 2160 * time.Hour, Logs: 2160 * time.Hour},
		Backup:        &ci.Backup{Dir: "/var/backups/docket", Every: 24 * time.Hour, Keep: 7},
		ShutdownGrace: 30 * time.Second,
		ScanInterval:  5 * time.Second,
		Log:           ci.LogConfig{Level: "info", Format: ci.LogText},
		Traces: &ci.Traces{
			Endpoint: "https://collector.example.org:4318/v1/traces", Sample: 1,
			Headers: map[string]ci.Secret{"Authorization": secret("otlp.authorization")},
		},
		AdminToken: secret("admin.token"),
		Integrations: []ci.Integration{{
			Name: "github", Provider: "github", APIURL: "https://api.github.com/",
			WebhookSecrets: []ci.Secret{secret("github.secret")},
			Installations:  []int64{12345},
			Token:          secret("github.token"),
			Report:         ci.ReportStatuses, RecoverEvery: 5 * time.Minute,
		}, {
			Name: "gitea", Provider: "gitea", APIURL: "https://gitea.example.org/api/v1/",
			WebhookSecrets: []ci.Secret{secret("gitea.secret")},
			Token:          secret("gitea.token"),
			Report:         ci.ReportStatuses, RecoverEvery: 5 * time.Minute,
		}},
		Projects: []ci.Project{{
			Name: "api", Integration: "github", Repository: "acme/api", CloneURL: "https://github.com/acme/api.git", DefaultBranch: "main",
			On: ci.On{
				Push:        &ci.OnPush{Branches: []string{"main", "release/**"}, Tags: []string{"v*"}},
				PullRequest: &ci.OnPullRequest{Branches: []string{"main"}},
				Schedule:    []ci.Schedule{{Cron: "30 2 * * 1-5", Timezone: "America/New_York", Branch: "main"}},
			},
			Concurrency: ci.Concurrency{Group: "production"}, HoldTimeout: 168 * time.Hour, OnSkip: ci.OnSkipSilent, Recover: ci.RecoverList,
			Supersede: ci.SupersedePending, OnInterrupt: ci.OnInterruptStop, Replays: ci.ReplaysAccept,
			Timeout: 30 * time.Minute, Grace: 10 * time.Second,
			Inputs:  []ci.Input{{Name: "target", Default: "staging", Options: []string{"staging", "production"}}},
			Env:     map[string]string{"GOFLAGS": "-mod=readonly"},
			Secrets: map[string]ci.Secret{"NPM_TOKEN": secret("npm.token")},
			Steps:   []ci.Step{{Name: "test", Run: "make test"}, {Name: "deploy", Run: `./deploy.sh "$TARGET"`, Deploy: true}},
			Notify: []ci.Notify{
				{Kind: ci.OutboxWebhook, Target: hook, URL: ci.NewSecret(hook, hook), Secret: secret("notify.secret"), Events: []string{"run.finished"}},
				{
					Kind: ci.OutboxSlack, Target: "/etc/docket/slack.url",
					URL:    ci.NewSecret("/etc/docket/slack.url", "https://hooks.slack.example/T/B/x"),
					Events: []string{"run.failed", "run.recovered"},
				},
			},
		}, {
			Name: "site", Integration: "github", Repository: "acme/site", CloneURL: "https://github.com/acme/site.git", DefaultBranch: "main",
			On:        ci.On{Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{}},
			Supersede: ci.SupersedePending, OnInterrupt: ci.OnInterruptStop, Replays: ci.ReplaysAccept,
			Timeout: time.Hour, Grace: 10 * time.Second, Pipeline: ".docket.yml",
			HoldTimeout: 168 * time.Hour, OnSkip: ci.OnSkipSilent, Recover: ci.RecoverList,
		}},
	}
	sameSecret := cmp.Comparer(func(a, b ci.Secret) bool { return a.Name == b.Name && a.Reveal() == b.Reveal() })
	if d := cmp.Diff(want, cfg, sameSecret); d != "" {
		t.Error(d)
	}
}

// Ensure that the commented example names every key that docket knows.
func TestExampleNamesEveryKey(t *testing.T) {
	text := mustRead(t, "../../packaging/docket.yaml")
	for s, m := range configKeys() {
		for _, k := range m.keys {
			if !strings.Contains(text, k.name+":") {
				t.Errorf("packaging/docket.yaml does not name %s of %s", k.name, s)
			}
		}
	}
}

// Ensure that what is left out has its documented default.
func TestConfigDefaults(t *testing.T) {
	cfg := mustParse(t, "data_dir: data\n", nil)
	want := &ci.Config{
		DataDir:       "/etc/docket/data",
		Listen:        []ci.Listen{{Address: "127.0.0.1:8080"}},
		Limits:        ci.Limits{Body: 25 << 20, ConcurrentRuns: 2, Log: 16 << 20, FreeSpace: 1 << 30},
		ShutdownGrace: 30 * time.Second,
		ScanInterval:  5 * time.Second,
		Log:           ci.LogConfig{Level: "info", Format: ci.LogText},
	}
	if d := cmp.Diff(want, cfg, cmp.AllowUnexported(ci.Secret{})); d != "" {
		t.Error(d)
	}
}

// Ensure that text keeps the form in which it was written, and that aliases,
// merges, CRLF and a BOM are read as YAML has them.
func TestConfigReadsYAML(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(`data_dir: /d
integrations:
  - &gh {name: github, webhook_secrets: [{file: s}]}
  - <<: *gh
    name: other
projects:
  - name: one
    integration: github
    repository: Acme/API.git
    default_branch: 1.10
    on: {push: {branches: ["**", "!wip/**"]}, pull_request: }
    env: &env {VERSION: 1.10, ON: yes, FLAG: true, HEX: 0x1F}
    steps:
      - name: multi
        run: |
          a
          b
  - name: two
    integration: other
    repository: acme/api
    on: {}
    env: *env
    pipeline: ci/docket.yml
`, "\n", "\r\n")
	cfg := mustParse(t, text, map[string]string{"/etc/docket/s": "k\r\n"})
	one, two := cfg.Projects[0], cfg.Projects[1]
	env := map[string]string{"VERSION": "1.10", "ON": "yes", "FLAG": "true", "HEX": "0x1F"}
	for what, d := range map[string]string{
		"env":          cmp.Diff(env, one.Env),
		"aliased env":  cmp.Diff(env, two.Env),
		"branch":       cmp.Diff("1.10", one.DefaultBranch),
		"repository":   cmp.Diff("Acme/API", one.Repository),
		"clone_url":    cmp.Diff("https://github.com/Acme/API.git", one.CloneURL),
		"run":          cmp.Diff("a\nb\n", one.Steps[0].Run),
		"on":           cmp.Diff(ci.On{Push: &ci.OnPush{Branches: []string{"**", "!wip/**"}}, PullRequest: &ci.OnPullRequest{}}, one.On),
		"empty on":     cmp.Diff(ci.On{}, two.On),
		"merged name":  cmp.Diff("other", cfg.Integrations[1].Name),
		"merged value": cmp.Diff("k", cfg.Integrations[1].WebhookSecrets[0].Reveal()),
	} {
		if d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// Ensure that a secret loses one newline at its end and nothing else.
func TestSecretTrimming(t *testing.T) {
	for content, want := range map[string]string{
		"s": "s", "s\n": "s", "s\r\n": "s", "s\n\n": "s\n", " s \n": " s ", "a\nb\n": "a\nb",
	} {
		cfg := mustParse(t, "data_dir: /d\nintegrations: [{name: g, webhook_secrets: [{file: /s}]}]\n", map[string]string{"/s": content})
		if got := cfg.Integrations[0].WebhookSecrets[0].Reveal(); got != want {
			t.Errorf("%q was read as %q, want %q", content, got, want)
		}
	}
}

// Ensure that a secret from the environment is named after its variable.
func TestSecretFromEnvironment(t *testing.T) {
	env := func(k string) string { return map[string]string{"HOOK": "k"}[k] }
	cfg, err := parseConfig("docket.yaml", "data_dir: /d\nintegrations: [{name: g, webhook_secrets: [{env: HOOK}]}]\n", env, secretFiles(nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := cfg.Integrations[0].WebhookSecrets[0]; s.Name != "env HOOK" || s.Reveal() != "k" {
		t.Errorf("got %q %q", s.Name, s.Reveal())
	}
}

// Ensure that a file that cannot be read says so in a sentence.
func TestConfigFileTrouble(t *testing.T) {
	dir := t.TempDir()
	for what, c := range map[string]struct{ path, content, want string }{
		"a missing file":        {filepath.Join(dir, "none.yaml"), "", "there is no such file; write one with `docket init`"},
		"a directory":           {dir, "", "this is a directory; name the file in it"},
		"an empty file":         {filepath.Join(dir, "empty.yaml"), "\n", "the file is empty; `docket init` writes one"},
		"nothing but comments":  {filepath.Join(dir, "comments.yaml"), "# a\n---\n# b\n", "the file is empty"},
		"a file that is not it": {filepath.Join(dir, "big.yaml"), strings.Repeat("a", maxConfigBytes+1), "the file is over 1 MiB"},
	} {
		if c.content != "" {
			mustWrite(t, c.path, c.content)
		}
		_, err := Load(c.path, noEnv)
		var faulty *ConfigError
		if !errors.As(err, &faulty) || !strings.HasPrefix(err.Error(), c.path+": "+c.want) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Ensure that a secret's file is a regular, bounded file.
func TestSecretFileTrouble(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	mustWrite(t, big, strings.Repeat("s", maxSecretBytes+1))
	for path, want := range map[string]string{dir: "not a regular file", big: "over 64 KiB", filepath.Join(dir, "none"): "does not exist"} {
		_, err := readSecretFile(path)
		if err == nil || !strings.Contains(fileTrouble(path, err), want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// Ensure that a running server is found though the rest of the file is faulty.
func TestDataDirOfFaultyConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docket.yaml")
	mustWrite(t, path, "data_dir: data\nbogus: 1\nprojects: [{}]\n")
	got, err := dataDirOf(path)
	if want := filepath.Join(filepath.Dir(path), "data"); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	mustWrite(t, path, "bogus: 1\n")
	if _, err := dataDirOf(path); err == nil || !strings.Contains(err.Error(), "has no data_dir") {
		t.Errorf("got %v", err)
	}
}

// Ensure that no text makes the reader panic, that each is either a sound
// configuration or at least one fault with a place in the file, and that a
// comment before it changes nothing but the places.
func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile("../../packaging/docket.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	for _, provider := range []string{ci.ProviderGitHub, ci.ProviderGitea} {
		start, _ := starterOf(provider)
		f.Add(initConfig(start, false))
	}
	for _, s := range []string{
		"a: &a [*a]", "<<: *x", "<<: &a {<<: *a}", "? [a]\n: b", "!!set {a}", "- - - -", "{", "a: |\n", "&a &b c", "---\n...\n---\n", "%TAG ! x",
		"\"\\x\"", "projects: [null, {}, [], *a]", "data_dir: !!binary x", "listen: {a: b}\n", "a:\n\t- b", "\xff", "a: 'x\n\n", "on: {? a}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := parseConfig("docket.yaml", text, noEnv, secretFiles(nil))
		if (cfg == nil) == (err == nil) {
			t.Fatal("neither a configuration nor a fault, or both")
		}
		if err == nil {
			mustBeSound(t, cfg)
		}
		if !strings.HasPrefix(text, "\ufeff") && len(text) < maxConfigBytes-4 {
			again, e := parseConfig("docket.yaml", "# x\n"+text, noEnv, secretFiles(nil))
			if (e == nil) != (err == nil) || e == nil && asJSON(t, cfg) != asJSON(t, again) {
				t.Fatalf("after a comment: %v, before: %v", e, err)
			}
		}
		if err == nil {
			return
		}
		var faulty *ConfigError
		if !errors.As(err, &faulty) || len(faulty.Faults) == 0 {
			t.Fatalf("not a list of faults: %v", err)
		}
		lines := strings.Count(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + strings.Count(strings.ReplaceAll(text, "\r\n", ""), "\r") + 1
		for _, fault := range faulty.Faults {
			if fault.Line < 0 || fault.Line > lines || fault.Message == "" {
				t.Errorf("fault without a place: %+v", fault)
			}
		}
		_ = fmt.Sprint(err)
	})
}

// mustBeSound checks what the rest of docket relies on.
func mustBeSound(t *testing.T, cfg *ci.Config) {
	t.Helper()
	if cfg.DataDir == "" || cfg.Limits.Body <= 0 || cfg.Limits.ConcurrentRuns <= 0 {
		t.Fatalf("data_dir %q, limits %+v", cfg.DataDir, cfg.Limits)
	}
	names := map[string]bool{}
	for _, p := range cfg.Projects {
		if names[p.Name] || !filepath.IsLocal(p.Name) || strings.ContainsAny(p.Name, "/\\") || p.Name[0] == '.' {
			t.Fatalf("a project named %q", p.Name)
		}
		names[p.Name] = true
		if cfg.Integration(p.Integration) == nil || (len(p.Steps) > 0) == (p.Pipeline != "") || p.CloneURL == "" || strings.HasPrefix(p.CloneURL, "-") || strings.Contains(p.CloneURL, "::") {
			t.Fatalf("project %+v", p)
		}
		if p.Pipeline != "" && !filepath.IsLocal(p.Pipeline) {
			t.Fatalf("pipeline %q", p.Pipeline)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
