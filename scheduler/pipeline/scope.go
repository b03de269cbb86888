package pipeline

import (
	"fmt"

	"docket/store/ci"
)

// Scope returns what a run of this event can supersede and be superseded in:
// project, event kind, head repository, and full ref or pull request. Only
// pushes to branches and pull requests have one; "" is never superseded. It
// is one line of text without control characters, fit for a key.
func Scope(project string, e *ci.Event) string {
	if e.Deleted {
		return ""
	}
	return scope(project, e)
}

// Cancels returns the scope that an event ends, "" for none: a deleted
// branch ends what pushes to it started.
func Cancels(project string, e *ci.Event) string {
	if !e.Deleted || e.Problem != "" {
		return ""
	}
	return scope(project, e)
}

func scope(project string, e *ci.Event) string {
	// No part but the last can hold a space, so no two scopes are one text.
	switch {
	case e.Kind == ci.EventPush && e.Branch != "":
		return fmt.Sprintf("%s %s %d %s", project, e.Kind, e.Repository.ID, e.Ref)
	case e.Kind == ci.EventPullRequest && e.PullRequest != nil:
		return fmt.Sprintf("%s %s %d #%d", project, e.Kind, e.PullRequest.HeadRepo.ID, e.PullRequest.Number)
	}
	return ""
}
