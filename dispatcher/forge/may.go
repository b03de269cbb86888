package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// String names the permission as GitHub's settings do.
func (n Need) String() string {
	switch n {
	case Statuses:
		return "Commit statuses: read and write"
	case Checks:
		return "Checks: read and write"
	case Contents:
		return "Contents: read"
	case Heads:
		return "Contents: read and Pull requests: read"
	case Hooks:
		return "Webhooks: read"
	}
	return "Webhooks: read and write"
}

// May says whether the integration's token or App may do in a project's
// repository what a need stands for; nil if so. Nothing changes at GitHub: an
// App is asked for a token that may, and whether a token may write statuses is
// tried with a commit that no repository has.
//
// Errors: as those of Forge.Deliveries; CodeForbidden names the permission.
func (f *Forge) May(ctx context.Context, project ci.Project, need Need) error {
	in, err := f.integration(project.Integration)
	if err != nil {
		return err
	}
	owner, name, err := splitRepository(project.Repository)
	if err != nil {
		return err
	}
	a := Access{Integration: in.Name, Repository: project.Repository, Need: need}
	doing := "look what may be done in " + project.Repository
	if in.App != nil {
		_, err := f.token(ctx, in, a)
		var answer *AnswerError
		if errors.As(err, &answer) && answer.Status == http.StatusUnprocessableEntity {
			return ci.Wrap(ci.CodeForbidden, err, "the App lacks the repository permission %s in %s; grant it in the App's settings, and accept it for the installation", need, project.Repository)
		}
		return f.judge(in, doing, nil, err)
	}
	resp, err := f.Do(ctx, a, func(ctx context.Context, c *github.Client) (resp *github.Response, err error) {
		if need == Statuses {
			_, resp, err = c.Repositories.CreateStatus(ctx, owner, name, strings.Repeat("0", 40),
				&github.RepoStatus{State: github.String("pending"), Context: github.String("docket")})
		} else {
			_, resp, err = c.Repositories.Get(ctx, owner, name)
		}
		return resp, err
	})
	if resp == nil || resp.Response == nil {
		return f.judge(in, doing, resp, err)
	}
	switch {
	case need == Statuses && resp.StatusCode == http.StatusUnprocessableEntity:
		return nil
	case need == Statuses && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound):
		if err := f.judge(in, doing, resp, err); errors.As(err, new(*LimitError)) {
			return err
		}
		return ci.Wrap(ci.CodeForbidden, err, "the token lacks the repository permission %s in %s (a classic one: the scope repo:status), or may not see it; grant it in the token's settings", need, project.Repository)
	}
	return f.judge(in, doing, resp, err)
}
