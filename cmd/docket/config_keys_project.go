package main

import (
	"math"
	"time"

	"docket/store/ci"
)

// projectKeys is the part of configKeys that a project is made of.
func projectKeys() map[section]mapping {
	refs := "Globs over short names; one with ! before it takes away what an earlier one let in, and the last that matches decides."
	files := "Globs over paths from the repository's root; one with ! before it takes away what an earlier one let in."
	m := map[section]mapping{
		sectionProject: {about: "One repository's work", oneOf: []string{"steps", "pipeline"}, keys: []key{
			{name: "name", shape: isName, required: true, about: "Also the first part of a run's id: NAME-42."},
			{name: "integration", required: true, about: "The name of one of integrations."},
			{name: "repository", required: true, pattern: repositoryPattern, about: "OWNER/NAME, as the provider shows it."},
			{name: "repository_id", shape: isWhole, low: 1, high: noBound, about: "The provider's number of the repository; pinned at the first signed delivery if left out."},
			{name: "clone_url", about: "Where the code comes from: https://, ssh://, git@host:path, file:// or an absolute path, without credentials."},
			{name: "default_branch", def: "main", about: "What a manual request without a branch runs."},
			{name: "on", shape: isMapping, section: sectionOn, about: "Which events start runs; every push to a branch and every pull request if left out."},
			{name: "supersede", shape: isWord, def: string(ci.SupersedePending), words: []string{string(ci.SupersedeNone), string(ci.SupersedePending), string(ci.SupersedeRunning)}, about: "Which older runs of the same branch or pull request give way to a newer one."},
			{name: "on_interrupt", shape: isWord, def: ci.OnInterruptStop, words: []string{ci.OnInterruptStop, ci.OnInterruptRequeue}, about: "What becomes of a run whose process was lost."},
			{name: "replays", shape: isWord, def: ci.ReplaysAccept, words: []string{ci.ReplaysAccept, ci.ReplaysRefuse}, about: "What becomes of known bytes under a new delivery id."},
			{name: "git", shape: isMapping, section: sectionGit, about: "How a workspace is filled."},
			{name: "timeout", shape: isDuration, def: "1h", low: int64(time.Second), high: int64(30 * 24 * time.Hour), about: "Of a run."},
			{name: "grace", shape: isDuration, def: "10s", low: int64(time.Millisecond), high: int64(time.Hour), about: "Between SIGTERM and SIGKILL when a run is stopped."},
			{name: "inputs", shape: isMappings, mayBeEmpty: true, section: sectionInput, about: "What a manual request may set; steps see each in upper case."},
			{name: "env", shape: isVariables, about: "Variables of every step."},
			{name: "secrets", shape: isSecretMap, about: "Variables whose values are masked in logs; a fork's run never gets them."},
			{name: "steps", shape: isMappings, section: sectionStep, about: "Shell scripts, in order, in the workspace at the exact commit."},
			{name: "pipeline", about: "Instead of steps: the file of the repository that has them, read at the run's commit."},
			{name: "notify", shape: isMappings, mayBeEmpty: true, section: sectionNotify, about: "Who is told about runs."},
			{name: "public", shape: isFlag, def: "false", about: "Whether the badge and the runs are open to all."},
			{name: "concurrency", shape: isNameOrMapping, section: sectionConcurrency, about: "The group whose runs do not overlap; projects that name the same one share it."},
			{name: "hold_timeout", shape: isDuration, def: "168h", low: int64(time.Minute), high: forever, about: "How long a fork's run waits for approval."},
			{name: "on_skip", shape: isWord, def: ci.OnSkipSilent, words: []string{ci.OnSkipSilent, ci.OnSkipReport}, about: "Whether a commit that a filter keeps from running gets a status that says so."},
			{name: "recover", shape: isWord, def: ci.RecoverList, words: []string{ci.RecoverList, ci.RecoverRun}, about: "What becomes of a head that no run is known of."},
		}},
		sectionConcurrency: {about: "A group of runs that do not overlap", keys: []key{
			{name: "group", shape: isName, required: true, about: "Its name."},
			{name: "per", shape: isWord, def: perProject, words: []string{perProject, perRef}, about: "With ref each branch, tag or pull request has a group of its own."},
		}},
		sectionGit: {about: "How a workspace is filled", keys: []key{
			{name: "submodules", shape: isFlag, def: "false", about: "Whether submodules are checked out."},
			{name: "lfs", shape: isFlag, def: "false", about: "Whether Git LFS objects are fetched."},
			{name: "depth", shape: isWhole, def: "0", low: 0, high: math.MaxInt32, about: "Commits of history; 0 is all."},
		}},
		sectionInput: {about: "A value that a manual request may set", keys: []key{
			{name: "name", required: true, pattern: inputName().String(), about: "Steps see it in upper case."},
			{name: "default", shape: isValue, about: "What holds where a request says nothing."},
			{name: "options", shape: isValues, about: "What it may be; any text up to 32 KiB if left out."},
		}},
		sectionStep: {about: "One shell script (sh -eu)", keys: []key{
			{name: "name", required: true, pattern: "^[^@]", about: "What logs and pages call it."},
			{name: "run", required: true, about: "The script."},
			{name: "deploy", shape: isFlag, def: "false", about: "From here on nothing supersedes the run."},
		}},
		sectionNotify: {about: "One receiver", oneOf: []string{"webhook", "slack"}, keys: []key{
			{name: "webhook", shape: isAddress, about: "An address that takes Standard Webhooks."},
			{name: "slack", shape: isSecret, about: "Slack's address, which is a secret."},
			{name: "secret", shape: isSecret, about: "What a webhook is signed with."},
			{name: "events", shape: isWords, words: ci.NotificationTypes, about: "What it is told; run.finished if left out."},
		}},
		sectionOn: {about: "Which events start runs", keys: []key{
			{name: "push", shape: isEvent, section: sectionPush, about: "Pushes to branches and tags."},
			{name: "pull_request", shape: isEvent, section: sectionPullRequest, about: "Pull requests."},
			{name: "merge_group", shape: isEvent, section: sectionMergeGroup, about: "Groups of GitHub's merge queue."},
			{name: "release", shape: isEvent, section: sectionRelease, about: "Releases."},
			{name: "dispatch", shape: isEvent, section: sectionDispatch, about: "GitHub's repository_dispatch."},
			{name: "schedule", shape: isMappings, section: sectionSchedule, about: "Time tables: one run a slot."},
		}},
		sectionPush: {about: "Which pushes", keys: []key{
			{name: "branches", shape: isPatterns, about: refs},
			{name: "tags", shape: isPatterns, about: refs},
			{name: "paths", shape: isPatterns, about: "A push counts where a changed file matches. " + files},
			{name: "paths_ignore", shape: isPatterns, about: "A push counts where a changed file does not match. " + files},
		}},
		sectionPullRequest: {about: "Which pull requests", keys: []key{
			{name: "branches", shape: isPatterns, about: "The branch that it would change. " + refs},
			{name: "paths", shape: isPatterns, about: "It counts where a changed file matches. " + files},
			{name: "paths_ignore", shape: isPatterns, about: "It counts where a changed file does not match. " + files},
			{name: "skip", shape: isMapping, section: sectionSkip, about: "What keeps it from running."},
			{name: "drafts", shape: isFlag, def: "true", about: "With false a draft waits until it is ready for review."},
		}},
		sectionSkip: {about: "What keeps a pull request from running", keys: []key{
			{name: "labels", shape: isTexts, required: true, about: "One of these labels."},
		}},
		sectionMergeGroup: {about: "Which merge groups", keys: []key{
			{name: "branches", shape: isPatterns, about: "The branch that it would change. " + refs},
		}},
		sectionRelease: {about: "Which releases", keys: []key{
			{name: "types", shape: isWords, words: releaseTypes(), about: "Actions; published if left out."},
		}},
		sectionDispatch: {about: "Which repository_dispatch events", keys: []key{
			{name: "types", shape: isPatterns, about: "Globs over GitHub's event_type."},
		}},
		sectionSchedule: {about: "A time table in its zone", keys: []key{
			{name: "cron", required: true, about: "Minute, hour, day of month, month, day of week (0 to 6, from Sunday), or @hourly, @daily, @weekly, @monthly, @yearly."},
			{name: "timezone", def: "UTC", about: "An IANA name, as in America/New_York."},
			{name: "branch", about: "default_branch if left out."},
		}},
	}
	return m
}
