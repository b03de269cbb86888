package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"docket/store/ci"
)

// Match reports whether an event of the project's repository starts a run,
// and the exact rule that matched or that stopped it: a sentence without a
// dot at its end. Where only git knows which files changed, it matches, and
// the run's inbox job decides.
//
// Patterns are doublestar globs, where * stops at a slash and ** does not. A
// pattern that begins with ! takes away what an earlier one let in; the last
// pattern that matches decides. Pull requests and merge groups are filtered by
// their base branch. [skip ci] and [ci skip], in capitals or not, count in the
// first line of a branch push's head commit alone.
func Match(p *ci.Project, e *ci.Event) (ok bool, reason string) {
	m := match(p, e)
	return m.starts, m.reason
}

// matched is what one project's rules say of an event.
type matched struct {
	starts bool
	reason string
	// filtered: what stops it is a filter over what would run otherwise, so
	// that somebody may wait for a status.
	filtered bool
	// ask: which files changed is not known, and paths, which the
	// configuration calls key, decide.
	ask   bool
	paths ci.Paths
	key   string
}

func starts(format string, args ...any) matched {
	return matched{starts: true, reason: fmt.Sprintf(format, args...)}
}

func stops(format string, args ...any) matched { return matched{reason: fmt.Sprintf(format, args...)} }

func filtered(format string, args ...any) matched {
	return matched{filtered: true, reason: fmt.Sprintf(format, args...)}
}

func match(p *ci.Project, e *ci.Event) matched {
	if e.Problem != "" {
		return stops("%s", e.Problem)
	}
	switch e.Kind {
	case ci.EventPush:
		return matchPush(p.On.Push, e)
	case ci.EventPullRequest:
		return matchPullRequest(p.On.PullRequest, e)
	case ci.EventMergeGroup:
		return matchMergeGroup(p.On.MergeGroup, e)
	case ci.EventRelease:
		return matchRelease(p.On.Release, e)
	case ci.EventRepositoryDispatch:
		return matchDispatch(p.On.Dispatch, e)
	}
	return stops("%s", Happened(e))
}

// mergeQueue begins the names of the branches on which GitHub's merge queue
// puts what is to be tested.
const mergeQueue = "gh-readonly-queue/"

func matchPush(on *ci.OnPush, e *ci.Event) matched {
	switch {
	case e.Deleted:
		return stops("%s was deleted", e.Ref)
	case strings.HasPrefix(e.Branch, mergeQueue):
		return stops("branch %q is a merge queue's: on.merge_group starts its runs, a push never does", e.Branch)
	case e.Branch == "" && e.Tag == "":
		return stops("ref %q is neither a branch nor a tag", e.Ref)
	case on == nil:
		return stops("pushes start nothing: the project has no on.push")
	case e.Tag != "" && on.Tags == nil:
		return stops("tag %q starts nothing: the project has no on.push.tags", e.Tag)
	case e.Tag != "":
		ok, reason := filter("tag", e.Tag, "on.push.tags", on.Tags)
		return matched{starts: ok, reason: reason}
	case on.Branches == nil && on.Tags != nil:
		return stops("branch %q starts nothing: on.push names tags alone", e.Branch)
	}
	m := starts("branch %q matches on.push, which takes every branch", e.Branch)
	if on.Branches != nil {
		ok, reason := filter("branch", e.Branch, "on.push.branches", on.Branches)
		if !ok {
			return filtered("%s", reason)
		}
		m.reason = reason
	}
	if marker := skipMarker(e.Message); marker != "" {
		return filtered("%s in the first line of the head commit", marker)
	}
	return m.byPaths(on.Paths, "on.push", e.Changed)
}

