package gitea

import (
	"strconv"
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

type pull struct {
	there      bool
	number     payload.ID
	title      string
	state      string
	draft      bool
	drafts     bool // this version says whether it is a draft
	merged     bool
	flow       payload.ID
	labels     []string
	updatedAt  int64
	head, base end
}

// end is one end of a pull request. Forgejo may leave the repository itself
// out, and without one its id is -1.
type end struct {
	ref, sha   string
	repoID     payload.ID
	repo       repository
	repoLooked bool
}

// id is the repository's, 0 where it is not known for sure.
func (v *end) id() int64 {
	switch {
	case !v.repoLooked:
		return v.repoID.N
	case v.repoID.N != 0 && v.repoID.N != v.repo.id.N:
		return 0
	}
	return v.repo.id.N
}

// changes is what an edited pull request was before.
type changes struct {
	title    string
	retitled bool
	rebased  bool // its base branch was another
}

func (v *pull) read(r *payload.Reader) {
	*v = pull{}
	const name = "pull_request"
	v.there = r.Object(name, func(key string) {
		switch key {
		case "number":
			v.number.Read(r)
		case "title":
			r.Text(name+".title", &v.title)
		case "state":
			r.Text(name+".state", &v.state)
		case "draft":
			v.drafts = r.Next() == 't' || r.Next() == 'f'
			r.Bool(name+".draft", &v.draft)
		case "merged":
			r.Bool(name+".merged", &v.merged)
		case "flow":
			v.flow.Read(r)
		case "labels":
			v.readLabels(r, name+".labels")
		case "updated_at":
			v.updatedAt = r.Instant()
		case "head":
			v.head.read(r, name+".head")
		case "base":
			v.base.read(r, name+".base")
		default:
			r.Skip()
		}
	})
}

// Bounds of what is kept of a pull request's labels.
const (
	maxLabels = 100
	maxLabel  = 200
)

func (v *pull) readLabels(r *payload.Reader, name string) {
	v.labels = nil
	r.List(name, func() {
		var label string
		r.Object(name, func(key string) { r.TextIn(key, "name", name+".name", &label) })
		if label != "" && len(v.labels) < maxLabels {
			v.labels = append(v.labels, strings.Clone(payload.Clip(label, maxLabel)))
		}
	})
}

func (v *end) read(r *payload.Reader, name string) {
	*v = end{}
	r.Object(name, func(key string) {
		switch key {
		case "ref":
			r.Text(name+".ref", &v.ref)
		case "sha":
			r.Text(name+".sha", &v.sha)
		case "repo_id":
			v.repoID.Read(r)
		case "repo":
			v.repoLooked = true
			v.repo.read(r, name+".repo")
		default:
			r.Skip()
		}
	})
}

func (v *changes) read(r *payload.Reader) {
	*v = changes{}
	r.Object("changes", func(key string) {
		switch key {
		case "ref":
			v.rebased = r.Next() == '{'
			r.Skip()
		case "title":
			v.retitled = r.Object("changes.title", func(k string) { r.TextIn(k, "from", "changes.title.from", &v.title) })
		default:
			r.Skip()
		}
	})
}

// pullRequest fills in the pull_request event.
func (b *body) pullRequest(e *ci.Event) {
	needRepository(e)
	pr := &b.pull
	if !pr.there {
		problem(e, "the delivery is labelled pull_request, but its payload has no pull request")
		return
	}
	if b.review || b.comment {
		problem(e, "the delivery is labelled pull_request, but its payload is a review's or a comment's")
	}
	e.Action = b.happened(e.Action)
	base := pr.base.id()
	e.PullRequest = &ci.PullRequest{
		Number:   int(pr.number.N),
		Title:    payload.FirstLine(pr.title),
		Base:     branch(e, "base", pr.base.ref),
		Head:     branch(e, "head", pr.head.ref),
		HeadRepo: pr.head.repo.named(),
		Fork:     base <= 0 || base != pr.head.id() || pr.pushedWithoutBranch(),
		Draft:    pr.isDraft(),
		Labels:   pr.labels,
		Rebased:  b.changes.rebased,
		Merged:   pr.merged,
		Closed:   pr.state == "closed",
	}
	e.PullRequest.HeadRepo.ID = pr.head.id()
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
	setCommit(e, "pull request's head commit", pr.head.sha)
	if pr.updatedAt > 0 {
		e.PushedAt = pr.updatedAt
	}
}

// pushedWithoutBranch reports whether the head is no branch of any repository:
// it was pushed to refs/for/ (the AGit flow), which needs no right to write,
// though the payload then names the base's own repository as the head's.
func (v *pull) pushedWithoutBranch() bool {
	return v.flow.N > 0 || strings.HasPrefix(v.head.ref, "refs/")
}

// isDraft takes the title's word where the version has no other.
func (v *pull) isDraft() bool { return v.draft || !v.drafts && unfinished(v.title) }

// unfinished reports whether a title has one of the prefixes by which Gitea
// knows a draft, as they are set unless somebody changes them.
func unfinished(title string) bool {
	title = strings.ToUpper(strings.TrimSpace(title))
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// happened returns GitHub's word for an action, and the action itself where
// GitHub has none. A draft is a matter of the title, so a new title can make
// or end one.
func (b *body) happened(action string) string {
	switch action {
	case "synchronized":
		return "synchronize"
	case "label_updated":
		return "labeled"
	case "label_cleared":
		return "unlabeled"
	case "edited":
		switch was, is := unfinished(b.changes.title), b.pull.isDraft(); {
		case !b.changes.retitled || was == is:
		case was:
			return "ready_for_review"
		default:
			return "converted_to_draft"
		}
	}
	return action
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
