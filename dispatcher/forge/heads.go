package forge

import (
	"context"
	"fmt"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// Head is where a branch, a tag or an open pull request is now.
type Head struct {
	Ref    string // full: refs/heads/..., refs/tags/... or refs/pull/N/head
	Commit string // lower-case hex; an annotated tag's is peeled
	Actor  string // who opened the pull request; "" for others
	// PullRequest is set for an open pull request.
	PullRequest *ci.PullRequest
}

// Heads lists the branches, tags and open pull requests of a project's
// repository, which project.Repository is to name as it is called now. Errors
// are those of Deliveries.
func (f *Forge) Heads(ctx context.Context, project ci.Project) ([]Head, error) {
	in, err := f.integration(project.Integration)
	if err != nil {
		return nil, err
	}
	owner, name, err := splitRepository(project.Repository)
	if err != nil {
		return nil, err
	}
	w := headWalk{f: f, in: in, owner: owner, name: name, access: Access{Integration: in.Name, Repository: project.Repository, Need: Heads}}
	for _, walk := range []func(context.Context) error{w.branches, w.tags, w.pulls} {
		if err := walk(ctx); err != nil {
			return nil, err
		}
	}
	return w.list, nil
}

// headWalk collects the heads of one repository.
type headWalk struct {
	f           *Forge
	in          *ci.Integration
	access      Access
	owner, name string
	list        []Head
}

// pages calls list for page after page until GitHub has no more.
func (w *headWalk) pages(ctx context.Context, what string, list func(context.Context, *github.Client, github.ListOptions) (*github.Response, error)) error {
	return eachPage(fmt.Sprintf("the %s of %s", what, w.access.Repository), func(page int) (next int, err error) {
		resp, err := w.f.Do(ctx, w.access, func(ctx context.Context, c *github.Client) (*github.Response, error) {
			return list(ctx, c, github.ListOptions{Page: page, PerPage: perPage})
		})
		if err := w.f.judge(w.in, fmt.Sprintf("list the %s of %s", what, w.access.Repository), resp, err); err != nil {
			return 0, err
		}
		return resp.NextPage, nil
	})
}

func (w *headWalk) add(h Head) {
	if ci.IsCommit(h.Commit) {
		w.list = append(w.list, h)
	}
}

func (w *headWalk) branches(ctx context.Context) error {
	return w.pages(ctx, "branches", func(ctx context.Context, c *github.Client, o github.ListOptions) (*github.Response, error) {
		part, resp, err := c.Repositories.ListBranches(ctx, w.owner, w.name, &github.BranchListOptions{ListOptions: o})
		for _, b := range part {
			w.add(Head{Ref: "refs/heads/" + b.GetName(), Commit: b.GetCommit().GetSHA()})
		}
		return resp, err
	})
}

func (w *headWalk) tags(ctx context.Context) error {
	return w.pages(ctx, "tags", func(ctx context.Context, c *github.Client, o github.ListOptions) (*github.Response, error) {
		part, resp, err := c.Repositories.ListTags(ctx, w.owner, w.name, &o)
		for _, t := range part {
			w.add(Head{Ref: "refs/tags/" + t.GetName(), Commit: t.GetCommit().GetSHA()})
		}
		return resp, err
	})
}

func (w *headWalk) pulls(ctx context.Context) error {
	return w.pages(ctx, "pull requests", func(ctx context.Context, c *github.Client, o github.ListOptions) (*github.Response, error) {
		part, resp, err := c.PullRequests.List(ctx, w.owner, w.name, &github.PullRequestListOptions{State: "open", ListOptions: o})
		for _, p := range part {
			w.add(Head{
				Ref: fmt.Sprintf("refs/pull/%d/head", p.GetNumber()), Commit: p.GetHead().GetSHA(),
				Actor: p.GetUser().GetLogin(), PullRequest: pullRequest(p),
			})
		}
		return resp, err
	})
}

func pullRequest(p *github.PullRequest) *ci.PullRequest {
	base, head := p.GetBase(), p.GetHead()
	out := &ci.PullRequest{
		Number: p.GetNumber(), Title: p.GetTitle(), Base: base.GetRef(), Head: head.GetRef(), Draft: p.GetDraft(),
		HeadRepo: ci.Repository{ID: head.GetRepo().GetID(), FullName: head.GetRepo().GetFullName()},
	}
	out.Fork = out.HeadRepo.ID == 0 || out.HeadRepo.ID != base.GetRepo().GetID()
	for _, l := range p.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	return out
}
