package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"docket/store/ci"
)

// Hook is a webhook at GitHub whose address is docket's: an App's, or a
// repository's own.
type Hook struct {
	App        bool
	ID         int64  // of a repository's own; 0 for an App's
	Repository string // owner/name that it belongs to; "" for an App's
	URL        string
	// Active is false where somebody switched it off: nothing is delivered.
	// An App's cannot be told; it is true.
	Active bool
	Events []string // of a repository's own
	// LastStatus is how its newest delivery went, in GitHub's words, and
	// LastCode what the receiver answered; "" and 0 where it does not tell.
	LastStatus string
	LastCode   int
}

// Delivery is one attempt of GitHub's to deliver an event.
type Delivery struct {
	ID            int64  // of this attempt
	GUID          string // of the event: the same for each attempt
	Event, Action string
	Status        string // in GitHub's words: OK, or what went wrong
	StatusCode    int    // the receiver's answer; 0: there was none
	DeliveredAt   time.Time
	Redelivery    bool
	Installation  int64 // 0 for none
	Repository    int64 // 0 for none
}

// Hook finds the webhook through which GitHub tells docket of a project: the
// App's where its address is docket's, else the repository's own. publicURL is
// docket's, without a slash at its end; project.Repository is to be the
// repository's present name.
//
// Errors: CodeNotFound where no webhook has docket's address; see Deliveries
// for the others.
func (f *Forge) Hook(ctx context.Context, project ci.Project, publicURL string) (Hook, error) {
	in, err := f.integration(project.Integration)
	if err != nil {
		return Hook{}, err
	}
	address := publicURL + "/hooks/" + url.PathEscape(in.Name)
	if in.App != nil {
		h, err := f.appHook(ctx, in)
		if err != nil {
			return Hook{}, err
		}
		if sameAddress(h.URL, address) {
			return h, nil
		}
	}
	list, err := f.repositoryHooks(ctx, in, project.Repository)
	if err != nil {
		return Hook{}, err
	}
	var found Hook
	for _, h := range list {
		if sameAddress(h.URL, address) && (found.ID == 0 || h.Active && !found.Active) {
			found = h
		}
	}
	if found.ID == 0 {
		return Hook{}, ci.Errorf(ci.CodeNotFound, "no webhook of %s has the address %s; add it on GitHub, or correct public_url", project.Repository, address)
	}
	return found, nil
}

func (f *Forge) appHook(ctx context.Context, in *ci.Integration) (Hook, error) {
	var h *github.HookConfig
	resp, err := f.asApp(ctx, in, func(ctx context.Context, c *github.Client) (r *github.Response, err error) {
		h, r, err = c.Apps.GetHookConfig(ctx)
		return r, err
	})
	if err := f.judge(in, "read the App's webhook", resp, err); err != nil {
		return Hook{}, err
	}
	return Hook{App: true, URL: h.GetURL(), Active: true}, nil
}

func (f *Forge) repositoryHooks(ctx context.Context, in *ci.Integration, repository string) (list []Hook, err error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return nil, err
	}
	a := Access{Integration: in.Name, Repository: repository, Need: Hooks}
	err = eachPage("the webhooks of "+repository, func(page int) (next int, err error) {
		var part []*github.Hook
		resp, err := f.Do(ctx, a, func(ctx context.Context, c *github.Client) (r *github.Response, err error) {
			part, r, err = c.Repositories.ListHooks(ctx, owner, name, &github.ListOptions{Page: page, PerPage: perPage})
			return r, err
		})
		if err := f.judgeHook(in, "list the webhooks of "+repository, resp, err, ci.CodeForbidden, ci.CodeNotFound); err != nil {
			return 0, err
		}
		for _, h := range part {
			list = append(list, repositoryHook(repository, h))
		}
		return resp.NextPage, nil
	})
	return list, err
}

func repositoryHook(repository string, h *github.Hook) Hook {
	out := Hook{ID: h.GetID(), Repository: repository, URL: h.GetConfig().GetURL(), Active: h.GetActive(), Events: h.Events}
	if s, ok := h.LastResponse["status"].(string); ok {
		out.LastStatus = s
	}
	if code, ok := h.LastResponse["code"].(float64); ok {
		out.LastCode = int(code)
	}
	return out
}

// sameAddress compares two addresses without regard to the case of the host
// and to a slash at the end.
func sameAddress(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	if err != nil || err2 != nil {
		return a == b
	}
	return strings.EqualFold(x.Scheme, y.Scheme) && strings.EqualFold(x.Host, y.Host) &&
		strings.TrimRight(x.Path, "/") == strings.TrimRight(y.Path, "/")
}

