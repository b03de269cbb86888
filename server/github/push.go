package github

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// push fills in GitHub's push event: a branch or a tag made, moved or deleted.
func (b *body) push(e *ci.Event) {
	needRepository(e)
	if b.pull.there {
		problem(e, "the delivery is labelled push, but its payload is a pull request's")
	}
	switch fault := ci.RefFault(b.ref); {
	case b.ref == "":
		problem(e, "the delivery is labelled push, but its payload names no ref")
	case fault != "":
		problem(e, "the push's ref %q %s", payload.Clip(b.ref, 200), fault)
	default:
		e.Ref = strings.Clone(b.ref)
		e.Branch, e.Tag = ci.SplitRef(e.Ref)
	}
	if ci.IsCommit(b.before) {
		e.Before = strings.Clone(b.before)
	}
	// Gitea's pushes have no "deleted": there the all-zero id alone tells.
	e.Deleted = b.deleted || ci.IsZeroCommit(b.after)
	switch {
	case e.Deleted:
	case ci.IsCommit(b.after):
		e.Commit = strings.Clone(b.after)
		// For an annotated tag "after" is the tag's own object.
		e.Peel = e.Tag != "" && b.head.id != b.after
	case b.after == "":
		problem(e, "the delivery is labelled push, but its payload names no commit (after)")
	default:
		problem(e, "the push's commit (after) %q is not 40 or 64 lower-case hex digits", payload.Clip(b.after, 80))
	}
	if e.Branch != "" && !e.Deleted && !b.created && !b.forced && e.Before != "" {
		e.Changed = b.commits.changed()
	}
	e.Message = payload.FirstLine(b.head.message)
	e.PushedAt = b.repository.pushedAt
	if e.PushedAt == 0 {
		e.PushedAt = b.head.timestamp
	}
}
