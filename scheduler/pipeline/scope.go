package pipeline

import (
	"fmt"

	"docket/store/ci"
)

// Scope returns what a run of this event can supersede and be superseded in:
// project, event kind, head repository, and full ref or pull request; of a
// merge group also its head. Only pushes to branches, pull requests and merge
// groups have one; "" is never superseded. It is one line of text without
// control characters, fit for a key.
func Scope(project string, e *ci.Event) string {
	if e.Deleted {
		return ""
	}
	return scope(project, e)
}

func scope(project string, e *ci.Event) string {
	// No part but the last can hold a space, so no two scopes are one text.
	switch {
	case e.Kind == ci.EventPush && e.Branch != "":
		return pushScope(project, e)
	case e.Kind == ci.EventPullRequest && e.PullRequest != nil:
		return fmt.Sprintf("%s %s %d #%d", project, e.Kind, e.PullRequest.HeadRepo.ID, e.PullRequest.Number)
	case e.Kind == ci.EventMergeGroup && e.Branch != "":
		return fmt.Sprintf("%s %s %d %s %s", project, e.Kind, e.Repository.ID, e.Commit, e.Ref)
	}
	return ""
}

func pushScope(project string, e *ci.Event) string {
	return fmt.Sprintf("%s %s %d %s", project, ci.EventPush, e.Repository.ID, e.Ref)
}

// Cancels returns what an event ends of what has not begun; ok is false for
// nothing. A branch's deletion ends what pushes to it started, a closed pull
// request and a destroyed merge group what they started, and what keeps a pull
// request from running also ends what waits for it.
func Cancels(p *ci.Project, e *ci.Event) (c ci.Cancel, ok bool) {
	if e.Problem != "" {
		return c, false
	}
	c = ci.Cancel{Project: p.Name, Ref: e.Ref}
	switch e.Kind {
	case ci.EventPush, ci.EventDelete:
		if !e.Deleted || e.Branch == "" {
			return c, false
		}
		c.Scope, c.Deleted = pushScope(p.Name, e), true
		c.Reason = "the branch " + e.Branch + " was deleted"
	case ci.EventRepository:
		c.Reason = lost(e)
		c.All = c.Reason != ""
		return c, c.All
	case ci.EventMergeGroup:
		if e.Action != "destroyed" {
			return c, false
		}
		c.Scope, c.Reason = scope(p.Name, e), "the merge group was destroyed"
	case ci.EventPullRequest:
		if e.PullRequest == nil {
			return c, false
		}
		c.PullRequest = e.PullRequest.Number
		c.Reason = endsPullRequest(p.On.PullRequest, e)
		return c, c.Reason != ""
	}
	return c, c.Scope != ""
}

// endsPullRequest says why an event ends what waits for its pull request, ""
// if it does not.
func endsPullRequest(on *ci.OnPullRequest, e *ci.Event) string {
	name := fmt.Sprintf("pull request #%d", e.PullRequest.Number)
	switch {
	case e.Action == "closed" && e.PullRequest.Merged:
		return name + " was merged"
	case e.Action == "closed":
		return name + " was closed"
	case on == nil:
	case e.Action == "converted_to_draft" && on.SkipDrafts:
		return name + " is a draft again"
	case e.Action == "labeled":
		if label := skipLabelPutOn(on, e.PullRequest); label != "" {
			return fmt.Sprintf("%s has the label %q", name, label)
		}
	}
	return ""
}
