package pipeline_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func config() (*ci.Config, *ci.Project) {
	cfg := &ci.Config{
		Integrations: []ci.Integration{{Name: "github", Provider: "github", Token: ci.NewSecret("token", "t0p")}},
		Projects: []ci.Project{{
			Name: "api", Integration: "github", Repository: "acme/api", RepositoryID: 7,
			CloneURL: "https://github.com/acme/api.git", DefaultBranch: "main",
			Supersede: ci.SupersedeRunning, Git: ci.GitOptions{Submodules: true, Depth: 5},
			Timeout: 30 * time.Minute, Grace: 10 * time.Second,
			Inputs: []ci.Input{
				{Name: "target", Default: "staging", Options: []string{"staging", "production"}},
				{Name: "note"},
			},
			Env:     map[string]string{"GOFLAGS": "-mod=readonly", "A": ""},
			Secrets: map[string]ci.Secret{"NPM_TOKEN": ci.NewSecret("npm", "s3cret"), "AWS": ci.NewSecret("aws", "s3cret")},
			Steps:   []ci.Step{{Name: "test", Run: "make test"}, {Name: "deploy", Run: `./deploy.sh "$TARGET"`, Deploy: true}},
			Notify: []ci.Notify{
				{Kind: ci.OutboxWebhook, Target: "https://hooks.example.org/ci", URL: ci.NewSecret("", "https://hooks.example.org/ci"), Secret: ci.NewSecret("n", "s3cret"), Events: []string{ci.RunFinished}},
				{Kind: ci.OutboxSlack, Target: "slack.url", URL: ci.NewSecret("slack.url", "https://s3cret"), Events: []string{ci.RunFailed}},
			},
		}},
	}
	return cfg, &cfg.Projects[0]
}

// Ensure that a run's status goes to its own provider.
func TestSpecOf_NamesTheReporter(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(*ci.Integration)
		want   string
	}{
		"GitHub":                {func(*ci.Integration) {}, ""},
		"Gitea":                 {func(in *ci.Integration) { in.Provider = ci.ProviderGitea }, ci.OutboxGiteaStatus},
		"Gitea without a token": {func(in *ci.Integration) { in.Provider, in.Token = ci.ProviderGitea, ci.Secret{} }, ""},
	} {
		cfg, p := config()
		tt.change(&cfg.Integrations[0])
		if s := pipeline.SpecOf(cfg, p); s.Reporter != tt.want || s.Report != !cfg.Integrations[0].Token.IsZero() {
			t.Errorf("%s: report %t by %q", what, s.Report, s.Reporter)
		}
	}
}

// Ensure that a run knows as which installation of the App it is told: its
// delivery's, else the only configured one.
func TestCompile_NamesTheInstallation(t *testing.T) {
	for what, tt := range map[string]struct {
		app        bool
		configured []int64
		delivered  int64
		want       int64
	}{
		"the delivery's":   {true, []int64{1, 2}, 2, 2},
		"the only one":     {true, []int64{1}, 0, 1},
		"one of several":   {true, []int64{1, 2}, 0, 0},
		"a token has none": {false, []int64{1}, 1, 0},
	} {
		cfg, p := config()
		in := &cfg.Integrations[0]
		in.Installations = tt.configured
		if tt.app {
			in.App, in.Token = &ci.App{ID: 3}, ci.Secret{}
		}
		e := ci.Event{Kind: ci.EventPush, Ref: "refs/heads/main", Branch: "main", Commit: strings.Repeat("a", 40), Installation: tt.delivered}
		if d := pipeline.Compile(cfg, p, &e, ""); d.Installation != tt.want {
			t.Errorf("%s: %d, want %d", what, d.Installation, tt.want)
		}
	}
}

