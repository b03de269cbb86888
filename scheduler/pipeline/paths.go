package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"docket/store/ci"
)

// byPaths holds what matched so far against the files that changed; nil where
// only git knows them.
func (m matched) byPaths(paths ci.Paths, key string, changed *ci.Changed) matched {
	if paths.IsZero() {
		return m
	}
	if changed == nil {
		m.ask, m.key = true, key
		m.paths = ci.Paths{Only: slices.Clone(paths.Only), Ignore: slices.Clone(paths.Ignore)}
		m.reason += "; git is asked before it runs whether a changed file matches " + shown(paths, key)
		return m
	}
	ok, reason := MatchPaths(paths, key, changed.Paths)
	if !ok {
		return filtered("%s", reason)
	}
	m.reason += ", and " + reason
	return m
}

// MatchPaths reports whether files let an event count: at least one of them is
// taken by Only (each is, where that is nil) and not by Ignore. key is what
// the configuration calls the filter, as in on.push; reason is the exact rule.
// Names are bytes, from the repository's root.
func MatchPaths(paths ci.Paths, key string, files []string) (ok bool, reason string) {
	for _, name := range files {
		by := ""
		if paths.Only != nil {
			if by = decider(paths.Only, name); by == "" || by[0] == '!' {
				continue
			}
		}
		if d := decider(paths.Ignore, name); d != "" && d[0] != '!' {
			continue
		}
		if by == "" {
			return true, fmt.Sprintf("the changed file %q matches none of %s.paths_ignore %s", clip(name), key, list(paths.Ignore))
		}
		return true, fmt.Sprintf("the changed file %q matches %q in %s.paths", clip(name), by, key)
	}
	switch n := len(files); n {
	case 0:
		return false, "no file changed, so none matches " + shown(paths, key)
	case 1:
		return false, fmt.Sprintf("the only changed file, %q, does not match %s", clip(files[0]), shown(paths, key))
	default:
		return false, fmt.Sprintf("none of the %d changed files matches %s", n, shown(paths, key))
	}
}

// shown names a filter with its patterns, as what a file matches.
func shown(paths ci.Paths, key string) string {
	var parts []string
	if paths.Only != nil {
		parts = append(parts, key+".paths "+list(paths.Only))
	}
	if paths.Ignore != nil {
		parts = append(parts, "anything but "+key+".paths_ignore "+list(paths.Ignore))
	}
	return strings.Join(parts, " and ")
}