// Deliveries lists the attempts of a webhook since a time, newest first, at
// most limit of them; 0 is all that GitHub still has. GitHub keeps them for
// some days only.
//
// Errors: *LimitError for a rate limit, *ClockError; a ci.Error with
// CodeForbidden where the token or the App may not do it, CodeNotFound where
// GitHub knows no such thing, CodeUnavailable where it may work next time.
func (f *Forge) Deliveries(ctx context.Context, integration string, hook Hook, since time.Time, limit int) (list []Delivery, err error) {
	in, err := f.integration(integration)
	if err != nil {
		return nil, err
	}
	opts := &github.ListCursorOptions{PerPage: perPage}
	for range maxPages {
		var part []*github.HookDelivery
		resp, err := f.atHook(ctx, in, hook, Hooks, func(ctx context.Context, c *github.Client, owner, name string) (r *github.Response, err error) {
			if hook.App {
				part, r, err = c.Apps.ListHookDeliveries(ctx, opts)
			} else {
				part, r, err = c.Repositories.ListHookDeliveries(ctx, owner, name, hook.ID, opts)
			}
			return r, err
		})
		if err := f.judgeHook(in, "list the deliveries of "+hook.name(), resp, err, ci.CodeForbidden, ci.CodeNotFound); err != nil {
			return nil, err
		}
		for _, d := range part {
			if d.GetDeliveredAt().Before(since) || limit > 0 && len(list) == limit {
				return list, nil
			}
			list = append(list, delivery(d))
		}
		if resp.Cursor == "" || resp.Cursor == opts.Cursor || len(part) == 0 {
			return list, nil
		}
		opts.Cursor = resp.Cursor
	}
	return nil, endless("the deliveries of " + hook.name())
}

func delivery(d *github.HookDelivery) Delivery {
	return Delivery{
		ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), Action: d.GetAction(),
		Status: d.GetStatus(), StatusCode: d.GetStatusCode(), DeliveredAt: d.GetDeliveredAt().Time,
		Redelivery: d.GetRedelivery(), Installation: d.GetInstallationID(), Repository: d.GetRepositoryID(),
	}
}

// Redeliver asks GitHub to deliver once more what an attempt delivered. It
// arrives as a webhook under the same GUID. Errors are those of Deliveries.
func (f *Forge) Redeliver(ctx context.Context, integration string, hook Hook, id int64) error {
	in, err := f.integration(integration)
	if err != nil {
		return err
	}
	resp, err := f.atHook(ctx, in, hook, Again, func(ctx context.Context, c *github.Client, owner, name string) (r *github.Response, err error) {
		if hook.App {
			_, r, err = c.Apps.RedeliverHookDelivery(ctx, id)
		} else {
			_, r, err = c.Repositories.RedeliverHookDelivery(ctx, owner, name, hook.ID, id)
		}
		return r, err
	})
	return f.judgeHook(in, fmt.Sprintf("deliver %d of %s again", id, hook.name()), resp, err, ci.CodeForbidden)
}

// judgeHook is judge, and says with errors of these codes what a repository's
// webhooks need: GitHub refuses or hides them where it is lacking.
func (f *Forge) judgeHook(in *ci.Integration, doing string, resp *github.Response, err error, lacking ...ci.Code) error {
	err = f.judge(in, doing, resp, err)
	var e *ci.Error
	if !errors.As(err, &e) || !slices.Contains(lacking, e.Code) {
		return err
	}
	needs := "the token needs the repository permission Webhooks: read and write, or as a classic one the scope repo or admin:repo_hook"
	if in.App != nil {
		needs = "the App needs the repository permission Webhooks: read and write"
	}
	return ci.Wrap(e.Code, e.Err, "%s; %s", e.Message, needs)
}

// atHook makes a call as who may see the webhook.
func (f *Forge) atHook(ctx context.Context, in *ci.Integration, hook Hook, need Need, call func(ctx context.Context, c *github.Client, owner, name string) (*github.Response, error)) (*github.Response, error) {
	if hook.App {
		if in.App == nil {
			return nil, ci.Errorf(ci.CodeInvalid, "the integration %s has no App any more", in.Name)
		}
		return f.asApp(ctx, in, func(ctx context.Context, c *github.Client) (*github.Response, error) { return call(ctx, c, "", "") })
	}
	owner, name, err := splitRepository(hook.Repository)
	if err != nil {
		return nil, err
	}
	a := Access{Integration: in.Name, Repository: hook.Repository, Need: need}
	return f.Do(ctx, a, func(ctx context.Context, c *github.Client) (*github.Response, error) {
		return call(ctx, c, owner, name)
	})
}

func (h Hook) name() string {
	if h.App {
		return "the App's webhook"
	}
	return fmt.Sprintf("the webhook %d of %s", h.ID, h.Repository)
}
