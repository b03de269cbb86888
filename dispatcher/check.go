package dispatcher

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/dispatcher/forge"
	"docket/store"
	"docket/store/ci"
)

// What GitHub's Checks API calls a check run's status and conclusion.
const (
	checkQueued     = "queued"
	checkInProgress = "in_progress"
	checkCompleted  = "completed"
)

// GitHubCheck keeps one check run at GitHub for each run, as the App of the
// integration. A check run is called by the run's context, and its external id
// is the run's.
//
// An answer that was lost makes no second one: its check run is found again by
// its external id before another is made. GitHub changes nothing of one that is
// completed, so a run that goes on after it waited for approval gets a new one
// of the same name, which is the one that GitHub shows.
type GitHubCheck struct {
	GitHub
	Run      func(id string) (ci.Run, error)
	Check    func(run string) (store.Check, error)
	SetCheck func(ctx context.Context, run string, c store.Check) error
}

// Send implements Adapter.
func (g *GitHubCheck) Send(ctx context.Context, e ci.OutboxEntry) Result {
	at, r := g.place(e)
	if r != nil {
		return *r
	}
	if at.in.App == nil {
		return Result{Outcome: Dead, Detail: fmt.Sprintf("only a GitHub App may write checks, and the integration %s has none any more; give it one and retry this entry, or discard it", at.in.Name)}
	}
	known, err := g.Check(e.Run)
	if err != nil {
		return Result{Outcome: Retry, Detail: "the run's check cannot be read from the store"}
	}
	run, err := g.Run(e.Run)
	if err != nil && ci.CodeOf(err) != ci.CodeNotFound {
		return Result{Outcome: Retry, Detail: "the run cannot be read from the store"}
	}
	b := checkOf(e, at.StatusPayload, run, g.pipelineFile(at.Project))
	now := known
	if !now.Takes(b.Conclusion) {
		if now, r = g.find(ctx, e, at, run, now); r != nil {
			return *r
		}
	}
	now, res := g.put(ctx, e, at, now, b)
	if res.Outcome == Sent && now != known {
		if err := g.SetCheck(ctx, e.Run, now); err != nil {
			return Result{Outcome: Retry, Detail: "the check run cannot be recorded"}
		}
	}
	return res
}

func (g *GitHubCheck) pipelineFile(project string) string {
	if p := g.Config().Project(project); p != nil {
		return p.Pipeline
	}
	return ""
}

// put tells a check run that takes it, or makes a new one.
func (g *GitHubCheck) put(ctx context.Context, e ci.OutboxEntry, at place, known store.Check, b checkBody) (now store.Check, res Result) {
	method, path := http.MethodPatch, fmt.Sprintf("repos/%s/%s/check-runs/%d", at.owner, at.repo, known.ID)
	if !known.Takes(b.Conclusion) {
		method, path, b.HeadSHA = http.MethodPost, fmt.Sprintf("repos/%s/%s/check-runs", at.owner, at.repo), at.Commit
	}
	var made github.CheckRun
	res = g.call(ctx, e, at, forge.Checks, func(ctx context.Context, c *github.Client) (*github.Response, error) {
		req, err := c.NewRequest(method, path, b)
		if err != nil {
			return nil, err
		}
		return c.Do(ctx, req, &made)
	})
	now = store.Check{ID: known.ID, Conclusion: b.Conclusion}
	if res.Outcome == Sent && method == http.MethodPost {
		if now.ID = made.GetID(); now.ID == 0 {
			res = Result{Outcome: Retry, Detail: host(at.in.APIURL) + " made a check run and did not say which"}
		}
	}
	return now, res
}

// maxPages bounds the search for a check run, a hundred on each.
const maxPages = 10

