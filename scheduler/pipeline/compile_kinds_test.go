package pipeline_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func TestCompile_OtherKinds(t *testing.T) {
	paths := ci.Paths{Only: []string{"src/**"}}
	filtered := ci.On{Push: &ci.OnPush{Paths: paths}, PullRequest: &ci.OnPullRequest{Paths: paths}}
	for what, tc := range map[string]struct {
		on      ci.On
		event   *ci.Event
		state   ci.State
		job     *ci.Job
		context string
		ref     string
		commit  string
	}{
		"a merge group": {ci.On{MergeGroup: &ci.OnMergeGroup{}}, mergeGroup("checks_requested", "main"), ci.Queued, nil, "docket/api/pr", "refs/heads/gh-readonly-queue/main/pr-3", shaA},
		"a release":     {ci.On{Release: &ci.OnRelease{}}, release("published"), ci.Preparing, &ci.Job{Resolve: true}, "docket/api", "refs/tags/v1", ""},
		"a dispatch":    {ci.On{Dispatch: &ci.OnDispatch{}}, dispatch("deploy"), ci.Preparing, &ci.Job{Resolve: true}, "docket/api", "refs/heads/main", ""},
		"a push whose files git knows": {filtered, branchPush("x"), ci.Preparing, &ci.Job{Paths: &paths, PathsKey: "on.push", OnSkip: "report", Base: "main"},
			"docket/api", "refs/heads/x", shaA},
		"a push whose files are known": {filtered, with(branchPush("x"), func(e *ci.Event) { e.Changed = &ci.Changed{Paths: []string{"src/a"}} }), ci.Queued, nil,
			"docket/api", "refs/heads/x", shaA},
		"a pull request's files": {filtered, pullRequest("opened", "dev"), ci.Preparing, &ci.Job{Paths: &paths, PathsKey: "on.pull_request", OnSkip: "report", Base: "dev"},
			"docket/api/pr", "refs/pull/3/head", shaA},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, p := config()
			p.On, p.OnSkip = tc.on, ci.OnSkipReport
			d := pipeline.Compile(cfg, p, tc.event, "r")
			if d.State != tc.state || d.Context != tc.context || d.Source.Ref != tc.ref || d.Source.Commit != tc.commit || d.Fork || d.Skip {
				t.Errorf("%+v", d)
			}
			if diff := cmp.Diff(tc.job, d.Job); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			if d.Job != nil && d.Job.Paths != nil {
				d.Job.Paths.Only[0] = "x"
				if paths.Only[0] != "src/**" {
					t.Fatal("the job shares memory with the configuration")
				}
			}
		})
	}
}

// Ensure that a group is one for all runs of the projects that name it, or one
// for each ref of a project.
func TestCompile_Groups(t *testing.T) {
	cfg, p := config()
	p.HoldTimeout = time.Hour
	compile := func(c ci.Concurrency) (list []string) {
		p.Concurrency = c
		for _, e := range []*ci.Event{branchPush("main"), branchPush("dev"), pullRequest("opened", "main"), tagPush("main")} {
			d := pipeline.Compile(cfg, p, e, "r")
			if d.HoldFor != time.Hour {
				t.Errorf("held for %s", d.HoldFor)
			}
			list = append(list, d.Group)
		}
		n, err := pipeline.Normalize(p, ci.Request{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pipeline.CompileRequest(cfg, p, n, ci.By{}).Group)
		return append(list, pipeline.CompileSchedule(cfg, p, ci.Schedule{}, "s").Group)
	}
	for what, tc := range map[string]struct {
		c    ci.Concurrency
		want []string
	}{
		"none":    {ci.Concurrency{}, []string{"", "", "", "", "", ""}},
		"one":     {ci.Concurrency{Group: "eu"}, []string{"eu", "eu", "eu", "eu", "eu", "eu"}},
		"per ref": {ci.Concurrency{Group: "eu", PerRef: true}, []string{"eu api refs/heads/main", "eu api refs/heads/dev", "eu api refs/pull/3/head", "eu api refs/tags/main", "eu api refs/heads/main", "eu api refs/heads/main"}},
	} {
		if diff := cmp.Diff(tc.want, compile(tc.c)); diff != "" {
			t.Errorf("%s: want -, got +\n%s", what, diff)
		}
	}
}
