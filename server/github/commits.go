package github

import (
	"slices"
	"strings"
	"unicode/utf8"

	"docket/server/payload"
	"docket/store/ci"
)

// Bounds within which a push's commits tell what it changed. GitHub lists at
// most 2,048 commits, and a very long list of files may have been cut.
const (
	maxCommits = 2048
	maxFiles   = 3000 // of one kind in one commit
)

// commits is a push's commits as far as they tell which files changed. Its
// strings share the payload's memory.
type commits struct {
	count int
	paths []string
	vague bool // some of them do not tell
}

func (v *commits) read(r *payload.Reader) {
	*v = commits{}
	r.List("commits", func() {
		v.count++
		added, modified, removed := false, false, false
		r.Object("commits", func(key string) {
			switch key {
			case "added":
				added = v.files(r)
			case "modified":
				modified = v.files(r)
			case "removed":
				removed = v.files(r)
			default:
				r.Skip()
			}
		})
		if !added || !modified || !removed {
			v.vague = true
		}
	})
}

// files reads one list of file names and reports whether there is one.
func (v *commits) files(r *payload.Reader) bool {
	n := 0
	there := r.List("commits", func() {
		var path string
		r.Text("commits", &path)
		// U+FFFD stands where a name is not UTF-8: git knows what it is.
		if n++; path == "" || strings.ContainsRune(path, utf8.RuneError) {
			v.vague = true
		}
		if !v.vague {
			v.paths = append(v.paths, path)
		}
	})
	v.vague = v.vague || n >= maxFiles
	return there
}

// changed returns the files that all commits together changed, nil where that
// is not known for sure.
func (v *commits) changed() *ci.Changed {
	if v.vague || v.count == 0 || v.count >= maxCommits {
		return nil
	}
	slices.Sort(v.paths)
	paths := slices.Clone(slices.Compact(v.paths))
	for i := range paths {
		paths[i] = strings.Clone(paths[i])
	}
	return &ci.Changed{Paths: paths}
}
