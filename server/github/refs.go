package github

import (
	"strings"

	"docket/server/payload"
	"docket/store/ci"
)

// mergeGroup is a merge queue's: a commit made to be tested before it is merged.
type mergeGroup struct {
	there                     bool
	headSHA, headRef, baseRef string
	head                      headCommit
}

func (v *mergeGroup) read(r *payload.Reader) {
	*v = mergeGroup{}
	v.there = r.Object("merge_group", func(key string) {
		switch key {
		case "head_sha":
			r.Text("merge_group.head_sha", &v.headSHA)
		case "head_ref":
			r.Text("merge_group.head_ref", &v.headRef)
		case "base_ref":
			r.Text("merge_group.base_ref", &v.baseRef)
		case "head_commit":
			v.head.read(r, "merge_group.head_commit")
		default:
			r.Skip()
		}
	})
}

// mergeGroup fills in GitHub's merge_group event.
func (b *body) mergeGroup(e *ci.Event) {
	needRepository(e)
	g := &b.group
	if !g.there {
		problem(e, "the delivery is labelled merge_group, but its payload has no merge group")
		return
	}
	if setRef(e, "merge group's head_ref", g.headRef); e.Ref != "" && e.Branch == "" {
		problem(e, "the merge group's head_ref %q is no branch", payload.Clip(e.Ref, 200))
	}
	if base, _ := ci.SplitRef(g.baseRef); base != "" && ci.ValidRef(g.baseRef) {
		e.Base = strings.Clone(base)
	} else {
		problem(e, "the merge group's base_ref %q is no branch's full ref", payload.Clip(g.baseRef, 200))
	}
	setCommit(e, "merge group's head_sha", g.headSHA)
	e.Message = payload.FirstLine(g.head.message)
}

// refNamed fills in GitHub's create and delete events, whose ref is a short
// name beside its type.
func (b *body) refNamed(e *ci.Event) {
	needRepository(e)
	switch b.refType {
	case "branch":
		setRef(e, e.Kind+"'s ref", "refs/heads/"+b.ref)
	case "tag":
		setRef(e, e.Kind+"'s ref", "refs/tags/"+b.ref)
	case "":
		problem(e, "the delivery is labelled %s, but its payload names no ref_type", e.Kind)
	}
}

// release is GitHub's release: a tag with notes and files.
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

// released fills in GitHub's release event. It names a tag and no commit.
func (b *body) released(e *ci.Event) {
	needRepository(e)
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

// dispatched fills in GitHub's repository_dispatch event. It names a branch,
// the default one, and no commit.
func (b *body) dispatched(e *ci.Event) {
	needRepository(e)
	if b.branch == "" {
		problem(e, "the delivery is labelled repository_dispatch, but its payload names no branch")
		return
	}
	setRef(e, "repository_dispatch's branch", "refs/heads/"+b.branch)
	e.Resolve = e.Ref != ""
}

// setRef takes a full ref over, or notes what is wrong with it.
func setRef(e *ci.Event, what, ref string) {
	if fault := ci.RefFault(ref); fault != "" {
		problem(e, "the %s %q %s", what, payload.Clip(ref, 200), fault)
		return
	}
	e.Ref = strings.Clone(ref)
	e.Branch, e.Tag = ci.SplitRef(e.Ref)
}

// setCommit takes a commit over, or notes that it is none.
func setCommit(e *ci.Event, what, commit string) {
	if !ci.IsCommit(commit) {
		problem(e, "the %s %q is not 40 or 64 lower-case hex digits", what, payload.Clip(commit, 80))
		return
	}
	e.Commit = strings.Clone(commit)
}