// find looks for a check run that was made without docket having heard of it:
// newer than the known one. Only where nothing can have been made yet GitHub is
// not asked. r is what becomes of the entry where it cannot be told.
func (g *GitHubCheck) find(ctx context.Context, e ci.OutboxEntry, at place, run ci.Run, known store.Check) (found store.Check, r *Result) {
	first := known.ID == 0 && (at.RunState == ci.Queued || at.RunState == ci.Held) && run.Attempt <= 1
	if first && e.Attempts <= 1 && !e.Retried {
		return known, nil
	}
	name, all := shorten(at.Context, maxContext), "all"
	for page := 1; page != 0 && page <= maxPages; {
		var list *github.ListCheckRunsResults
		var resp *github.Response
		res := g.call(ctx, e, at, forge.Checks, func(ctx context.Context, c *github.Client) (_ *github.Response, err error) {
			list, resp, err = c.Checks.ListCheckRunsForRef(ctx, at.owner, at.repo, at.Commit, &github.ListCheckRunsOptions{
				CheckName: &name, Filter: &all, AppID: &at.in.App.ID, ListOptions: github.ListOptions{Page: page, PerPage: 100},
			})
			return resp, err
		})
		if res.Outcome != Sent {
			return known, &res
		}
		if list == nil {
			return known, &Result{Outcome: Retry, Detail: host(at.in.APIURL) + " listed no check runs in a way that can be read"}
		}
		for _, c := range list.CheckRuns {
			if c.GetExternalID() == e.Run && c.GetApp().GetID() == at.in.App.ID && c.GetID() > known.ID {
				known = store.Check{ID: c.GetID(), Conclusion: c.GetConclusion()}
			}
		}
		page = resp.NextPage
	}
	return known, nil
}

// checkBody is what creating and updating a check run have in common; the
// library's types know no started_at where one is updated.
type checkBody struct {
	Name        string       `json:"name"`
	HeadSHA     string       `json:"head_sha,omitempty"`
	ExternalID  string       `json:"external_id"`
	DetailsURL  *string      `json:"details_url,omitempty"`
	Status      string       `json:"status"`
	Conclusion  string       `json:"conclusion,omitempty"`
	StartedAt   string       `json:"started_at,omitempty"`
	CompletedAt string       `json:"completed_at,omitempty"`
	Output      *checkOutput `json:"output,omitempty"`
}

type checkOutput struct {
	Title       string                       `json:"title"`
	Summary     string                       `json:"summary"`
	Annotations []*github.CheckRunAnnotation `json:"annotations,omitempty"`
}

// checkOf says in the Checks API's words what an entry tells. run is as it is
// now, its zero value where it is not on record any more.
func checkOf(e ci.OutboxEntry, p ci.StatusPayload, run ci.Run, pipelineFile string) checkBody {
	b := checkBody{
		Name: shorten(p.Context, maxContext), ExternalID: e.Run, DetailsURL: optional(p.TargetURL),
		Output: &checkOutput{Title: shorten(p.Description, maxCheckTitle), Summary: checkSummary(p, run)},
	}
	b.Status, b.Conclusion = conclude(p, run.Reason, b.DetailsURL != nil)
	if p.RunState == ci.Running || p.RunState.Final() {
		b.StartedAt = rfc3339(run.StartedAt)
	}
	if b.Conclusion == "" {
		return b
	}
	b.CompletedAt = rfc3339(e.CreatedAt)
	if p.RunState.Final() {
		if !run.FinishedAt.IsZero() {
			b.CompletedAt = rfc3339(run.FinishedAt)
		}
		b.Output.Annotations = annotations(run.Reason, pipelineFile)
	}
	return b
}

// conclude returns a check run's status and, at its end, its conclusion. What
// waits for approval needs somebody to act, but without an address to act at
// GitHub takes that as no conclusion.
func conclude(p ci.StatusPayload, reason string, address bool) (status, conclusion string) {
	switch p.RunState {
	case ci.Held:
		if address {
			return checkCompleted, "action_required"
		}
		return checkQueued, ""
	case ci.Running:
		return checkInProgress, ""
	case ci.Succeeded:
		return checkCompleted, "success"
	case ci.Failed:
		if reason == ci.ReasonTimedOut {
			return checkCompleted, "timed_out"
		}
		return checkCompleted, "failure"
	case ci.Interrupted:
		return checkCompleted, "failure"
	case ci.Superseded:
		return checkCompleted, "cancelled"
	case ci.Cancelled:
		if p.State == "success" {
			return checkCompleted, "skipped"
		}
		return checkCompleted, "cancelled"
	}
	return checkQueued, ""
}

func rfc3339(t ci.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
