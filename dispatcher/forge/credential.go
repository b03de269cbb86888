package forge

import (
	"context"
	"net/url"
	"strings"

	"docket/store/ci"
)

// cloneUser is the user name that goes with a token at GitHub; Gitea takes any.
const cloneUser = "x-access-token"

// Credential returns what a project's repository is fetched with: a token of
// the App's installation that is good for reading this one repository and
// nothing else, or the integration's configured token. Both are "" where there
// is none to give: no token and no App, or a clone URL that is not HTTP, has
// credentials of its own, or lies on another host than the integration's API.
//
// project.Repository and RepositoryID are to be the repository's present ones.
// refused is a secret that the remote did not accept, "" for none: the App's
// is then made anew.
//
// Errors: as those of Forge.Deliveries.
func (f *Forge) Credential(ctx context.Context, project ci.Project, cloneURL, refused string) (username, secret string, err error) {
	in := f.config().Integration(project.Integration)
	if in == nil || !in.Reports() || !belongs(in, cloneURL) {
		return "", "", nil
	}
	if in.App == nil {
		return cloneUser, in.Token.Reveal(), nil
	}
	a := Access{Integration: in.Name, Repository: project.Repository, RepositoryID: project.RepositoryID, Need: Contents, Alone: true}
	tok, err := f.token(ctx, in, a)
	if err == nil && refused != "" && tok.value == refused {
		tok.slot.forget(refused)
		tok, err = f.token(ctx, in, a)
	}
	if err != nil {
		return "", "", f.judge(in, "ask for a token to fetch "+project.Repository, nil, err)
	}
	return cloneUser, tok.value, nil
}

// belongs reports whether a clone URL is one that the integration's token may
// be sent to: on the API's own host, under its scheme, without a user in it.
func belongs(in *ci.Integration, cloneURL string) bool {
	u, err := url.Parse(cloneURL)
	api, err2 := url.Parse(in.APIURL)
	if err != nil || err2 != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	// github.com and NAME.ghe.com answer the API under a name of its own.
	return u.Scheme == api.Scheme && strings.EqualFold(u.Host, strings.TrimPrefix(strings.ToLower(api.Host), "api."))
}
