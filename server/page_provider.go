package server

import (
	"net/url"
	"strconv"
	"strings"

	"docket/store/ci"
)

// repositoryURL is a repository's page at its provider, "" if its address does
// not follow from that of the provider's API.
func repositoryURL(in *ci.Integration, repository string) string {
	owner, name, ok := strings.Cut(strings.TrimSuffix(repository, ".git"), "/")
	u, err := url.Parse(in.APIURL)
	if !ok || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	path := strings.TrimSuffix(u.Path, "/")
	switch {
	case in.Provider == ci.ProviderGitea:
		path = strings.TrimSuffix(path, "/api/v1")
	case u.Host == "api.github.com":
		u.Host = "github.com"
	default: // GitHub Enterprise Server
		path = strings.TrimSuffix(path, "/api/v3")
	}
	return u.Scheme + "://" + u.Host + path + "/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

// sourceURLs are the pages at the provider of what a run builds; "" where there
// is none.
func sourceURLs(in *ci.Integration, src ci.Source) (repository, commit, ref string) {
	repository = repositoryURL(in, src.Repository)
	if repository == "" {
		return "", "", ""
	}
	if src.Commit != "" {
		commit = repository + "/commit/" + src.Commit
	}
	gitea := in.Provider == ci.ProviderGitea
	switch {
	case src.PullRequest != nil && gitea:
		ref = repository + "/pulls/" + strconv.Itoa(src.PullRequest.Number)
	case src.PullRequest != nil:
		ref = repository + "/pull/" + strconv.Itoa(src.PullRequest.Number)
	case src.Tag != "" && gitea:
		ref = repository + "/src/tag/" + escapeSegments(src.Tag)
	case src.Tag != "":
		ref = repository + "/tree/" + escapeSegments(src.Tag)
	case src.Branch != "" && gitea:
		ref = repository + "/src/branch/" + escapeSegments(src.Branch)
	case src.Branch != "":
		ref = repository + "/tree/" + escapeSegments(src.Branch)
	}
	return repository, commit, ref
}

// escapeSegments escapes a name whose slashes stay slashes.
func escapeSegments(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
