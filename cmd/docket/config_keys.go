package main

import (
	"math"
	"time"

	"docket/store/ci"
)

// section names one kind of mapping in docket.yaml.
type section string

const (
	sectionTop         section = "docket.yaml"
	sectionListen      section = "listen"
	sectionLimits      section = "limits"
	sectionLog         section = "log"
	sectionRetention   section = "retention"
	sectionBackup      section = "backup"
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
	sectionTLS         section = "listen.tls"
	sectionACME        section = "listen.tls.acme"
	sectionTraces      section = "traces"
)

// shape is what a key's value looks like.
type shape int

const (
	isText          shape = iota
	isFlag                // true or false
	isName                // see namePattern
	isAddress             // http or https
	isWhole               // a whole number
	isDuration            // as in 30m
	isInterval            // isDuration, or 0 for never
	isSize                // as in 25MiB
	isWord                // one of key.words
	isWords               // a list of them, each once
	isTexts               // a list of text
	isPatterns            // a list of globs
	isValues              // a list of text, numbers, true and false
	isValue               // one of those
	isWholes              // a list of whole numbers
	isMapping             // key.section
	isEvent               // key.section, or nothing at all
	isMappings            // a list of key.section
	isNameOrMapping       // isName, or key.section
	isSecret              // {file: PATH} or {env: NAME}
	isSecrets             // a list of them
	isSecretMap           // variables to secrets
	isVariables           // variables to values
	isHeaders             // names of HTTP headers to secrets
	isShare               // a number from 0 to 1
)

// key is one key of a mapping: what the loader takes and the schema says.
type key struct {
	name     string
	shape    shape
	about    string   // for people, what it does
	def      string   // what holds where it is left out, as it would be written
	words    []string // of isWord and isWords
	section  section
	low      int64 // of a number, of a duration in nanoseconds, of a size in bytes
	high     int64
	required bool

	pattern    string // of isText, as far as one says it
	most       int    // of a list; 0: any number
	mayBeEmpty bool   // a list of nothing is in order
}

// mapping is a section's keys. Of each list in oneOf exactly one has to be
// given.
type mapping struct {
	about string
	keys  []key
	oneOf []string
}

