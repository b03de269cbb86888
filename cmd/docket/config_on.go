package main

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml/ast"

	"docket/store/ci"
)

// on reads which events start runs. Without it, pushes to every branch and
// pull requests to every branch do.
func (l *loader) on(o *object) ci.On {
	if !o.has("on") {
		return ci.On{Push: &ci.OnPush{}, PullRequest: &ci.OnPullRequest{}}
	}
	var on ci.On
	eo := l.object(o.field("on"), sectionOn, o.what+": on")
	if eo == nil {
		return on
	}
	if eo.has("push") {
		on.Push = &ci.OnPush{}
		if p := l.filter(eo, "push", sectionPush); p != nil {
			on.Push.Branches = l.patterns(p, "branches")
			on.Push.Tags = l.patterns(p, "tags")
		}
	}
	if eo.has("pull_request") {
		on.PullRequest = &ci.OnPullRequest{}
		if p := l.filter(eo, "pull_request", sectionPullRequest); p != nil {
			on.PullRequest.Branches = l.patterns(p, "branches")
		}
	}
	return on
}

// filter reads an event's mapping; with nothing after its key the event
// counts for every branch.
func (l *loader) filter(o *object, key string, s section) *object {
	n := l.resolve(o.field(key))
	if _, all := n.(*ast.NullNode); all || n == nil {
		return nil
	}
	return l.object(n, s, o.what+": "+key)
}

func (l *loader) patterns(o *object, key string) (list []string) {
	if !o.has(key) {
		return nil
	}
	nodes := l.list(o.field(key), o.what+": "+key)
	if _, isList := l.resolve(o.field(key)).(*ast.SequenceNode); isList && len(nodes) == 0 {
		o.at(key, "%s: %s is an empty list, which nothing matches; name patterns, or remove the key", o.what, key)
	}
	for i, n := range nodes {
		s, ok := l.text(n, o.what+": "+key)
		if !ok {
			continue
		}
		if trouble := patternTrouble(s, i == 0); trouble != "" {
			l.at(n, "%s: %s: the pattern %q %s", o.what, key, s, trouble)
			continue
		}
		list = append(list, s)
	}
	return list
}

// patternTrouble says why a glob pattern cannot match a branch or tag, or "".
// With ! before it a pattern takes away what an earlier one let in.
func patternTrouble(s string, first bool) string {
	glob, exclude := strings.CutPrefix(s, "!")
	switch {
	case glob == "":
		return "is empty; write one, as in main or release/**"
	case exclude && first:
		return `is the first and takes away what none before it let in; put one before it, as in "**"`
	case strings.HasPrefix(glob, "refs/"):
		return "begins with refs/; write the short name, as in main or v*"
	case !doublestar.ValidatePattern(glob):
		return "does not parse; check its brackets, braces and backslashes"
	}
	return ""
}
