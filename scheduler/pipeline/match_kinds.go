package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"docket/store/ci"
)

func matchMergeGroup(on *ci.OnMergeGroup, e *ci.Event) matched {
	switch {
	case on == nil:
		return stops("merge groups start nothing: the project has no on.merge_group")
	case e.Action == "destroyed":
		return stops("the merge group was destroyed, which starts nothing and ends what waits for it")
	case e.Action != "checks_requested":
		return stops("merge group action %q starts nothing (checks_requested does)", e.Action)
	case on.Branches == nil:
		return starts("merge group into %q matches on.merge_group, which takes every base branch", e.Base)
	}
	ok, reason := filter("base branch", e.Base, "on.merge_group.branches", on.Branches)
	return matched{starts: ok, filtered: !ok, reason: reason}
}

func matchRelease(on *ci.OnRelease, e *ci.Event) matched {
	if on == nil {
		return stops("releases start nothing: the project has no on.release")
	}
	types := on.Types
	if types == nil {
		types = []string{"published"}
	}
	switch {
	case !slices.Contains(types, e.Action):
		return stops("release action %q is none of on.release.types %s", e.Action, list(types))
	case e.Draft || e.Tag == "":
		return stops("the release is a draft, whose tag need not exist yet")
	}
	return starts("release action %q is one of on.release.types %s", e.Action, list(types))
}

func matchDispatch(on *ci.OnDispatch, e *ci.Event) matched {
	switch {
	case on == nil:
		return stops("dispatches start nothing: the project has no on.dispatch")
	case on.Types == nil:
		return starts("type %q matches on.dispatch, which takes every type", e.Action)
	}
	ok, reason := filter("type", e.Action, "on.dispatch.types", on.Types)
	return matched{starts: ok, reason: reason}
}

// Happened says what an event tells that starts no run by a project's rules,
// and why it starts none: a sentence without a dot at its end.
func Happened(e *ci.Event) string {
	switch e.Kind {
	case ci.EventPing:
		return "ping: GitHub can reach docket"
	case ci.EventCreate:
		return "create starts nothing: the push of " + orRef(e.Ref) + " does"
	case ci.EventDelete:
		if e.Deleted {
			return e.Ref + " was deleted"
		}
		return "delete starts nothing and ends nothing: the push that deleted " + orRef(e.Ref) + " does"
	case "workflow_dispatch":
		return "workflow_dispatch asks GitHub Actions for a run; ask docket through its API, its page or repository_dispatch"
	case ci.EventCheckRun, ci.EventCheckSuite:
		return checkHappened(e)
	case ci.EventRepository:
		return repositoryHappened(e)
	case ci.EventInstallation:
		return installationHappened(e)
	case ci.EventInstallationRepos:
		return reposHappened(e)
	case ci.EventPush, ci.EventPullRequest, ci.EventMergeGroup, ci.EventRelease, ci.EventRepositoryDispatch:
		return "the event " + e.Kind + " names no repository, so it starts nothing"
	}
	if e.Repository.FullName == "" && e.Repository.ID == 0 {
		return "the event " + e.Kind + " names no repository, so it starts nothing"
	}
	return fmt.Sprintf("event %q starts nothing", e.Kind)
}

func orRef(ref string) string {
	if ref == "" {
		return "a ref"
	}
	return ref
}

func checkHappened(e *ci.Event) string {
	name := strings.ReplaceAll(e.Kind, "_", " ")
	return fmt.Sprintf("%s action %q starts nothing (rerequested does)", name, e.Action)
}

func repositoryHappened(e *ci.Event) string {
	now := e.Repository.FullName
	switch e.Action {
	case "renamed":
		if e.RenamedFrom != "" {
			return fmt.Sprintf("the repository %s was renamed to %s, which starts nothing", e.RenamedFrom, now)
		}
	case "transferred":
		if e.RenamedFrom != "" {
			return fmt.Sprintf("the repository %s was transferred and is %s now, which starts nothing", e.RenamedFrom, now)
		}
	case "edited":
		if len(e.Edited) > 0 {
			return fmt.Sprintf("the repository %s was edited (%s), which starts nothing", now, strings.Join(e.Edited, ", "))
		}
	}
	return fmt.Sprintf("repository action %q starts nothing", e.Action)
}

func installationHappened(e *ci.Event) string {
	name := fmt.Sprintf("installation %d", e.Installation)
	switch e.Action {
	case "created":
		return name + " was created: it covers " + named(e.Repositories)
	case "deleted":
		return name + " was deleted: GitHub sends nothing more of its repositories and takes no status for them"
	case "suspend":
		return name + " was suspended: GitHub sends nothing of its repositories and takes no status for them until it is unsuspended"
	case "unsuspend":
		return name + " was unsuspended: what was pushed meanwhile was not delivered and starts nothing by itself"
	case "new_permissions_accepted":
		return name + " has the permissions that its App asks for"
	}
	return fmt.Sprintf("%s: action %q starts nothing", name, e.Action)
}

func reposHappened(e *ci.Event) string {
	name := fmt.Sprintf("installation %d", e.Installation)
	switch e.Action {
	case "added":
		return name + " covers more repositories: " + named(e.Repositories)
	case "removed":
		return name + " covers fewer repositories: " + named(e.Repositories) + " were taken out"
	}
	return fmt.Sprintf("%s: action %q starts nothing", name, e.Action)
}

// named lists names for a sentence.
func named(names []string) string {
	const most = 10
	switch n := len(names); {
	case n == 0:
		return "repositories that the payload does not name"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
