package server

import (
	"net/http"

	"docket/store/ci"
)

// RepositoryURL is repositoryURL.
func RepositoryURL(in *ci.Integration, repository string) string {
	return repositoryURL(in, repository)
}

// SourceURLs is sourceURLs.
func SourceURLs(in *ci.Integration, src ci.Source) (repository, commit, ref string) {
	return sourceURLs(in, src)
}

// BackTo is backTo for a form that was posted to a path.
func BackTo(r *http.Request) string { return backTo(r) }

// EventsToTick is eventsToTick.
func EventsToTick(provider string, asked []ci.On) []string { return eventsToTick(provider, asked) }
