package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/dispatcher/forge"
	"docket/store"
	"docket/store/ci"
)

// Bounds of a commit status, in characters as GitHub counts them.
const (
	maxDescription = 140
	maxContext     = 255
)

// GitHub puts commit statuses on GitHub and on GitHub Enterprise Server, with
// the integration's token or as its App.
//
// See judgeGitHub for what becomes of each answer.
type GitHub struct {
	Forge  *forge.Forge
	Config func() *ci.Config
	// Repository returns owner/name as the repository is called now, or why
	// no status may be put there. See currentRepository.
	Repository func(e ci.OutboxEntry, p ci.StatusPayload) (name, refused string, err error)
	Now        func() time.Time
}

// Send implements Adapter.
func (g *GitHub) Send(ctx context.Context, e ci.OutboxEntry) Result {
	at, r := g.place(e)
	if r != nil {
		return *r
	}
	return g.call(ctx, e, at, forge.Statuses, func(ctx context.Context, c *github.Client) (*github.Response, error) {
		_, resp, err := c.Repositories.CreateStatus(ctx, at.owner, at.repo, at.Commit, &github.RepoStatus{
			State:       github.String(at.State),
			TargetURL:   optional(at.TargetURL),
			Description: github.String(shorten(at.Description, maxDescription)),
			Context:     github.String(shorten(at.Context, maxContext)),
		})
		return resp, err
	})
}

// place is where an entry's state is put, and the state.
type place struct {
	ci.StatusPayload
	in          *ci.Integration
	name        string // owner/repo, as it is called now
	owner, repo string
}

// place finds it; r is what becomes of an entry that has none.
func (g *GitHub) place(e ci.OutboxEntry) (at place, r *Result) {
	refuse := func(o Outcome, detail string) (place, *Result) { return place{}, &Result{Outcome: o, Detail: detail} }
	if err := json.Unmarshal(e.Payload, &at.StatusPayload); err != nil || !ci.IsCommit(at.Commit) {
		return refuse(Dead, "the entry's payload cannot be read; discard it")
	}
	in, missing := reporting(g.Config(), e, at.StatusPayload)
	if missing != "" {
		return refuse(Dead, missing)
	}
	name, refused, err := g.Repository(e, at.StatusPayload)
	if err != nil {
		return refuse(Retry, "the repository's present name cannot be read from the store")
	}
	if refused != "" {
		return refuse(Dead, refused)
	}
	owner, repo, ok := splitRepository(name)
	if !ok {
		return refuse(Dead, fmt.Sprintf("%s is not an owner/name that a status can be put on", excerpt(strconv.Quote(name))))
	}
	at.in, at.name, at.owner, at.repo = in, name, owner, repo
	return at, nil
}

// call makes one call and judges what came of it.
func (g *GitHub) call(ctx context.Context, e ci.OutboxEntry, at place, need forge.Need, do func(context.Context, *github.Client) (*github.Response, error)) Result {
	resp, err := g.Forge.Do(ctx, forge.Access{Integration: at.in.Name, Installation: e.Installation, Repository: at.name, Need: need}, do)
	if resp == nil {
		return judgeSignIn(e, err, at, g.Now()).to(refusedWith(err))
	}
	// The library's error types leave out headers that matter here, and it
	// puts the body back after reading it: the answer itself is judged.
	a := read(resp.Response)
	return judgeGitHub(e, a, at.in, at.name, g.Now()).to(a.status)
}

// reporting returns the integration that reports an entry's status today.
func reporting(c *ci.Config, e ci.OutboxEntry, p ci.StatusPayload) (*ci.Integration, string) {
	project := c.Project(p.Project)
	in := c.Integration(e.Integration)
	switch {
	case project == nil:
		return nil, fmt.Sprintf("the project %s is no longer configured, so its commits get no status", p.Project)
	case in == nil:
		return nil, fmt.Sprintf("the integration %s is no longer configured; add it again and retry this entry, or discard it", e.Integration)
	case project.Integration != in.Name:
		return nil, fmt.Sprintf("the project %s belongs to the integration %s now, so %s is not told", p.Project, project.Integration, in.Name)
	case !in.Reports():
		return nil, fmt.Sprintf("the integration %s has no token any more; give it one and retry this entry, or discard it", in.Name)
	}
	return in, ""
}

// currentRepository finds the present name of a run's repository by its id: a
// renamed one keeps getting its statuses. A project that was since pinned to
// another repository gets none for runs of the one before, whose name may be
// anybody's by now.
func currentRepository(s *store.Store) func(ci.OutboxEntry, ci.StatusPayload) (string, string, error) {
	return func(e ci.OutboxEntry, p ci.StatusPayload) (name, refused string, err error) {
		pins, err := s.Pins()
		if err != nil {
			return "", "", err
		}
		pin := pins[p.Project]
		if pin.ID == 0 {
			return p.Repository, "", nil
		}
		run, err := s.Run(e.Run)
		if err != nil && ci.CodeOf(err) != ci.CodeNotFound {
			return "", "", err
		}
		if id := run.Source.RepositoryID; err == nil && id != 0 && id != pin.ID {
			return "", fmt.Sprintf("the project %s was pinned to another repository after this run, so nothing is put on %s", p.Project, p.Repository), nil
		}
		if pin.FullName == "" { // pinned by hand, and no delivery has named it yet
			return p.Repository, "", nil
		}
		return pin.FullName, "", nil
	}
}

// splitRepository takes owner/name apart. Both become parts of a path, so
// they are what a provider allows in names and nothing else.
func splitRepository(s string) (owner, repo string, ok bool) {
	owner, repo, ok = strings.Cut(s, "/")
	return owner, repo, ok && isName(owner) && isName(repo)
}

func isName(s string) bool {
	if s == "" || s == "." || s == ".." {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// optional leaves an empty text out of the request; GitHub refuses a
// target_url that is not a full URL.
func optional(s string) *string {
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return nil
	}
	return &s
}

func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "the provider's API"
}
