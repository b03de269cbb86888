package forge

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// rememberFor is how long it is remembered which installation a repository
// belongs to.
const rememberFor = 10 * time.Minute

type foundInstallation struct {
	id int64
	at time.Time
}

// installation returns the installation that an access is made as: the one
// asked for, the only configured one, or the one that the repository belongs
// to. One that is not configured where there are any is never used.
func (f *Forge) installation(ctx context.Context, in *ci.Integration, a Access) (int64, error) {
	id := a.Installation
	if id == 0 && len(in.Installations) == 1 {
		id = in.Installations[0]
	}
	if id == 0 {
		var err error
		if id, err = f.repositoryInstallation(ctx, in, a.Repository); err != nil {
			return 0, err
		}
	}
	if len(in.Installations) > 0 && !slices.Contains(in.Installations, id) {
		return 0, ci.Errorf(ci.CodeForbidden, "the installation %d is not among the installations of the integration %s; add it, or discard what is for it", id, in.Name)
	}
	return id, nil
}

// repositoryInstallation asks GitHub which installation of the App a
// repository belongs to.
func (f *Forge) repositoryInstallation(ctx context.Context, in *ci.Integration, repository string) (int64, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return 0, err
	}
	key := in.Name + " " + in.APIURL + " " + strings.ToLower(repository)
	f.mu.Lock()
	known, ok := f.found[key]
	f.mu.Unlock()
	if now := f.now(); ok && now.Sub(known.at).Abs() < rememberFor {
		return known.id, nil
	}
	var found *github.Installation
	resp, err := f.asApp(ctx, in, func(ctx context.Context, c *github.Client) (r *github.Response, err error) {
		found, r, err = c.Apps.FindRepositoryInstallation(ctx, owner, name)
		return r, err
	})
	if err != nil {
		return 0, f.answerError(in, 0, resp, err)
	}
	f.mu.Lock()
	f.found[key] = foundInstallation{found.GetID(), f.now()}
	f.mu.Unlock()
	return found.GetID(), nil
}
