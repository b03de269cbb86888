package github

import (
	"strconv"
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// pullRequest fills in GitHub's pull_request event.
func (b *body) pullRequest(e *ci.Event) {
	needRepository(e)
	if e.Action == "synchronized" { // Gitea and Forgejo
		e.Action = "synchronize"
	}
	pr := &b.pull
	if !pr.there {
		problem(e, "the delivery is labelled pull_request, but its payload has no pull request")
		return
	}
	if b.review || b.comment || b.thread {
		problem(e, "the delivery is labelled pull_request, but its payload is a review's or a comment's")
	}
	base := pr.base.repo.id.N
	e.PullRequest = &ci.PullRequest{
		Number:   int(pr.number.N),
		Title:    payload.FirstLine(pr.title),
		Base:     branch(e, "base", pr.base.ref),
		Head:     branch(e, "head", pr.head.ref),
		HeadRepo: pr.head.repo.named(),
		// Only ids decide what is a fork: names change hands.
		Fork:    base <= 0 || base != pr.head.repo.id.N,
		Draft:   pr.draft,
		Labels:  pr.labels,
		Label:   strings.Clone(payload.Clip(b.label, maxLabel)),
		Rebased: b.changes.base,
		Merged:  pr.merged,
		Closed:  pr.state == "closed",
	}
	if base > 0 && base != e.Repository.ID {
		problem(e, "the pull request's base is in another repository (id %d) than the one that the delivery is about", base)
	}
	if pr.number.N > 0 {
		e.Ref = "refs/pull/" + strconv.FormatInt(pr.number.N, 10) + "/head"
	} else {
		problem(e, "the pull request has no number")
	}
	e.Branch = e.PullRequest.Head
	e.Message = e.PullRequest.Title
	if ci.IsCommit(b.before) {
		e.Before = strings.Clone(b.before)
	}
	if ci.IsCommit(pr.head.sha) {
		e.Commit = strings.Clone(pr.head.sha)
	} else {
		problem(e, "the pull request's head commit %q is not 40 or 64 lower-case hex digits", payload.Clip(pr.head.sha, 80))
	}
	e.PushedAt = pr.updatedAt
}

// branch returns the short branch name of one end, or "" and a problem.
func branch(e *ci.Event, which, name string) string {
	if name == "" {
		problem(e, "the pull request names no %s branch", which)
		return ""
	}
	if fault := ci.RefFault("refs/heads/" + name); fault != "" {
		problem(e, "the pull request's %s branch %q %s", which, payload.Clip(name, 200), fault)
		return ""
	}
	return strings.Clone(name)
}

// Bounds of what is kept of a pull request's labels. GitHub's are 100 labels
// of 50 characters.
const (
	maxLabels = 100
	maxLabel  = 200
)

func readLabels(r *payload.Reader) (labels []string) {
	r.List("pull_request.labels", func() {
		var name string
		r.Object("pull_request.labels", func(key string) { r.TextIn(key, "name", "pull_request.labels.name", &name) })
		if name != "" && len(labels) < maxLabels {
			labels = append(labels, strings.Clone(payload.Clip(name, maxLabel)))
		}
	})
	return labels
}