func matchPullRequest(on *ci.OnPullRequest, e *ci.Event) matched {
	switch {
	case on == nil:
		return stops("pull requests start nothing: the project has no on.pull_request")
	case e.PullRequest == nil:
		return stops("the event has no pull request")
	}
	pr := e.PullRequest
	if why := pullRequestAction(on, e.Action, pr); why != "" {
		return stops("%s", why)
	}
	m := starts("pull request into %q matches on.pull_request, which takes every base branch", pr.Base)
	if on.Branches != nil {
		ok, reason := filter("base branch", pr.Base, "on.pull_request.branches", on.Branches)
		if !ok {
			return filtered("%s", reason)
		}
		m.reason = reason
	}
	if label := skipLabel(on, pr.Labels); label != "" {
		return filtered("the label %q is one of on.pull_request.skip.labels %s", label, list(on.SkipLabels))
	}
	switch {
	case pr.Draft && on.SkipDrafts:
		return filtered("a draft waits until it is ready for review: on.pull_request.drafts is false")
	case pr.Draft:
		m.reason += " (a draft: drafts run too)"
	}
	return m.byPaths(on.Paths, "on.pull_request", e.Changed)
}

// pullRequestAction says why an action starts nothing, "" if it may.
func pullRequestAction(on *ci.OnPullRequest, action string, pr *ci.PullRequest) string {
	switch action {
	case "opened", "synchronize", "reopened":
		return ""
	case "closed":
		what := "closed"
		if pr.Merged {
			what = "merged"
		}
		return fmt.Sprintf("pull request #%d was %s, which starts nothing and ends what waits for it", pr.Number, what)
	}
	if pr.Closed {
		return fmt.Sprintf("pull request action %q starts nothing on a closed pull request", action)
	}
	switch action {
	case "ready_for_review":
		if !on.SkipDrafts {
			return "ready for review starts nothing: drafts run too, so its commits were built already"
		}
		return ""
	case "converted_to_draft":
		if on.SkipDrafts {
			return "a pull request that became a draft starts nothing and ends what waits for it: on.pull_request.drafts is false"
		}
	case "edited":
		if !pr.Rebased {
			return "an edit of a pull request starts something only where it changes the base branch"
		}
		return ""
	case "labeled":
		if label := skipLabelPutOn(on, pr); label != "" {
			return fmt.Sprintf("the label %q is one of on.pull_request.skip.labels %s, which ends what waits", label, list(on.SkipLabels))
		}
	case "unlabeled":
		if pr.Label == "" {
			return "labels were taken away, which starts nothing where the provider does not say which"
		}
		if !isSkipLabel(on, pr.Label) {
			return fmt.Sprintf("a label taken away starts something only where it is one of on.pull_request.skip.labels %s, and %q is not", list(on.SkipLabels), pr.Label)
		}
		return ""
	}
	return fmt.Sprintf("pull request action %q starts nothing (opened, synchronize and reopened do)", action)
}

// skipLabel returns the first of a pull request's labels that keeps it from
// running.
func skipLabel(on *ci.OnPullRequest, labels []string) string {
	for _, l := range labels {
		if isSkipLabel(on, l) {
			return l
		}
	}
	return ""
}

// skipLabelPutOn returns the label that a labeled action is about if it keeps a
// pull request from running, "" if not. Where the provider does not say which
// label it was, any that is there now counts.
func skipLabelPutOn(on *ci.OnPullRequest, pr *ci.PullRequest) string {
	if pr.Label == "" {
		return skipLabel(on, pr.Labels)
	}
	return skipLabel(on, []string{pr.Label})
}

// isSkipLabel compares as GitHub does: without regard to case.
func isSkipLabel(on *ci.OnPullRequest, label string) bool {
	return slices.ContainsFunc(on.SkipLabels, func(s string) bool { return strings.EqualFold(s, label) })
}

// filter applies a list of patterns in order; the last that matches decides.
func filter(what, name, key string, patterns []string) (bool, string) {
	by := decider(patterns, name)
	switch {
	case by == "":
		return false, fmt.Sprintf("%s %q matches none of %s %s", what, name, key, list(patterns))
	case by[0] == '!':
		return false, fmt.Sprintf("%s %q is excluded by %q in %s %s", what, name, by, key, list(patterns))
	}
	return true, fmt.Sprintf("%s %q matches %q in %s", what, name, by, key)
}

// decider returns the pattern that decides on a name, "" for none. An
// exclusion decides only where an earlier pattern matched.
func decider(patterns []string, name string) (by string) {
	for _, p := range patterns {
		glob := strings.TrimPrefix(p, "!")
		if ok, err := doublestar.Match(glob, name); err == nil && ok && (by != "" || glob == p) {
			by = p
		}
	}
	return by
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
