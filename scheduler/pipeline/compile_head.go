package pipeline

import (
	"docket/store/ci"
)

// HeadEvent is the event that would have told of a head: a push, or a pull
// request's opening, or its update where it was known before. repo is the
// project's repository as the provider has it now, before the commit that the
// head was known at, "" for none.
func HeadEvent(repo ci.Repository, h *ci.Head, before string) ci.Event {
	e := ci.Event{
		Kind: ci.EventPush, Actor: h.Actor, Repository: repo, Ref: h.Ref, Commit: h.Commit, Before: before,
		Peel: h.Annotated, Message: h.Message,
	}
	if h.PullRequest == nil {
		e.Branch, e.Tag = ci.SplitRef(h.Ref)
		return e
	}
	pr := *h.PullRequest
	e.Kind, e.Action, e.PullRequest = ci.EventPullRequest, "opened", &pr
	if before != "" {
		e.Action = "synchronize"
	}
	e.Branch = pr.Head
	if e.Message == "" {
		e.Message = pr.Title
	}
	return e
}
