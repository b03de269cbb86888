package forgetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

// CheckRun is one check run and what it was told, in order.
type CheckRun struct {
	ID                         int64
	Repository, Commit         string
	Name, ExternalID           string
	Status, Conclusion         string
	DetailsURL, Title, Summary string
	Annotations                []*github.CheckRunAnnotation
	StartedAt, CompletedAt     time.Time
	// History is status, or completed/conclusion, after each call.
	History []string
}

type checkRun = CheckRun

// CheckRuns returns the check runs of a commit, in the order in which they
// were made; "" stands for every commit.
func (g *GitHub) CheckRuns(commit string) (list []CheckRun) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.checks {
		if commit == "" || c.Commit == commit {
			one := *c
			one.History = slices.Clone(c.History)
			list = append(list, one)
		}
	}
	return list
}

// checkInput is what creating and updating have in common.
type checkInput struct {
	Name        *string                `json:"name"`
	HeadSHA     string                 `json:"head_sha"`
	DetailsURL  *string                `json:"details_url"`
	ExternalID  *string                `json:"external_id"`
	Status      *string                `json:"status"`
	Conclusion  *string                `json:"conclusion"`
	StartedAt   *github.Timestamp      `json:"started_at"`
	CompletedAt *github.Timestamp      `json:"completed_at"`
	Output      *github.CheckRunOutput `json:"output"`
}

func (g *GitHub) createCheck(r *http.Request, c caller, repo *repository) answer {
	in, no := readCheck(r, c)
	switch {
	case no != nil:
		return *no
	case in.Name == nil || *in.Name == "":
		return refusal(http.StatusUnprocessableEntity, `Invalid request. "name" wasn't supplied.`)
	case in.HeadSHA == "":
		return refusal(http.StatusUnprocessableEntity, `Invalid request. "head_sha" wasn't supplied.`)
	case !repo.has(in.HeadSHA):
		return refusal(http.StatusUnprocessableEntity, "No commit found for SHA: %s", in.HeadSHA)
	}
	run := &checkRun{ID: g.id(), Repository: repo.name, Commit: in.HeadSHA, Status: "queued"}
	g.apply(run, in)
	g.checks = append(g.checks, run)
	return answer{status: http.StatusCreated, body: run.show()}
}

func (g *GitHub) updateCheck(r *http.Request, c caller, repo *repository) answer {
	in, no := readCheck(r, c)
	if no != nil {
		return *no
	}
	id, _ := strconv.ParseInt(r.PathValue("check"), 10, 64)
	for _, run := range g.checks {
		if run.ID == id && run.Repository == repo.name {
			g.apply(run, in)
			return answer{status: http.StatusOK, body: run.show()}
		}
	}
	return notFound
}

// readCheck reads a request and refuses what GitHub would.
func readCheck(r *http.Request, c caller) (in checkInput, no *answer) {
	refuse := func(a answer) (checkInput, *answer) { return in, &a }
	if c.grant.installation == nil {
		return refuse(refusal(http.StatusForbidden, "You must authenticate via a GitHub App."))
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return refuse(refusal(http.StatusBadRequest, "Problems parsing JSON"))
	}
	status, conclusion := "", ""
	if in.Status != nil {
		status = *in.Status
	}
	if in.Conclusion != nil {
		conclusion = *in.Conclusion
	}
	switch {
	case in.Status != nil && !slices.Contains([]string{"queued", "in_progress", "completed"}, status):
		return refuse(invalid("%s is not a member of [queued, in_progress, completed]", status))
	case in.Conclusion != nil && !slices.Contains([]string{"success", "failure", "neutral", "cancelled", "timed_out", "action_required", "skipped"}, conclusion):
		return refuse(invalid("%q is not a member of the conclusions", conclusion))
	case status == "completed" && conclusion == "":
		return refuse(invalid("a conclusion is required for a completed check run"))
	case conclusion == "action_required" && in.DetailsURL == nil:
		return refuse(invalid("details_url is required for action_required"))
	}
	if o := in.Output; o != nil {
		if o.GetTitle() == "" || o.GetSummary() == "" {
			return refuse(invalid("output needs a title and a summary"))
		}
		if utf8.RuneCountInString(o.GetSummary()) > 65535 {
			return refuse(invalid("summary exceeds a maximum bytesize of 65535"))
		}
		if len(o.Annotations) > 50 {
			return refuse(invalid("No more than 50 items are allowed; %d were supplied.", len(o.Annotations)))
		}
		for _, a := range o.Annotations {
			if a.GetPath() == "" || a.GetStartLine() < 1 || a.GetEndLine() < a.GetStartLine() || a.GetMessage() == "" ||
				!slices.Contains([]string{"notice", "warning", "failure"}, a.GetAnnotationLevel()) {
				return refuse(invalid("an annotation is not valid"))
			}
		}
	}
	return in, nil
}

// apply changes a check run. One that is completed keeps its status and its
// conclusion, whatever it is told.
func (g *GitHub) apply(run *checkRun, in checkInput) {
	text := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	text(&run.Name, in.Name)
	text(&run.ExternalID, in.ExternalID)
	text(&run.DetailsURL, in.DetailsURL)
	if run.Status != "completed" {
		text(&run.Status, in.Status)
		text(&run.Conclusion, in.Conclusion)
		if in.Conclusion != nil {
			run.Status = "completed"
		}
	}
	if in.StartedAt != nil {
		run.StartedAt = in.StartedAt.Time
	}
	if in.CompletedAt != nil {
		run.CompletedAt = in.CompletedAt.Time
	}
	if o := in.Output; o != nil {
		run.Title, run.Summary = o.GetTitle(), o.GetSummary()
		run.Annotations = append(run.Annotations, o.Annotations...)
	}
	now := run.Status
	if run.Status == "completed" {
		now += "/" + run.Conclusion
	}
	run.History = append(run.History, now)
}

func (c *CheckRun) show() *github.CheckRun {
	out := &github.CheckRun{
		ID: &c.ID, HeadSHA: &c.Commit, ExternalID: &c.ExternalID, Name: &c.Name, Status: &c.Status, DetailsURL: &c.DetailsURL,
		App: &github.App{ID: github.Int64(AppID)},
	}
	if c.Conclusion != "" {
		out.Conclusion = &c.Conclusion
	}
	return out
}

// listChecks lists the check runs of a commit, newest first.
func (g *GitHub) listChecks(r *http.Request, _ caller, repo *repository) answer {
	q := r.URL.Query()
	var list []*github.CheckRun
	named := map[string]bool{}
	for _, c := range slices.Backward(g.checks) {
		if c.Repository != repo.name || c.Commit != r.PathValue("commit") ||
			q.Has("check_name") && q.Get("check_name") != c.Name ||
			q.Has("status") && q.Get("status") != c.Status ||
			q.Has("app_id") && q.Get("app_id") != strconv.Itoa(AppID) {
			continue
		}
		if q.Get("filter") != "all" && named[c.Name] {
			continue
		}
		named[c.Name] = true
		list = append(list, c.show())
	}
	part, next := page(r, list)
	return answer{http.StatusOK, &github.ListCheckRunsResults{Total: github.Int(len(list)), CheckRuns: part}, next}
}
