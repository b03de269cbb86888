package github

import (
	"strconv"
	"strings"
	"time"

	"docket/store/ci"
)

// body is all that docket reads of a payload, whatever its event. Its strings
// share the payload's memory: what is kept is cloned.
type body struct {
	action, sender, pusher string
	repository             repository
	installation           id
	ref, before, after     string
	deleted                bool
	head                   headCommit
	pull                   pull
	// What tells a review's or a comment's payload from a pull request's.
	review, comment, thread bool
}

type repository struct {
	id       id
	fullName string
	pushedAt int64
}

func (r *repository) named() ci.Repository {
	return ci.Repository{ID: r.id.n, FullName: strings.Clone(r.fullName)}
}

type headCommit struct {
	id, message string
	timestamp   int64
}

type pull struct {
	there      bool
	number     id
	title      string
	draft      bool
	updatedAt  int64
	head, base end
}

// end is one end of a pull request. The repository of a deleted fork is null.
type end struct {
	ref, sha string
	repo     repository
}

func (b *body) read(r *reader) {
	if r.next() == 'n' {
		r.skip()
		r.wrong = "the payload is not a JSON object but null"
		return
	}
	r.object("outermost value", func(key string) {
		switch key {
		case "action":
			r.textOf(key, &b.action)
		case "sender":
			b.sender = ""
			r.object(key, func(k string) {
				if k == "login" {
					r.textOf("sender.login", &b.sender)
				} else {
					r.skip()
				}
			})
		case "pusher":
			b.pusher = ""
			r.object(key, func(k string) {
				if k == "name" {
					r.textOf("pusher.name", &b.pusher)
				} else {
					r.skip()
				}
			})
		case "repository":
			b.repository.read(r, key)
		case "installation":
			b.installation = id{}
			r.object(key, func(k string) {
				if k == "id" {
					b.installation.read(r)
				} else {
					r.skip()
				}
			})
		case "ref":
			r.textOf(key, &b.ref)
		case "before":
			r.textOf(key, &b.before)
		case "after":
			r.textOf(key, &b.after)
		case "deleted":
			r.boolOf(key, &b.deleted)
		case "head_commit":
			b.head.read(r, key)
		case "pull_request":
			b.pull.read(r, key)
		case "review":
			b.review = r.next() == '{'
			r.skip()
		case "comment":
			b.comment = r.next() == '{'
			r.skip()
		case "thread":
			b.thread = r.next() == '{'
			r.skip()
		default:
			r.skip()
		}
	})
}

func (v *repository) read(r *reader, name string) {
	*v = repository{}
	r.object(name, func(key string) {
		switch key {
		case "id":
			v.id.read(r)
		case "full_name":
			r.textOf(name+".full_name", &v.fullName)
		case "pushed_at":
			v.pushedAt = readInstant(r)
		default:
			r.skip()
		}
	})
}

func (v *headCommit) read(r *reader, name string) {
	*v = headCommit{}
	r.object(name, func(key string) {
		switch key {
		case "id":
			r.textOf("head_commit.id", &v.id)
		case "message":
			r.textOf("head_commit.message", &v.message)
		case "timestamp":
			v.timestamp = readInstant(r)
		default:
			r.skip()
		}
	})
}

func (v *pull) read(r *reader, name string) {
	*v = pull{}
	v.there = r.object(name, func(key string) {
		switch key {
		case "number":
			v.number.read(r)
		case "title":
			r.textOf("pull_request.title", &v.title)
		case "draft":
			r.boolOf("pull_request.draft", &v.draft)
		case "updated_at":
			v.updatedAt = readInstant(r)
		case "head":
			v.head.read(r, "pull_request.head")
		case "base":
			v.base.read(r, "pull_request.base")
		default:
			r.skip()
		}
	})
}

func (v *end) read(r *reader, name string) {
	*v = end{}
	r.object(name, func(key string) {
		switch key {
		case "ref":
			r.textOf(name+".ref", &v.ref)
		case "sha":
			r.textOf(name+".sha", &v.sha)
		case "repo":
			v.repo.read(r, name+".repo")
		default:
			r.skip()
		}
	})
}

// id is a positive integer, or absent (0), or bad.
type id struct {
	n   int64
	bad bool
}

func (v *id) read(r *reader) {
	*v = id{}
	text := r.skip()
	if text == "null" {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		v.bad = true
		return
	}
	v.n = n
}

// readInstant reads a time given as a number of Unix seconds or in RFC 3339,
// in Unix seconds. It is a hint, so anything else is none: 0.
func readInstant(r *reader) int64 {
	if r.next() == '"' {
		if t, err := time.Parse(time.RFC3339, r.string()); err == nil {
			return max(0, t.Unix())
		}
		return 0
	}
	n, _ := strconv.ParseInt(r.skip(), 10, 64)
	return max(0, n)
}
