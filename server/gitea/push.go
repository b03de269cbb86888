package gitea

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// push fills in the push event: a branch made or moved, a tag made, moved or
// deleted. Of a branch that is deleted the delete event tells.
//
// Whether a ref is new, gone or was forced Gitea does not say: an all-zero
// before or after tells the first two, and the third stays unknown. Since
// after a forced push the listed commits are not all that changed, and the
// list stops after a few, which files changed is not known either.
func (b *body) push(e *ci.Event) {
	needRepository(e)
	if b.pull.there {
		problem(e, "the delivery is labelled push, but its payload is a pull request's")
	}
	if b.ref == "" {
		problem(e, "the delivery is labelled push, but its payload names no ref")
	} else {
		setRef(e, "push's ref", b.ref)
	}
	// A test delivery says that the default branch moved from where it is to
	// where it is: what was there before is not known.
	if ci.IsCommit(b.before) && b.before != b.after {
		e.Before = strings.Clone(b.before)
	}
	e.Deleted = ci.IsZeroCommit(b.after)
	switch {
	case e.Deleted:
	case b.after == "":
		problem(e, "the delivery is labelled push, but its payload names no commit (after)")
	default:
		setCommit(e, "push's commit (after)", b.after)
		// For an annotated tag "after" may be the tag's own object.
		e.Peel = e.Tag != "" && e.Commit != "" && b.head.id != b.after
	}
	e.Message = payload.FirstLine(b.head.message)
	if e.PushedAt == 0 {
		e.PushedAt = b.head.timestamp
	}
}

// refNamed fills in the create and delete events, whose ref is a short name
// beside its type. What is created is pushed too, so only a deletion means
// something.
func (b *body) refNamed(e *ci.Event) {
	needRepository(e)
	switch b.refType {
	case "branch":
		setRef(e, e.Kind+"'s ref", "refs/heads/"+b.ref)
	case "tag":
		setRef(e, e.Kind+"'s ref", "refs/tags/"+b.ref)
	default:
		problem(e, "the delivery is labelled %s, but its payload's ref_type %q is neither branch nor tag", e.Kind, payload.Clip(b.refType, 80))
	}
	e.Deleted = e.Kind == ci.EventDelete && e.Ref != ""
	if e.Kind == ci.EventCreate && ci.IsCommit(b.sha) {
		e.Commit = strings.Clone(b.sha)
	}
}

// release is a tag with notes and files.
type release struct {
	there     bool
	tag, name string
	draft     bool
}

func (v *release) read(r *payload.Reader) {
	*v = release{}
	v.there = r.Object("release", func(key string) {
		switch key {
		case "tag_name":
			r.Text("release.tag_name", &v.tag)
		case "name":
			r.Text("release.name", &v.name)
		case "draft":
			r.Bool("release.draft", &v.draft)
		default:
			r.Skip()
		}
	})
}

// released fills in the release event. It names a tag and no commit.
func (b *body) released(e *ci.Event) {
	needRepository(e)
	if e.Action == "updated" {
		e.Action = "edited"
	}
	v := &b.release
	switch {
	case !v.there:
		problem(e, "the delivery is labelled release, but its payload has no release")
		return
	case v.tag == "" && !v.draft:
		problem(e, "the release names no tag")
	case v.tag != "":
		setRef(e, "release's tag", "refs/tags/"+v.tag)
	}
	e.Draft, e.Resolve, e.Message = v.draft, e.Ref != "", payload.FirstLine(v.name)
}
