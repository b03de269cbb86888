package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/store/ci"
)

// rsaKey returns the PEM of one RSA key, as GitHub's download has it.
var rsaKey = sync.OnceValue(func() string { return pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(newRSA())) })

var newRSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func ecKey() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return pemOf("PRIVATE KEY", der)
}

func publicKey() string { return pemOf("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&newRSA().PublicKey)) }

// everyEvent is a configuration with every filter of an event.
const everyEvent = faultyBase + oneStep + `    concurrency: {group: production, per: ref}
    hold_timeout: 1h
    on_skip: report
    recover: run
    on:
      push:
        branches: [main]
        paths: ["src/**", "!src/**/*.md"]
        paths_ignore: [docs/**]
      pull_request:
        paths: [a, "b/*.go"]
        skip: {labels: [no-ci, "needs rebase"]}
        drafts: false
      merge_group: {branches: [main]}
      release: {types: [created, published]}
      dispatch: {types: ["deploy-*", "!deploy-x"]}
      schedule:
        - {cron: "*/5 1,2 * * MON-FRI", timezone: Europe/Berlin, branch: release/1}
        - {cron: "@daily"}
  - name: plain
    integration: github
    repository: acme/plain
    concurrency: production
    on: {release: , merge_group: , dispatch: {}, pull_request: {drafts: true}}
` + oneStep

// Ensure that every filter of an event is read as it is written.
func TestConfigReadsEvents(t *testing.T) {
	cfg := mustParse(t, everyEvent, map[string]string{"/s": "k"})
	api, plain := cfg.Projects[0], cfg.Projects[1]
	for what, d := range map[string]string{
		"on": cmp.Diff(ci.On{
			Push: &ci.OnPush{Branches: []string{"main"}, Paths: ci.Paths{Only: []string{"src/**", "!src/**/*.md"}, Ignore: []string{"docs/**"}}},
			PullRequest: &ci.OnPullRequest{
				Paths: ci.Paths{Only: []string{"a", "b/*.go"}}, SkipLabels: []string{"no-ci", "needs rebase"}, SkipDrafts: true,
			},
			MergeGroup: &ci.OnMergeGroup{Branches: []string{"main"}},
			Release:    &ci.OnRelease{Types: []string{"created", "published"}},
			Dispatch:   &ci.OnDispatch{Types: []string{"deploy-*", "!deploy-x"}},
			Schedule: []ci.Schedule{
				{Cron: "*/5 1,2 * * MON-FRI", Timezone: "Europe/Berlin", Branch: "release/1"}, {Cron: "@daily"},
			},
		}, api.On),
		"plain on": cmp.Diff(ci.On{
			PullRequest: &ci.OnPullRequest{}, MergeGroup: &ci.OnMergeGroup{}, Release: &ci.OnRelease{}, Dispatch: &ci.OnDispatch{},
		}, plain.On),
		"concurrency":       cmp.Diff(ci.Concurrency{Group: "production", PerRef: true}, api.Concurrency),
		"plain concurrency": cmp.Diff(ci.Concurrency{Group: "production"}, plain.Concurrency),
		"hold_timeout":      cmp.Diff(time.Hour, api.HoldTimeout),
		"on_skip":           cmp.Diff(ci.OnSkipReport, api.OnSkip),
		"recover":           cmp.Diff(ci.RecoverRun, api.Recover),
		"default recover":   cmp.Diff(ci.RecoverList, plain.Recover),
	} {
		if d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// Ensure that an App with its key, a Gitea and the recovery are read.
func TestConfigReadsProviders(t *testing.T) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(newRSA())
	if err != nil {
		t.Fatal(err)
	}
	cfg := mustParse(t, `data_dir: /d
integrations:
  - {name: app, webhook_secrets: [{file: /s}], installations: [7], app: {id: 678, private_key: {file: /app.pem}}, report: checks, recover_every: 0}
  - {name: app8, webhook_secrets: [{file: /s}], installations: [8], app: {id: 9, private_key: {file: /app8.pem}}, recover_every: 1m}
  - {name: tea, provider: gitea, api_url: "https://tea.example.org/api/v1", webhook_secrets: [{file: /s}], token: {file: /s}}
`, map[string]string{"/s": "k", "/app.pem": rsaKey(), "/app8.pem": pemOf("PRIVATE KEY", pkcs8)})
	app, app8, tea := cfg.Integrations[0], cfg.Integrations[1], cfg.Integrations[2]
	if app.App == nil || app.App.ID != 678 || !strings.Contains(app.App.PrivateKey.Reveal(), "RSA PRIVATE KEY") {
		t.Errorf("app: got %+v", app.App)
	}
	if app8.App == nil || app8.App.ID != 9 || app8.Report != ci.ReportStatuses {
		t.Errorf("app8: got %+v", app8)
	}
	if app.Report != ci.ReportChecks || app.RecoverEvery != 0 || app8.RecoverEvery != time.Minute || tea.RecoverEvery != 5*time.Minute {
		t.Errorf("got %q, %v, %v, %v", app.Report, app.RecoverEvery, app8.RecoverEvery, tea.RecoverEvery)
	}
	if tea.Provider != ci.ProviderGitea || tea.APIURL != "https://tea.example.org/api/v1/" || tea.App != nil {
		t.Errorf("gitea: got %+v", tea)
	}
}

func TestFaultsOfProviders(t *testing.T) {
	with := func(s string) string { // s begins in column 3
		return "data_dir: /d\nintegrations:\n- {name: gh,\n  " + s + ",\n  webhook_secrets: [{file: /s}]}\n"
	}
	app := func(key string) string {
		return with("installations: [1], app: {id: 1, private_key: " + key + "}")
	}
	runFaultCases(t, map[string]faultCase{
		"a gitea without api_url":  {with("provider: gitea"), []string{"3:3: the integration gh has no api_url; add one, as in `api_url: https://gitea.example.org/api/v1/`"}},
		"a gitea with an app":      {with("provider: gitea, api_url: 'https://t.example/', installations: [1], app: {id: 1, private_key: {file: /app.pem}}"), []string{"4:51: the integration gh: installations is for GitHub alone; remove it", "4:71: the integration gh: app is for GitHub alone; remove it"}},
		"a gitea with checks":      {with("provider: gitea, api_url: 'https://t.example/', report: checks"), []string{"4:59: the integration gh: report: only a GitHub App may write checks; add `app:`"}},
		"checks of a token":        {with("token: {file: /s}, report: checks"), []string{"4:30: the integration gh: report: only a GitHub App may write checks; "}},
		"report":                   {with("report: check"), []string{`4:11: the integration gh: report: "check" is not known (did you mean "checks"?); it is one of statuses, checks`}},
		"app and token":            {with("installations: [1], app: {id: 1, private_key: {file: /app.pem}}, token: {file: /s}"), []string{"4:68: the integration gh has both app and token; keep one"}},
		"an app of nobody":         {with("app: {id: 1, private_key: {file: /app.pem}}"), []string{"4:3: the integration gh has an app and no installations, so it does not know whom it acts for; add `installations:"}},
		"an app without key":       {with("installations: [1], app: {id: 1}"), []string{"4:28: the integration gh: app has no private_key; add one"}},
		"an app without id":        {with("installations: [1], app: {private_key: {file: /app.pem}}"), []string{"4:28: the integration gh: app has no id; add one, as in `id: 678`"}},
		"an app's id of text":      {with("installations: [1], app: {id: x, private_key: {file: /app.pem}}"), []string{"4:33: the integration gh: app: id must be a whole number, but this is text"}},
		"an app's misspelt key":    {with("installations: [1], app: {id: 1, private_kee: hunter2, private_key: {file: /app.pem}}"), []string{`4:36: the integration gh: app has no key "private_kee" (did you mean "private_key"?)`}},
		"a literal key":            {app("hunter2"), []string{"4:49: the integration gh: app: private_key is written here as it is; "}},
		"a key of no PEM":          {app("{file: /s}"), []string{"4:56: the integration gh: app: private_key: the secret from /s is not in PEM; generate one on GitHub in the App's settings"}},
		"an EC key":                {app("{file: /ec.pem}"), []string{"4:56: the integration gh: app: private_key: the secret from /ec.pem is a private key, but not an RSA one; generate one"}},
		"a public key":             {app("{file: /pub.pem}"), []string{"4:56: the integration gh: app: private_key: the secret from /pub.pem is a public key, and the private one is needed; "}},
		"no installation":          {with("installations: []"), []string{"4:18: the integration gh: installations is an empty list, which leaves none; "}},
		"recover_every too small":  {with("recover_every: 10s"), []string{"4:18: the integration gh: recover_every must be from 1m to 24h"}},
		"recover_every of no unit": {with("recover_every: 5"), []string{`4:18: the integration gh: recover_every: "5" is not a duration; write it with a unit`}},
	})
}

func TestFaultsOfRunsTogether(t *testing.T) {
	p := func(s string) string { return faultyBase + oneStep + "    " + s + "\n" } // s stands in line 9
	runFaultCases(t, map[string]faultCase{
		"a group of capitals":    {p("concurrency: Prod"), []string{`9:18: the project api: "Prod" cannot be a name; use a to z`}},
		"no group's name":        {p(`concurrency: ""`), []string{"9:18: the project api: concurrency is empty; give it a value"}},
		"a group of a list":      {p("concurrency: [a]"), []string{"9:18: the project api: concurrency must be text, but this is a list"}},
		"per without group":      {p("concurrency: {per: ref}"), []string{"9:18: the project api: concurrency has no group; add one, as in `group: production`"}},
		"per branch":             {p("concurrency: {group: a, per: branch}"), []string{`9:34: the project api: concurrency: per: "branch" is not known; it is one of project, ref`}},
		"a key of concurrency":   {p("concurrency: {group: a, perr: ref}"), []string{`9:29: the project api: concurrency has no key "perr" (did you mean "per"?)`}},
		"a short hold":           {p("hold_timeout: 1s"), []string{"9:19: the project api: hold_timeout must be from 1m to "}},
		"on_skip":                {p("on_skip: loud"), []string{`9:14: the project api: on_skip: "loud" is not known; it is one of silent, report`}},
		"recover":                {p("recover: runs"), []string{`9:14: the project api: recover: "runs" is not known (did you mean "run"?); it is one of list, run`}},
		"a misspelt project key": {p("concurency: a"), []string{`9:5: a project has no key "concurency" (did you mean "concurrency"?)`}},
	})
}

func TestFaultsOfEvents(t *testing.T) {
	on := func(s string) string { return faultyBase + oneStep + "    on:\n      " + s + "\n" } // s begins in 10:7
	sched := func(s string) string { return on("schedule:\n      - {" + s + "}") }             // s begins in 11:10
	runFaultCases(t, map[string]faultCase{
		"an unknown event":      {on("merge_groups: {}"), []string{`10:7: the project api: on has no key "merge_groups" (did you mean "merge_group"?)`}},
		"no paths":              {on("push: {paths: []}"), []string{"10:21: the project api: on: push: paths is an empty list, which nothing matches; "}},
		"an absolute path":      {on("push: {paths: [/src]}"), []string{`10:22: the project api: on: push: paths: the pattern "/src" is not a path from the repository's root; `}},
		"a directory":           {on("pull_request: {paths_ignore: [docs/]}"), []string{`10:37: the project api: on: pull_request: paths_ignore: the pattern "docs/" names a directory, and only files change; `}},
		"a broken path":         {on("push: {paths: ['a[']}"), []string{`10:22: the project api: on: push: paths: the pattern "a[" does not parse; `}},
		"an exclusion first":    {on("push: {paths: ['!a']}"), []string{`10:22: the project api: on: push: paths: the pattern "!a" is the first and takes away`}},
		"an empty exclusion":    {on("push: {paths: [a, '!']}"), []string{`10:25: the project api: on: push: paths: the pattern "!" is empty; `}},
		"paths of tags":         {on("push: {tags: [v*], paths: [a]}"), []string{"10:26: the project api: on: push: paths filters branches, and with tags alone no branch counts; "}},
		"paths_ignore of tags":  {on("push: {tags: [v*], paths_ignore: [a]}"), []string{"10:26: the project api: on: push: paths_ignore filters branches, "}},
		"skip of a list":        {on("pull_request: {skip: [a]}"), []string{"10:28: the project api: on: pull_request: skip must be a mapping of keys to values, but this is a list"}},
		"skip of nothing":       {on("pull_request: {skip: {}}"), []string{"10:28: the project api: on: pull_request: skip has no labels; add one, as in `labels: [no-ci]`"}},
		"no labels":             {on("pull_request: {skip: {labels: []}}"), []string{"10:37: the project api: on: pull_request: skip: labels is an empty list, which leaves nothing to skip; "}},
		"an empty label":        {on("pull_request: {skip: {labels: ['']}}"), []string{"10:38: the project api: on: pull_request: skip: a label is empty; "}},
		"a label twice":         {on("pull_request: {skip: {labels: [a, a]}}"), []string{`10:41: the label "a" is given twice, first in line 10; `}},
		"drafts of text":        {on("pull_request: {drafts: skip}"), []string{"10:30: the project api: on: pull_request: drafts must be true or false, but this is text"}},
		"merge_group of a ref":  {on("merge_group: {branches: [refs/heads/main]}"), []string{`10:32: the project api: on: merge_group: branches: the pattern "refs/heads/main" begins with refs/; `}},
		"merge_group of tags":   {on("merge_group: {tags: [v*]}"), []string{`10:21: the project api: on: merge_group has no key "tags"; the keys are branches`}},
		"a release type":        {on("release: {types: [publish]}"), []string{`10:25: the project api: on: release: types: "publish" is not known (did you mean "published"?); it is one of published, created, released, prereleased`}},
		"a release type twice":  {on("release: {types: [created, created]}"), []string{`10:34: the project api: on: release: types has "created" twice; keep one`}},
		"no release type":       {on("release: {types: []}"), []string{"10:24: the project api: on: release: types is an empty list; "}},
		"no dispatch type":      {on("dispatch: {types: []}"), []string{"10:25: the project api: on: dispatch: types is an empty list, which nothing matches; "}},
		"a broken dispatch":     {on("dispatch: {types: ['{a']}"), []string{`10:26: the project api: on: dispatch: types: the pattern "{a" does not parse; `}},
		"schedule of a mapping": {on("schedule: {cron: '@daily'}"), []string{"10:17: the project api: on: schedule must be a list, but this is a mapping"}},
		"schedule of nothing":   {on("schedule:"), []string{"10:16: the project api: on: schedule must be a list, but this is empty"}},
		"no schedule":           {on("schedule: []"), []string{"10:17: the project api: on: schedule is an empty list, which starts nothing; add"}},
		"no cron":               {sched("branch: a"), []string{"11:9: the project api: on: a schedule has no cron; add one"}},
		"four fields":           {sched("cron: '* * * *'"), []string{`11:16: the project api: on: a schedule: cron: "* * * *" is not a time table (expected exactly 5 fields, found 4: [* * * *]); write five fields`}},
		"minute 60":             {sched("cron: '60 * * * *'"), []string{`11:16: the project api: on: a schedule: cron: "60 * * * *" is not a time table (end of range (60) above maximum (59): 60); `}},
		"@every":                {sched("cron: '@every 5m'"), []string{`11:16: the project api: on: a schedule: cron: "@every 5m" has no fixed times of the day, so a slot of it could not be told from another; `}},
		"@reboot":               {sched("cron: '@reboot'"), []string{`11:16: the project api: on: a schedule: cron: "@reboot" is not a time table (unrecognized descriptor: @reboot); `}},
		"a zone in cron":        {sched("cron: 'TZ=UTC'"), []string{`11:16: the project api: on: a schedule: cron: "TZ=UTC" has a time zone in it; put the zone into timezone`}},
		"30 February":           {sched("cron: '0 0 30 2 *'"), []string{`11:16: the project api: on: a schedule: cron: "0 0 30 2 *" never comes, as there is no such day; `}},
		"an empty cron":         {sched("cron: ''"), []string{`11:16: the project api: on: a schedule: cron: "" is empty; write five fields`}},
		"an unquoted star":      {on("schedule:\n      - cron: * * * * *"), []string{`11:23: this is not YAML, where an unquoted * begins an alias; quote the text`}},
		"a zone of summer":      {sched("cron: '@daily', timezone: CEST"), []string{`11:36: the project api: on: a schedule: timezone: "CEST" is not a time zone; write its IANA name`}},
		"a misspelt zone":       {sched("cron: '@daily', timezone: Europe/Berln"), []string{`11:36: the project api: on: a schedule: timezone: "Europe/Berln" is not a time zone; `}},
		"the machine's zone":    {sched("cron: '@daily', timezone: Local"), []string{`11:36: the project api: on: a schedule: timezone: "Local" is not a time zone; `}},
		"a zone of a path":      {sched("cron: '@daily', timezone: ../../etc/passwd"), []string{`11:36: the project api: on: a schedule: timezone: "../../etc/passwd" is not a time zone; `}},
		"an empty zone":         {sched("cron: '@daily', timezone: ''"), []string{"11:36: the project api: on: a schedule: timezone is empty; give it a value, or remove the key"}},
		"a full ref":            {sched("cron: '@daily', branch: refs/heads/a"), []string{`11:34: the project api: on: a schedule: branch: "refs/heads/a" is not a branch; `}},
		"a branch of a list":    {sched("cron: '@daily', branch: [a]"), []string{"11:34: the project api: on: a schedule: branch must be text, but this is a list"}},
		"a schedule twice":      {on("schedule:\n      - {cron: '@daily'}\n      - {cron: '@daily'}"), []string{"12:9: the project api: on: one schedule is given twice; keep one of them"}},
		"one in other words":    {on("schedule:\n      - {cron: '@daily', branch: main}\n      - {cron: '@daily', timezone: UTC}"), []string{"12:9: the project api: on: one schedule is given twice; keep one of them"}},
		"a key of a schedule":   {sched("cron: '@daily', zone: UTC"), []string{`11:26: the project api: on: a schedule has no key "zone"; the keys are cron, timezone, branch`}},
	})
}