// names returns the names of keys.
func names(keys []key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// keyOf returns a section's key of that name.
func (m mapping) keyOf(name string) (key, bool) {
	for _, k := range m.keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

const (
	forever = int64(100 * 365 * 24 * time.Hour)
	noBound = math.MaxInt64
)

// configKeys is every key that docket.yaml may have, by the mapping it stands
// in. The loader takes nothing else, and the schema is made of it.
func configKeys() map[section]mapping {
	m := map[section]mapping{
		sectionTop: {about: "docket's configuration", keys: []key{
			{name: "data_dir", required: true, about: "Where everything is kept: the store, logs, mirrors and workspaces."},
			{name: "public_url", shape: isAddress, about: "The address under which people reach docket; used in links and statuses."},
			{name: "listen", shape: isMappings, section: sectionListen, about: "Where docket listens; everything on " + defaultAddress + " if left out."},
			{name: "trusted_proxies", shape: isTexts, about: "Networks of proxies that say truly in X-Forwarded-For where a client comes from, beside this machine."},
			{name: "limits", shape: isMapping, section: sectionLimits, about: "What is bounded on this machine."},
			{name: "retention", shape: isMapping, section: sectionRetention, about: "How long what has ended is kept; for ever if left out."},
			{name: "backup", shape: isMapping, section: sectionBackup, about: "Backups that a running server makes by itself; none if left out."},
			{name: "shutdown_grace", shape: isDuration, def: "30s", low: int64(time.Millisecond), high: int64(24 * time.Hour), about: "How long running steps may go on after SIGTERM; then they end as interrupted."},
			{name: "scan_interval", shape: isDuration, def: "5s", low: int64(10 * time.Millisecond), high: int64(time.Hour), about: "How often work is looked for when no wakeup arrives."},
			{name: "log", shape: isMapping, section: sectionLog, about: "How much docket's own log says, and how it is written."},
			{name: "traces", shape: isMapping, section: sectionTraces, about: "Where spans of OpenTelemetry go; none are made if left out."},
			{name: "admin_token", shape: isSecret, about: "An API token with the role admin that is always valid."},
			{name: "integrations", shape: isMappings, mayBeEmpty: true, section: sectionIntegration, about: "Where deliveries come from and statuses go to."},
			{name: "projects", shape: isMappings, mayBeEmpty: true, section: sectionProject, about: "What runs: one repository's work each."},
		}},
		sectionListen: {about: "One address", keys: []key{
			{name: "address", required: true, about: "HOST:PORT, as in 127.0.0.1:8080."},
			{name: "socket", pattern: `^[^:\x00-\x1f\x7f]{1,255}$`, about: "The FileDescriptorName= of the service manager's socket to take; the one with the address if left out."},
			{name: "serve", shape: isWords, words: []string{"hooks", "api", "ui"}, about: "What is reached there; everything if left out. The internet needs hooks alone."},
			{name: "tls", shape: isMapping, section: sectionTLS, about: "Where its certificate comes from; plain HTTP if left out."},
			{name: "redirect", shape: isFlag, def: "false", about: "On a plain listener: send everything but /hooks, /healthz and ACME's challenges to https."},
		}},
		sectionLimits: {about: "Bounds", keys: []key{
			{name: "body", shape: isSize, def: "25MiB", low: 1 << 10, high: 1 << 30, about: "Of a delivery; 25MiB is GitHub's own cap."},
			{name: "concurrent_runs", shape: isWhole, def: "2", low: 1, high: 1000, about: "Runs at the same time, over all projects."},
			{name: "log", shape: isSize, def: "16MiB", low: 1 << 10, high: 1 << 40, about: "Of a run; past it output is dropped with a notice."},
			{name: "free_space", shape: isSize, def: "1GiB", low: 0, high: noBound, about: "Below it no run starts; intake goes on while it can."},
		}},
		sectionLog: {about: "docket's own log, on standard error", keys: []key{
			{name: "level", shape: isWord, def: "info", words: []string{"debug", "info", "warn", "error"}, about: "From how grave a line on it is written; read again at SIGHUP."},
			{name: "format", shape: isWord, def: ci.LogText, words: []string{ci.LogText, ci.LogJSON}, about: "json is one object a line, for collectors; read at the start."},
		}},
		sectionRetention: {about: "How long what has ended is kept", keys: []key{
			{name: "runs", shape: isDuration, low: int64(minRetention), high: forever, about: "Runs with their logs, deliveries, notifications and decisions; for ever if left out."},
			{name: "bodies", shape: isDuration, low: int64(time.Hour), high: forever, about: "The bytes of deliveries, which a replay needs; as long as their receipts if left out."},
			{name: "logs", shape: isDuration, low: int64(time.Hour), high: forever, about: "The logs of runs; as long as the runs if left out."},
		}},
		sectionBackup: {about: "Backups that a running server makes by itself", keys: []key{
			{name: "dir", required: true, about: "The directory that they lie in, best on another disk; a relative path begins at this file's directory."},
			{name: "every", shape: isDuration, def: "24h", low: int64(time.Minute), high: int64(30 * 24 * time.Hour), about: "How long after one the next is made."},
			{name: "keep", shape: isWhole, def: "7", low: 1, high: 1000, about: "How many of them stay; older ones go once a newer one is verified."},
		}},
		sectionIntegration: {about: "One provider with its secrets", keys: []key{
			{name: "name", shape: isName, required: true, about: "Its webhooks go to /hooks/NAME."},
			{name: "provider", shape: isWord, def: ci.ProviderGitHub, words: []string{ci.ProviderGitHub, ci.ProviderGitea}, about: "gitea is Forgejo too."},
			{name: "api_url", shape: isAddress, about: "GitHub Enterprise Server's or Gitea's own API; https://api.github.com/ for GitHub if left out."},
			{name: "webhook_secrets", shape: isSecrets, required: true, about: "At least one; two while a secret is rotated."},
			{name: "installations", shape: isWholes, low: 1, high: noBound, about: "The GitHub App installations whose deliveries are taken; none if left out."},
			{name: "token", shape: isSecret, about: "A token that may write commit statuses; without it or app the provider is told nothing."},
			{name: "app", shape: isMapping, section: sectionApp, about: "The GitHub App that docket acts as, instead of token."},
			{name: "report", shape: isWord, def: ci.ReportStatuses, words: []string{ci.ReportStatuses, ci.ReportChecks}, about: "How the provider is told of a run; checks need app."},
			{name: "recover_every", shape: isInterval, def: "5m", low: int64(time.Minute), high: int64(24 * time.Hour), about: "How often the provider is asked for deliveries that did not arrive and for heads without a run; 0 is never."},
		}},
		sectionApp: {about: "A GitHub App", keys: []key{
			{name: "id", shape: isWhole, required: true, low: 1, high: noBound, about: "The App's number, from its settings."},
			{name: "private_key", shape: isSecret, required: true, about: "The .pem file that GitHub makes in the App's settings under Private keys."},
		}},
		sectionSecret: {about: "A secret, which stands in a file, in the environment or in a credential of systemd", oneOf: []string{"file", "env", "credential"}, keys: []key{
			{name: "file", about: "The path of its file, relative to this one."},
			{name: "env", about: "The environment variable of docket that holds it."},
			{name: "credential", about: "The name in LoadCredential= of docket's service."},
		}},
	}
	m[sectionTraces] = tracesKeys()
	for s, keys := range tlsKeys() {
		m[s] = keys
	}
	for s, keys := range projectKeys() {
		m[s] = keys
	}
	return m
}
