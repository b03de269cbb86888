package gitea

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// body is all that docket reads of a payload, whatever its event. Its strings
// share the payload's memory: what is kept is cloned.
type body struct {
	action         string
	sender, pusher user
	repository     repository

	ref, refType, sha string // of create and delete the ref is short
	before, after     string
	head              headCommit

	pull    pull
	changes changes
	review  bool // what tells a review's payload from a pull request's
	comment bool
	release release
}

type user struct{ login, username, name string }

// called is what people know a user by: old versions have no login.
func (u user) called() string {
	for _, s := range []string{u.login, u.username, u.name} {
		if s != "" {
			return strings.Clone(payload.Clip(s, maxActor))
		}
	}
	return ""
}

// maxActor bounds a login, in bytes.
const maxActor = 200

type repository struct {
	id        payload.ID
	fullName  string
	updatedAt int64
}

func (v *repository) named() ci.Repository {
	return ci.Repository{ID: v.id.N, FullName: strings.Clone(v.fullName)}
}

type headCommit struct {
	id, message string
	timestamp   int64
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
			b.sender.read(r, key)
		case "pusher":
			b.pusher.read(r, key)
		case "repository":
			b.repository.read(r, key)
		case "pull_request":
			b.pull.read(r)
		case "changes":
			b.changes.read(r)
		case "release":
			b.release.read(r)
		case "review":
			b.review = r.Next() == '{'
			r.Skip()
		case "comment":
			b.comment = r.Next() == '{'
			r.Skip()
		default:
			b.readPush(r, key)
		}
	})
}

// readPush reads what pushes, created and deleted refs have.
func (b *body) readPush(r *payload.Reader, key string) {
	switch key {
	case "ref":
		r.Text(key, &b.ref)
	case "ref_type":
		r.Text(key, &b.refType)
	case "sha":
		r.Text(key, &b.sha)
	case "before":
		r.Text(key, &b.before)
	case "after":
		r.Text(key, &b.after)
	case "head_commit":
		b.head.read(r, key)
	default:
		r.Skip()
	}
}

func (v *user) read(r *payload.Reader, name string) {
	*v = user{}
	r.Object(name, func(key string) {
		switch key {
		case "login":
			r.Text(name+".login", &v.login)
		case "username":
			r.Text(name+".username", &v.username)
		case "name":
			r.Text(name+".name", &v.name)
		default:
			r.Skip()
		}
	})
}

func (v *repository) read(r *payload.Reader, name string) {
	*v = repository{}
	r.Object(name, func(key string) {
		switch key {
		case "id":
			v.id.Read(r)
		case "full_name":
			r.Text(name+".full_name", &v.fullName)
		case "updated_at":
			v.updatedAt = r.Instant()
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
			r.Text(name+".id", &v.id)
		case "message":
			r.Text(name+".message", &v.message)
		case "timestamp":
			v.timestamp = r.Instant()
		default:
			r.Skip()
		}
	})
}