// Ensure that a frozen spec's JSON, and so its digest, stays what it is: specs
// of older versions lie in stores.
func TestSpecOf_IsTheGoldenFile(t *testing.T) {
	cfg, p := config()
	spec := pipeline.SpecOf(cfg, p)
	got, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/spec.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	const digest = "sha256:002f85f96bd0ba9b4cf49e3ac7dd271a966934d0a13847538968c07b2e24979c"
	if spec.Digest() != digest {
		t.Errorf("digest %s, want %s", spec.Digest(), digest)
	}
	if strings.Contains(string(got), "s3cret") {
		t.Error("a secret's value is in the spec")
	}
}

func TestSpecOf_SharesNothingWithTheConfiguration(t *testing.T) {
	cfg, p := config()
	spec := pipeline.SpecOf(cfg, p)
	was := spec.Digest()
	p.Env["GOFLAGS"], p.Steps[0].Run, p.Notify[0].Events[0] = "x", "x", "x"
	if spec.Digest() != was {
		t.Error("a change of the configuration reached a frozen spec")
	}
}

func TestSpecOf_ReportsOnlyWithAToken(t *testing.T) {
	cfg, p := config()
	cfg.Integrations[0].Token = ci.Secret{}
	if pipeline.SpecOf(cfg, p).Report {
		t.Error("Report without a token")
	}
	p.Integration = "other"
	if pipeline.SpecOf(cfg, p).Report {
		t.Error("Report without an integration")
	}
}

