package main

// section names one kind of mapping in docket.yaml.
type section string

const (
	sectionTop         section = "docket.yaml"
	sectionListen      section = "listen"
	sectionLimits      section = "limits"
	sectionRetention   section = "retention"
	sectionIntegration section = "integrations"
	sectionProject     section = "projects"
	sectionOn          section = "on"
	sectionPush        section = "on.push"
	sectionPullRequest section = "on.pull_request"
	sectionGit         section = "git"
	sectionInput       section = "inputs"
	sectionStep        section = "steps"
	sectionNotify      section = "notify"
	sectionSecret      section = "secret"
	sectionApp         section = "app"
	sectionConcurrency section = "concurrency"
	sectionSkip        section = "on.pull_request.skip"
	sectionMergeGroup  section = "on.merge_group"
	sectionRelease     section = "on.release"
	sectionDispatch    section = "on.dispatch"
	sectionSchedule    section = "on.schedule"
)

// configKeys is every key that docket.yaml may have, by the mapping it stands
// in. The commented example names them all.
func configKeys() map[section][]string {
	return map[section][]string{
		sectionTop: {"data_dir", "public_url", "listen", "limits", "retention", "shutdown_grace", "scan_interval",
			"admin_token", "integrations", "projects"},
		sectionListen:    {"address", "serve"},
		sectionLimits:    {"body", "concurrent_runs", "log", "free_space"},
		sectionRetention: {"runs"},
		sectionIntegration: {"name", "provider", "api_url", "webhook_secrets", "installations", "token", "app",
			"report", "recover_every"},
		sectionProject: {"name", "integration", "repository", "repository_id", "clone_url", "default_branch", "on",
			"supersede", "on_interrupt", "replays", "git", "timeout", "grace", "inputs", "env", "secrets",
			"steps", "pipeline", "notify", "public", "concurrency", "hold_timeout", "on_skip", "recover"},
		sectionOn:          {"push", "pull_request", "merge_group", "release", "dispatch", "schedule"},
		sectionPush:        {"branches", "tags", "paths", "paths_ignore"},
		sectionPullRequest: {"branches", "paths", "paths_ignore", "skip", "drafts"},
		sectionSkip:        {"labels"},
		sectionMergeGroup:  {"branches"},
		sectionRelease:     {"types"},
		sectionDispatch:    {"types"},
		sectionSchedule:    {"cron", "timezone", "branch"},
		sectionGit:         {"submodules", "lfs", "depth"},
		sectionInput:       {"name", "default", "options"},
		sectionStep:        {"name", "run", "deploy"},
		sectionNotify:      {"webhook", "slack", "secret", "events"},
		sectionSecret:      {"file", "env"},
		sectionApp:         {"id", "private_key"},
		sectionConcurrency: {"group", "per"},
	}
}
