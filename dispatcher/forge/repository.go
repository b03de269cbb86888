package forge

import (
	"context"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// Repository returns the repository that has the name of a project's now, with
// its id. Errors are those of Deliveries.
func (f *Forge) Repository(ctx context.Context, project ci.Project) (ci.Repository, error) {
	var r *github.Repository
	err := f.read(ctx, project, "read the repository "+project.Repository, func(ctx context.Context, c *github.Client, owner, name string) (resp *github.Response, err error) {
		r, resp, err = c.Repositories.Get(ctx, owner, name)
		return resp, err
	})
	if err != nil {
		return ci.Repository{}, err
	}
	return ci.Repository{ID: r.GetID(), FullName: r.GetFullName()}, nil
}

// Message returns the message of a commit in a project's repository. Errors
// are those of Deliveries.
func (f *Forge) Message(ctx context.Context, project ci.Project, commit string) (string, error) {
	var m *github.Commit
	err := f.read(ctx, project, "read commit "+commit+" of "+project.Repository, func(ctx context.Context, c *github.Client, owner, name string) (resp *github.Response, err error) {
		m, resp, err = c.Git.GetCommit(ctx, owner, name, commit)
		return resp, err
	})
	return m.GetMessage(), err
}

// read makes a call that needs what listing heads needs.
func (f *Forge) read(ctx context.Context, project ci.Project, doing string, call func(ctx context.Context, c *github.Client, owner, name string) (*github.Response, error)) error {
	in, err := f.integration(project.Integration)
	if err != nil {
		return err
	}
	owner, name, err := splitRepository(project.Repository)
	if err != nil {
		return err
	}
	a := Access{Integration: in.Name, Repository: project.Repository, Need: Heads}
	resp, err := f.Do(ctx, a, func(ctx context.Context, c *github.Client) (*github.Response, error) {
		return call(ctx, c, owner, name)
	})
	return f.judge(in, doing, resp, err)
}