func TestCompile(t *testing.T) {
	cfg, p := config()
	got := pipeline.Compile(cfg, p, branchPush("main"), "github/-/1")
	want := ci.Draft{
		Project: "api", Integration: "github", State: ci.Queued,
		Cause: ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/-/1", Event: "push", Actor: "octocat"},
		Source: ci.Source{
			Repository: "acme/api", RepositoryID: 7, Ref: "refs/heads/main", Branch: "main", Commit: shaA, Before: shaB,
		},
		Spec:    pipeline.SpecOf(cfg, p),
		Inputs:  map[string]string{"target": "staging", "note": ""},
		Context: "docket/api", Scope: "api push 7 refs/heads/main", Supersede: ci.SupersedeRunning, Title: "Add x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestCompile_StatesAndJobs(t *testing.T) {
	own, fork := pullRequest("opened", "main"), pullRequest("opened", "main")
	fork.PullRequest.Fork = true
	annotated := tagPush("v1")
	annotated.Peel = true
	for what, tc := range map[string]struct {
		event    *ci.Event
		pipeline string
		state    ci.State
		fork     bool
		job      *ci.Job
		context  string
		scope    string
	}{
		"a pull request":                       {own, "", ci.Queued, false, nil, "docket/api/pr", "api pull_request 7 #3"},
		"a fork's is held":                     {fork, "", ci.Held, true, nil, "docket/api/pr", "api pull_request 7 #3"},
		"a pipeline file is read first":        {own, ".docket.yml", ci.Preparing, false, &ci.Job{Pipeline: ".docket.yml"}, "docket/api/pr", "api pull_request 7 #3"},
		"a fork's too, and it is a fork still": {fork, ".docket.yml", ci.Preparing, true, &ci.Job{Pipeline: ".docket.yml"}, "docket/api/pr", "api pull_request 7 #3"},
		"a tag":                                {tagPush("v1"), "", ci.Queued, false, nil, "docket/api", ""},
		"a tag that may be annotated":          {annotated, "", ci.Preparing, false, &ci.Job{Resolve: true}, "docket/api", ""},
		"such a tag with a pipeline file":      {annotated, "ci.yml", ci.Preparing, false, &ci.Job{Resolve: true, Pipeline: "ci.yml"}, "docket/api", ""},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, p := config()
			p.Pipeline = tc.pipeline
			d := pipeline.Compile(cfg, p, tc.event, "r")
			if d.State != tc.state || d.Fork != tc.fork || d.Context != tc.context || d.Scope != tc.scope || d.Source.Commit != shaA {
				t.Errorf("state %s, fork %v, context %s, scope %q, commit %s", d.State, d.Fork, d.Context, d.Scope, d.Source.Commit)
			}
			if diff := cmp.Diff(tc.job, d.Job); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestCompile_KeepsRecordsSmallAndApart(t *testing.T) {
	cfg, p := config()
	p.Supersede = ""
	e := pullRequest("opened", "main")
	e.Repository.FullName = ""
	e.Message, e.PullRequest.Title = "one\ntwo", strings.Repeat("é", 5000)
	d := pipeline.Compile(cfg, p, e, "r")
	if d.Title != "one" || d.Supersede != ci.SupersedePending || d.Source.Repository != "acme/api" {
		t.Errorf("title %q, supersede %q, repository %q", d.Title, d.Supersede, d.Source.Repository)
	}
	if got := d.Source.PullRequest.Title; len(got) > 200 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
		t.Errorf("the pull request's title has %d bytes: %q", len(got), got)
	}
	if len(e.PullRequest.Title) != 10000 {
		t.Error("the event was changed")
	}
}

func TestCompileRequest(t *testing.T) {
	by := ci.By{Kind: ci.ByToken, Name: "alice"}
	for what, tc := range map[string]struct {
		request  ci.Request
		pipeline string
		state    ci.State
		job      *ci.Job
		ref      string
	}{
		"nothing said: the default branch's head": {ci.Request{}, "", ci.Preparing, &ci.Job{Resolve: true}, "refs/heads/main"},
		"a branch":                     {ci.Request{Branch: "dev"}, "", ci.Preparing, &ci.Job{Resolve: true}, "refs/heads/dev"},
		"a tag":                        {ci.Request{Tag: "v1"}, "", ci.Preparing, &ci.Job{Resolve: true}, "refs/tags/v1"},
		"a commit":                     {ci.Request{Commit: shaA}, "", ci.Queued, nil, "refs/heads/main"},
		"a commit and a pipeline file": {ci.Request{Commit: shaA}, "ci.yml", ci.Preparing, &ci.Job{Pipeline: "ci.yml"}, "refs/heads/main"},
		"a branch and a pipeline file": {ci.Request{Branch: "dev"}, "ci.yml", ci.Preparing, &ci.Job{Resolve: true, Pipeline: "ci.yml"}, "refs/heads/dev"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, p := config()
			p.Pipeline = tc.pipeline
			tc.request.Inputs = map[string]string{"target": "production"}
			tc.request.Reason = "because\nof x"
			n := mustNormalize(t, p, tc.request)
			want := ci.Draft{
				Project: "api", Integration: "github", State: tc.state, Job: tc.job,
				Cause:  ci.Cause{Kind: ci.CauseRequest, Event: "manual", Actor: "alice", Reason: "because\nof x"},
				Source: ci.Source{Repository: "acme/api", RepositoryID: 7, Ref: tc.ref, Branch: n.Branch, Tag: n.Tag, Commit: tc.request.Commit},
				Spec:   pipeline.SpecOf(cfg, p),
				Inputs: map[string]string{"target": "production", "note": ""}, Context: "docket/api", Supersede: ci.SupersedeRunning, Title: "because",
			}
			if diff := cmp.Diff(want, pipeline.CompileRequest(cfg, p, n, by)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// Ensure that a spec names who tells the provider of its runs.
func TestSpecOf_Reporter(t *testing.T) {
	for want, in := range map[string]ci.Integration{
		"":                   {Provider: ci.ProviderGitHub, Report: ci.ReportStatuses},
		ci.OutboxGitHubCheck: {Provider: ci.ProviderGitHub, Report: ci.ReportChecks, App: &ci.App{ID: 1}},
		ci.OutboxGiteaStatus: {Provider: ci.ProviderGitea, Report: ci.ReportStatuses, Token: ci.NewSecret("t", "t")},
	} {
		in.Name = "x"
		cfg := &ci.Config{Integrations: []ci.Integration{in}}
		if got := pipeline.SpecOf(cfg, &ci.Project{Integration: "x"}).Reporter; got != want {
			t.Errorf("%s, %s: got %q, want %q", in.Provider, in.Report, got, want)
		}
	}
}
