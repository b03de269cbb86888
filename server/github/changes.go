package github

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// changes is what an edited or renamed thing was before.
type changes struct {
	base          bool // a pull request's base branch changed
	name          string
	owner         string
	defaultBranch string
	keys          []string
}

func (v *changes) read(r *payload.Reader) {
	*v = changes{}
	r.Object("changes", func(key string) {
		v.keys = append(v.keys, key)
		switch key {
		case "base":
			v.base = r.Next() == '{'
			r.Skip()
		case "repository":
			r.Object("changes.repository", func(k string) {
				if k != "name" {
					r.Skip()
					return
				}
				readFrom(r, "changes.repository.name", &v.name)
			})
		case "owner":
			v.readOwner(r)
		case "default_branch":
			readFrom(r, "changes.default_branch", &v.defaultBranch)
		default:
			r.Skip()
		}
	})
}

func readFrom(r *payload.Reader, name string, v *string) {
	*v = ""
	r.Object(name, func(key string) { r.TextIn(key, "from", name+".from", v) })
}

// readOwner reads the former owner, who was a user or an organisation.
func (v *changes) readOwner(r *payload.Reader) {
	v.owner = ""
	r.Object("changes.owner", func(key string) {
		if key != "from" {
			r.Skip()
			return
		}
		r.Object("changes.owner.from", func(string) {
			if r.Next() != '{' {
				r.Skip()
				return
			}
			r.Object("changes.owner.from", func(k string) { r.TextIn(k, "login", "changes.owner.from.login", &v.owner) })
		})
	})
}

// repositoryChanged fills in GitHub's repository event.
func (b *body) repositoryChanged(e *ci.Event) {
	needRepository(e)
	owner, name, ok := strings.Cut(e.Repository.FullName, "/")
	if ok && (b.changes.name != "" || b.changes.owner != "") {
		if b.changes.owner != "" {
			owner = b.changes.owner
		}
		if b.changes.name != "" {
			name = b.changes.name
		}
		e.RenamedFrom = payload.Clip(owner+"/"+name, 200)
	}
	for _, key := range b.changes.keys {
		switch {
		case key == "default_branch" && b.changes.defaultBranch != "":
			e.Edited = append(e.Edited, "default_branch from "+payload.Clip(b.changes.defaultBranch, 100)+" to "+payload.Clip(b.repository.defaultBranch, 100))
		case key != "repository" && key != "owner" && len(e.Edited) < 10:
			e.Edited = append(e.Edited, strings.Clone(payload.Clip(key, 100)))
		}
	}
}

// maxRepositories bounds how many repositories of an installation are kept.
const maxRepositories = 20_000

// readRepositories reads the repositories that an installation's event is
// about. Where an event has two lists, one of them is empty.
func (b *body) readRepositories(r *payload.Reader, name string) {
	r.List(name, func() {
		var full string
		r.Object(name, func(key string) { r.TextIn(key, "full_name", name+".full_name", &full) })
		if full != "" && len(b.repositories) < maxRepositories {
			b.repositories = append(b.repositories, strings.Clone(payload.Clip(full, 200)))
		}
	})
}
