package pipeline

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"docket/store/ci"
)

// Match reports whether an event of the project's repository starts a run,
// and the exact rule that matched or that stopped it: a sentence without a
// dot at its end.
//
// Patterns are doublestar globs, where * stops at a slash and ** does not. A
// pattern that begins with ! takes away what an earlier one let in; the last
// pattern that matches decides. Pull requests are filtered by their base
// branch, and drafts run like any other. [skip ci] and [ci skip], in capitals
// or not, count in the first line of a branch push's head commit alone.
func Match(p *ci.Project, e *ci.Event) (ok bool, reason string) {
	if e.Problem != "" {
		return false, e.Problem
	}
	switch e.Kind {
	case ci.EventPush:
		return matchPush(p.On.Push, e)
	case ci.EventPullRequest:
		return matchPullRequest(p.On.PullRequest, e)
	case ci.EventPing:
		return false, "ping: GitHub can reach docket"
	}
	return false, fmt.Sprintf("event %q starts nothing", e.Kind)
}

func matchPush(on *ci.OnPush, e *ci.Event) (bool, string) {
	switch {
	case e.Deleted:
		return false, e.Ref + " was deleted"
	case e.Branch == "" && e.Tag == "":
		return false, fmt.Sprintf("ref %q is neither a branch nor a tag", e.Ref)
	case on == nil:
		return false, "pushes start nothing: the project has no on.push"
	case e.Tag != "" && on.Tags == nil:
		return false, fmt.Sprintf("tag %q starts nothing: the project has no on.push.tags", e.Tag)
	case e.Tag != "":
		return filter("tag", e.Tag, "on.push.tags", on.Tags)
	case on.Branches == nil && on.Tags != nil:
		return false, fmt.Sprintf("branch %q starts nothing: on.push names tags alone", e.Branch)
	}
	reason := fmt.Sprintf("branch %q matches on.push, which takes every branch", e.Branch)
	if on.Branches != nil {
		var ok bool
		if ok, reason = filter("branch", e.Branch, "on.push.branches", on.Branches); !ok {
			return false, reason
		}
	}
	if marker := skipMarker(e.Message); marker != "" {
		return false, marker + " in the first line of the head commit"
	}
	return true, reason
}

func matchPullRequest(on *ci.OnPullRequest, e *ci.Event) (bool, string) {
	switch {
	case on == nil:
		return false, "pull requests start nothing: the project has no on.pull_request"
	case e.PullRequest == nil:
		return false, "the event has no pull request"
	}
	switch e.Action {
	case "opened", "synchronize", "reopened":
	default:
		return false, fmt.Sprintf("pull request action %q starts nothing (opened, synchronize and reopened do)", e.Action)
	}
	reason := fmt.Sprintf("pull request into %q matches on.pull_request, which takes every base branch", e.PullRequest.Base)
	if on.Branches != nil {
		var ok bool
		if ok, reason = filter("base branch", e.PullRequest.Base, "on.pull_request.branches", on.Branches); !ok {
			return false, reason
		}
	}
	if e.PullRequest.Draft {
		reason += " (a draft: drafts run too)"
	}
	return true, reason
}

// filter applies a list of patterns in order; the last that matches decides.
func filter(what, name, key string, patterns []string) (bool, string) {
	by := ""
	for _, p := range patterns {
		glob := strings.TrimPrefix(p, "!")
		if ok, err := doublestar.Match(glob, name); err == nil && ok && (by != "" || glob == p) {
			by = p
		}
	}
	switch {
	case by == "":
		return false, fmt.Sprintf("%s %q matches none of %s %s", what, name, key, list(patterns))
	case by[0] == '!':
		return false, fmt.Sprintf("%s %q is excluded by %q in %s %s", what, name, by, key, list(patterns))
	}
	return true, fmt.Sprintf("%s %q matches %q in %s", what, name, by, key)
}

// list shows patterns as the configuration has them.
func list(patterns []string) string {
	const most = 20
	if len(patterns) > most {
		return fmt.Sprintf("[%s and %d more]", strings.Join(patterns[:most], " "), len(patterns)-most)
	}
	return "[" + strings.Join(patterns, " ") + "]"
}

// skipMarker returns the marker in a message's first line that asks for no run.
func skipMarker(message string) string {
	first, _, _ := strings.Cut(message, "\n")
	first = strings.ToLower(first)
	for _, m := range []string{"[skip ci]", "[ci skip]"} {
		if strings.Contains(first, m) {
			return m
		}
	}
	return ""
}
