package github

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// body is all that docket reads of a payload, whatever its event. Its strings
// share the payload's memory: what is kept is cloned.
type body struct {
	event                  string
	action, sender, pusher string
	repository             repository
	installation           payload.ID
	ref, before, after     string
	deleted                bool
	head                   headCommit
	pull                   pull
	// What tells a review's or a comment's payload from a pull request's.
	review, comment, thread bool
	own
}

// own is what only some events have.
type own struct {
	created, forced bool
	commits         commits
	label           string
	changes         changes
	group           mergeGroup
	check           check
	release         release
	branch, refType string
	repositories    []string
}

type repository struct {
	id            payload.ID
	fullName      string
	defaultBranch string
	pushedAt      int64
}

func (r *repository) named() ci.Repository {
	return ci.Repository{ID: r.id.N, FullName: strings.Clone(r.fullName)}
}

type headCommit struct {
	id, message string
	timestamp   int64
}

type pull struct {
	there         bool
	number        payload.ID
	title, state  string
	draft, merged bool
	labels        []string
	updatedAt     int64
	head, base    end
}

// end is one end of a pull request. The repository of a deleted fork is null.
type end struct {
	ref, sha string
	repo     repository
}

func (b *body) read(r *payload.Reader) {
	if r.Next() == 'n' {
		r.Skip()
		r.Wrong = "the payload is not a JSON object but null"
		return
	}
	r.Object("outermost value", func(key string) {
		switch key {
		case "action":
			r.Text(key, &b.action)
		case "sender":
			b.sender = ""
			r.Object(key, func(k string) {
				if k == "login" {
					r.Text("sender.login", &b.sender)
				} else {
					r.Skip()
				}
			})
		case "pusher":
			b.pusher = ""
			r.Object(key, func(k string) {
				if k == "name" {
					r.Text("pusher.name", &b.pusher)
				} else {
					r.Skip()
				}
			})
		case "repository":
			b.repository.read(r, key)
		case "installation":
			b.installation = payload.ID{}
			r.Object(key, func(k string) {
				if k == "id" {
					b.installation.Read(r)
				} else {
					r.Skip()
				}
			})
		case "ref":
			r.Text(key, &b.ref)
		case "before":
			r.Text(key, &b.before)
		case "after":
			r.Text(key, &b.after)
		case "deleted":
			r.Bool(key, &b.deleted)
		case "head_commit":
			b.head.read(r, key)
		case "pull_request":
			b.pull.read(r, key)
		case "review":
			b.review = r.Next() == '{'
			r.Skip()
		case "comment":
			b.comment = r.Next() == '{'
			r.Skip()
		case "thread":
			b.thread = r.Next() == '{'
			r.Skip()
		default:
			b.readOwn(r, key)
		}
	})
}

// readOwn reads what the delivery's kind of event has and others do not.
func (b *body) readOwn(r *payload.Reader, key string) {
	switch b.event {
	case ci.EventPush:
		switch key {
		case "created":
			r.Bool(key, &b.created)
			return
		case "forced":
			r.Bool(key, &b.forced)
			return
		case "commits":
			b.commits.read(r)
			return
		}
	case ci.EventPullRequest:
		switch key {
		case "label":
			b.label = ""
			r.Object(key, func(k string) { r.TextIn(k, "name", "label.name", &b.label) })
			return
		case "changes":
			b.changes.read(r)
			return
		}
	case ci.EventRepository:
		if key == "changes" {
			b.changes.read(r)
			return
		}
	case ci.EventMergeGroup:
		if key == "merge_group" {
			b.group.read(r)
			return
		}
	case ci.EventCheckRun, ci.EventCheckSuite:
		if key == b.event {
			b.check.read(r, key)
			return
		}
	case ci.EventRelease:
		if key == "release" {
			b.release.read(r)
			return
		}
	case ci.EventRepositoryDispatch:
		if key == "branch" {
			r.Text(key, &b.branch)
			return
		}
	case ci.EventCreate, ci.EventDelete:
		if key == "ref_type" {
			r.Text(key, &b.refType)
			return
		}
	case ci.EventInstallation, ci.EventInstallationRepos:
		switch key {
		case "repositories", "repositories_added", "repositories_removed":
			b.readRepositories(r, key)
			return
		}
	}
	r.Skip()
}

func (v *repository) read(r *payload.Reader, name string) {
	*v = repository{}
	r.Object(name, func(key string) {
		switch key {
		case "id":
			v.id.Read(r)
		case "full_name":
			r.Text(name+".full_name", &v.fullName)
		case "default_branch":
			r.Text(name+".default_branch", &v.defaultBranch)
		case "pushed_at":
			v.pushedAt = r.Instant()
		default:
			r.Skip()
		}
	})
}

func (v *headCommit) read(r *payload.Reader, name string) {
	*v = headCommit{}
	r.Object(name, func(key string) {
		switch key {
		case "id":
			r.Text("head_commit.id", &v.id)
		case "message":
			r.Text("head_commit.message", &v.message)
		case "timestamp":
			v.timestamp = r.Instant()
		default:
			r.Skip()
		}
	})
}

func (v *pull) read(r *payload.Reader, name string) {
	*v = pull{}
	v.there = r.Object(name, func(key string) {
		switch key {
		case "number":
			v.number.Read(r)
		case "title":
			r.Text("pull_request.title", &v.title)
		case "draft":
			r.Bool("pull_request.draft", &v.draft)
		case "state":
			r.Text("pull_request.state", &v.state)
		case "merged":
			r.Bool("pull_request.merged", &v.merged)
		case "labels":
			v.labels = readLabels(r)
		case "updated_at":
			v.updatedAt = r.Instant()
		case "head":
			v.head.read(r, "pull_request.head")
		case "base":
			v.base.read(r, "pull_request.base")
		default:
			r.Skip()
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
		case "repo":
			v.repo.read(r, name+".repo")
		default:
			r.Skip()
		}
	})
}
