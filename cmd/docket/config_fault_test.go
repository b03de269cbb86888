package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// faultyBase is a sound beginning for what is put after it: 7 lines.
const faultyBase = `data_dir: /d
integrations:
  - {name: github, webhook_secrets: [{file: /s}]}
projects:
  - name: api
    integration: github
    repository: acme/api
`

const oneStep = "    steps: [{name: test, run: make}]\n"

// faultsOf returns each fault as LINE:COL: message.
func faultsOf(t *testing.T, text string) []string {
	t.Helper()
	env := func(k string) string { return map[string]string{"SET": "x", "BLANK": "  "}[k] }
	files := secretFiles(map[string]string{
		"/s": "k\n", "/empty": "", "/blank": " \n\t\n", "/newline": "\n", "/token": "a b\n", "/nul": "a\x00b", "/large": strings.Repeat("x", 32<<10+1),
		"/url": "https://hooks.example.org/x\n", "/whsec": "whsec_!!\n", "/app.pem": rsaKey(), "/ec.pem": ecKey(), "/pub.pem": publicKey(),
	})
	_, err := parseConfig("docket.yaml", text, env, files)
	if err == nil {
		return nil
	}
	var faulty *ConfigError
	if !errors.As(err, &faulty) {
		t.Fatalf("not a list of faults: %v", err)
	}
	list := make([]string, len(faulty.Faults))
	for i, f := range faulty.Faults {
		list[i] = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
	}
	return list
}

// A want is LINE:COL: and the beginning of the sentence.
type faultCase struct {
	text string
	want []string
}

func runFaultCases(t *testing.T, cases map[string]faultCase) {
	t.Helper()
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			got := faultsOf(t, c.text)
			if len(got) != len(c.want) {
				t.Fatalf("got %d faults, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
				if _, how, ok := strings.Cut(got[i], "; "); !ok || how == "" {
					if !strings.Contains(got[i], "add one") && !strings.Contains(got[i], "must be") {
						t.Errorf("does not say how to mend it: %s", got[i])
					}
				}
			}
		})
	}
}

func TestFaultsOfTheFile(t *testing.T) {
	runFaultCases(t, map[string]faultCase{
		"an unknown key": {"data_dir: /d\ndata_dri: /e\n", []string{`2:1: docket.yaml has no key "data_dri" (did you mean "data_dir"?)`}},
		"an unknown key that resembles none": {"data_dir: /d\nzzz: 1\n", []string{
			`2:1: docket.yaml has no key "zzz"; the keys are data_dir, public_url,`,
		}},
		"a duplicate key":           {"data_dir: /d\n\ndata_dir: /e\n", []string{`3:1: the key "data_dir" is given twice, first in line 1; keep one`}},
		"a list at the top":         {"- a\n", []string{"1:1: docket.yaml must be a mapping of keys to values, but this is a list"}},
		"no data_dir":               {"listen: [{address: \":1\"}]\n", []string{"1:1: docket.yaml has no data_dir; add one, as in `data_dir: /var/lib/docket`"}},
		"an empty data_dir":         {"data_dir:\n", []string{"1:10: docket.yaml: data_dir is empty; give it a value"}},
		"a blank data_dir":          {"data_dir: \"\"\n", []string{"1:11: docket.yaml: data_dir is empty; give it a value"}},
		"a mapping for text":        {"data_dir: {a: b}\n", []string{"1:11: docket.yaml: data_dir must be text, but this is a mapping"}},
		"broken YAML":               {"data_dir: /d\nlisten: [a\n", []string{"2:9: this is not YAML: "}},
		"a tab as indentation":      {"data_dir: /d\nlimits:\n\tbody: 1\n", []string{"3:1: this is not YAML: found character '\t' that cannot start any token; check the indentation"}},
		"two documents":             {"data_dir: /d\n---\ndata_dir: /e\n", []string{"3:1: a second YAML document begins here; keep everything in one"}},
		"not UTF-8":                 {"data_dir: /d\n# \xff\n", []string{"2:1: this line is not UTF-8; save the file as UTF-8"}},
		"a NUL":                     {"data_dir: \"a\\0b\"\n", []string{"1:11: docket.yaml: data_dir holds a NUL byte; remove it"}},
		"an alias without anchor":   {"data_dir: *d\n", []string{"1:11: the alias *d has no anchor &d in this file"}},
		"a tag":                     {"data_dir: !!str /d\n", []string{"1:11: the tag !!str is not used in this file; remove it"}},
		"deep nesting":              {"data_dir: /d\nlisten: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "\n", []string{"2:73: more than 64 levels are nested here; "}},
		"a bad duration":            {"data_dir: /d\nshutdown_grace: soon\n", []string{`2:17: docket.yaml: shutdown_grace: "soon" is not a duration; write it with a unit`}},
		"a duration without unit":   {"data_dir: /d\nshutdown_grace: 30\n", []string{`2:17: docket.yaml: shutdown_grace: "30" is not a duration; write it with a unit`}},
		"a duration of nothing":     {"data_dir: /d\nscan_interval: 0s\n", []string{"2:16: docket.yaml: scan_interval must be from 10ms to 1h"}},
		"a negative duration":       {"data_dir: /d\nscan_interval: -5s\n", []string{"2:16: docket.yaml: scan_interval must be from 10ms to 1h"}},
		"KB":                        {"data_dir: /d\nlimits: {body: 25KB}\n", []string{`2:16: limits: body: "25KB" has an unknown unit; sizes are in bytes, KiB, MiB or GiB`}},
		"a size that is none":       {"data_dir: /d\nlimits: {log: many}\n", []string{`2:15: limits: log: "many" is not a size; write bytes`}},
		"a size of 1.5":             {"data_dir: /d\nlimits: {log: 1.5MiB}\n", []string{`2:15: limits: log: "1.5MiB" is not a size; `}},
		"a size out of bounds":      {"data_dir: /d\nlimits: {body: 0}\n", []string{"2:16: limits: body must be from 1KiB to 1GiB"}},
		"a size past all bounds":    {"data_dir: /d\nlimits: {log: 9999999999GiB}\n", []string{`2:15: limits: log: "9999999999GiB" is too large; `}},
		"text for a number":         {"data_dir: /d\nlimits: {concurrent_runs: two}\n", []string{"2:27: limits: concurrent_runs must be a whole number, but this is text"}},
		"no runs at all":            {"data_dir: /d\nlimits: {concurrent_runs: 0}\n", []string{"2:27: limits: concurrent_runs must be a whole number from 1 to 1000"}},
		"public_url without scheme": {"data_dir: /d\npublic_url: ci.example.org\n", []string{`2:13: docket.yaml: public_url: "ci.example.org" must begin with http:// or https://`}},
		"public_url with a query":   {"data_dir: /d\npublic_url: https://a/?b\n", []string{"2:13: public_url must end with its path; remove what follows"}},
		"public_url with password":  {"data_dir: /d\npublic_url: https://a:b@c/\n", []string{`2:13: docket.yaml: public_url: "https://***@c/" holds credentials, which would be shown; `}},
		"an address without port":   {"data_dir: /d\nlisten:\n  - address: localhost\n", []string{`3:14: listen: the address "localhost" is not HOST:PORT; write one`}},
		"a port out of range":       {"data_dir: /d\nlisten:\n  - address: :70000\n", []string{`3:14: listen: the address ":70000" has a port that is not a number from 0 to 65535`}},
		"a host that is none":       {"data_dir: /d\nlisten:\n  - address: 'a b:80'\n", []string{`3:14: listen: the address "a b:80" has a host that is neither`}},
		"an unknown part":           {"data_dir: /d\nlisten:\n  - {address: ':80', serve: [hook]}\n", []string{`3:30: an entry of listen: serve: "hook" is not known (did you mean "hooks"?); it is one of hooks, api, ui`}},
		"an empty serve":            {"data_dir: /d\nlisten:\n  - {address: ':80', serve: []}\n", []string{"3:29: an entry of listen: serve is an empty list; "}},
		"one address twice":         {"data_dir: /d\nlisten:\n  - address: :80\n  - address: :80\n", []string{`4:14: the address ":80" is given twice, first in line 3; `}},
		"every fault at once": {"data_dri: /d\nlisten:\n  - {}\nlimits: {body: x, log: y}\n", []string{
			`1:1: docket.yaml has no key "data_dri"`, `1:1: docket.yaml has no data_dir`,
			"3:5: an entry of listen has no address", `4:16: limits: body: "x"`, `4:24: limits: log: "y"`,
		}},
	})
}

func TestFaultsOfIntegrations(t *testing.T) {
	in := func(s string) string { return "data_dir: /d\nintegrations:\n  - " + s + "\n" }
	with := func(s string) string { return in("{name: gh, webhook_secrets: [{file: /s}], " + s + "}") }
	runFaultCases(t, map[string]faultCase{
		"no name":         {in("{webhook_secrets: [{file: /s}]}"), []string{"3:5: an integration has no name; add one, as in `name: github`"}},
		"a name with A":   {in("{name: GitHub, webhook_secrets: [{file: /s}]}"), []string{`3:12: an integration: "GitHub" cannot be a name; use a to z`}},
		"a name with /":   {in("{name: ../x, webhook_secrets: [{file: /s}]}"), []string{`3:12: an integration: "../x" cannot be a name; `}},
		"gitlab":          {with("provider: gitlab"), []string{`3:57: the integration gh: provider: "gitlab" is not known (did you mean "github"?); it is one of github, gitea`}},
		"api_url":         {with("api_url: ftp://x"), []string{`3:56: the integration gh: api_url: "ftp://x" must begin with http:// or https://`}},
		"no secret":       {in("{name: gh}"), []string{"3:5: the integration gh has no webhook_secrets; add one"}},
		"empty secrets":   {in("{name: gh, webhook_secrets: []}"), []string{"3:33: the integration gh has no secret in webhook_secrets; add one"}},
		"not a list":      {in("{name: gh, webhook_secrets: {file: /s}}"), []string{"3:33: the integration gh: webhook_secrets must be a list, as there are two while a secret is rotated; "}},
		"a literal":       {in("{name: gh, webhook_secrets: [hunter2]}"), []string{"3:34: the integration gh: webhook_secrets is written here as it is; put the secret into a file"}},
		"file and env":    {in("{name: gh, webhook_secrets: [{file: /s, env: SET}]}"), []string{"3:34: the integration gh: webhook_secrets needs one of file, env and credential; "}},
		"neither":         {in("{name: gh, webhook_secrets: [{}]}"), []string{"3:34: the integration gh: webhook_secrets needs one of file, env and credential; "}},
		"a missing file":  {in("{name: gh, webhook_secrets: [{file: /none}]}"), []string{"3:41: the integration gh: webhook_secrets: the file /none does not exist; create it or correct the path"}},
		"an empty file":   {in("{name: gh, webhook_secrets: [{file: /empty}]}"), []string{"3:41: the integration gh: webhook_secrets: the secret from /empty is empty or blank; put the secret in"}},
		"a blank file":    {in("{name: gh, webhook_secrets: [{file: /blank}]}"), []string{"3:41: the integration gh: webhook_secrets: the secret from /blank is empty or blank; "}},
		"a lone newline":  {in("{name: gh, webhook_secrets: [{file: /newline}]}"), []string{"3:41: the integration gh: webhook_secrets: the secret from /newline is empty or blank; "}},
		"an unset env":    {in("{name: gh, webhook_secrets: [{env: NONE}]}"), []string{"3:40: the integration gh: webhook_secrets: the environment variable NONE is not set or empty; "}},
		"a blank env":     {in("{name: gh, webhook_secrets: [{env: BLANK}]}"), []string{"3:40: the integration gh: webhook_secrets: the secret from env BLANK is empty or blank; "}},
		"an env of a-b":   {in("{name: gh, webhook_secrets: [{env: a-b}]}"), []string{`3:40: the integration gh: webhook_secrets: "a-b" cannot be the name of an environment variable; `}},
		"a spaced token":  {with("token: {file: /token}"), []string{"3:61: the integration gh: token: the secret from /token holds a blank"}},
		"installation 0":  {with("installations: [0]"), []string{"3:63: the integration gh: an installation must be a whole number from 1 up"}},
		"installation x":  {with("installations: [x]"), []string{"3:63: the integration gh: an installation must be a whole number, but this is text"}},
		"installation 2x": {with("installations: [7, 7]"), []string{`3:66: the installation "7" is given twice, first in line 3; `}},
		"one name twice": {"data_dir: /d\nintegrations:\n  - {name: gh, webhook_secrets: [{file: /s}]}\n  - {name: gh, webhook_secrets: [{file: /s}]}\n", []string{
			`4:12: the integration "gh" is given twice, first in line 3; each needs a name of its own`,
		}},
	})
}

func TestFaultsOfProjects(t *testing.T) {
	p := func(s string) string { return faultyBase + oneStep + "    " + s + "\n" } // s stands in line 9
	bare := func(s string) string { return faultyBase + "    " + s + "\n" }        // s stands in line 8
	runFaultCases(t, map[string]faultCase{
		"no steps":           {faultyBase, []string{"5:5: the project api has no steps; add `steps:"}},
		"steps and pipeline": {p("pipeline: .docket.yml"), []string{"9:5: the project api has both steps and pipeline; keep one"}},
		"an empty list":      {bare("steps: []"), []string{"8:12: the project api has no step in its list; add one"}},
		"steps of nothing":   {bare("steps:"), []string{"8:11: the project api: steps must be a list, but this is empty"}},
		"a step unnamed":     {bare("steps: [{run: x}]"), []string{"8:13: the project api: a step has no name; add one"}},
		"a step without run": {bare("steps: [{name: a}]"), []string{"8:13: the project api: the step a has no run; add one"}},
		"a blank run":        {bare("steps: [{name: a, run: ' '}]"), []string{"8:28: the project api: the step a: run is empty; write the commands"}},
		"steps named alike":  {bare("steps: [{name: a, run: x}, {name: a, run: y}]"), []string{`8:39: the step "a" is given twice, first in line 8; `}},
		"a step named @":     {bare("steps: [{name: '@checkout', run: x}]"), []string{`8:20: the project api: a step cannot be named "@checkout"; `}},
		"deploy of text":     {bare("steps: [{name: a, run: x, deploy: yes}]"), []string{"8:39: the project api: the step a: deploy must be true or false, but this is text"}},
		"an unknown step key": {bare("steps: [{name: a, run: x, depoy: true}]"), []string{
			`8:31: the project api: a step has no key "depoy" (did you mean "deploy"?); the keys are name, run, deploy`,
		}},
		"pipeline outside":         {bare("pipeline: ../x.yml"), []string{`8:15: the project api: pipeline: "../x.yml" is not a path inside the repository; `}},
		"pipeline absolute":        {bare("pipeline: /x.yml"), []string{`8:15: the project api: pipeline: "/x.yml" is not a path inside`}},
		"a bad timeout":            {p("timeout: 0s"), []string{"9:14: the project api: timeout must be from 1s to 720h"}},
		"a bad grace":              {p("grace: -1s"), []string{"9:12: the project api: grace must be from 1ms to 1h"}},
		"supersede":                {p("supersede: runing"), []string{`9:16: the project api: supersede: "runing" is not known (did you mean "running"?); it is one of none, pending, running`}},
		"on_interrupt":             {p("on_interrupt: retry"), []string{`9:19: the project api: on_interrupt: "retry" is not known; it is one of stop, requeue`}},
		"replays":                  {p("replays: maybe"), []string{`9:14: the project api: replays: "maybe" is not known; it is one of accept, refuse`}},
		"public":                   {p("public: 1"), []string{"9:13: the project api: public must be true or false, but this is a number"}},
		"git depth":                {p("git: {depth: -1}"), []string{"9:18: the project api: git: depth must be a whole number from 0"}},
		"git key":                  {p("git: {submodule: true}"), []string{`9:11: the project api: git has no key "submodule" (did you mean "submodules"?)`}},
		"repository_id":            {p("repository_id: 0"), []string{"9:20: the project api: repository_id must be a whole number from 1 up"}},
		"default_branch":           {p("default_branch: refs/heads/main"), []string{`9:21: the project api: default_branch: "refs/heads/main" is not a branch; `}},
		"default_branch with dash": {p("default_branch: -x"), []string{`9:21: the project api: default_branch: "-x" is not a branch; `}},
		"on of text":               {p("on: push"), []string{"9:9: the project api: on must be a mapping of keys to values, but this is text"}},
		"on.push of text":          {p("on: {push: main}"), []string{"9:16: the project api: on: push must be a mapping of keys to values, but this is text"}},
		"a broken pattern":         {p("on: {push: {branches: [main, 'rel[ease']}}"), []string{`9:34: the project api: on: push: branches: the pattern "rel[ease" does not parse; `}},
		"a negative pattern":       {p("on: {push: {branches: ['!main']}}"), []string{`9:28: the project api: on: push: branches: the pattern "!main" is the first and takes away what none before it let in; `}},
		"a broken exclusion":       {p("on: {push: {branches: ['**', '!a[']}}"), []string{`9:34: the project api: on: push: branches: the pattern "!a[" does not parse; `}},
		"a full ref":               {p("on: {push: {tags: [refs/tags/v1]}}"), []string{`9:24: the project api: on: push: tags: the pattern "refs/tags/v1" begins with refs/; `}},
		"no patterns":              {p("on: {pull_request: {branches: []}}"), []string{"9:35: the project api: on: pull_request: branches is an empty list, which nothing matches; "}},
		"one text for many":        {p("on: {push: {branches: main}}"), []string{"9:27: the project api: on: push: branches must be a list, but this is text"}},
		"an env of a list":         {p("env: {A: [b]}"), []string{"9:14: the project api: env: A must be text, but this is a list"}},
		"an env of nothing":        {p("env: {A: }"), []string{"9:13: the project api: env: A is empty; give it a value"}},
		"a bad env name":           {p("env: {a-b: c}"), []string{`9:11: the project api: env: "a-b" cannot be the name of a variable; `}},
		"a reserved env":           {p("env: {DOCKET_RUN: c, CI: d}"), []string{"9:11: the project api: env: docket sets DOCKET_RUN itself in every step; ", "9:26: the project api: env: docket sets CI itself"}},
		"a long env":               {p("env: {A: " + strings.Repeat("x", 32<<10+1) + "}"), []string{"9:14: the project api: env: A is over 32KiB, the most"}},
		"env and secrets":          {p("env: {A: b}\n    secrets: {A: {file: /s}}"), []string{"10:15: the project api: the variable A is set by env already; remove one of them"}},
		"a literal secret":         {p("secrets: {A: hunter2}"), []string{"9:18: the project api: secrets: A is written here as it is; "}},
		"a secret with NUL":        {p("secrets: {A: {file: /nul}}"), []string{"9:25: the project api: secrets: A: the secret from /nul holds a NUL byte"}},
		"a large secret":           {p("secrets: {A: {file: /large}}"), []string{"9:25: the project api: secrets: A: the secret from /large is over 32KiB"}},
		"an input unnamed":         {p("inputs: [{default: a}]"), []string{"9:14: the project api: an input has no name; add one"}},
		"an input named so":        {p("inputs: [{name: 1a}]"), []string{"9:21: the project api: the input 1a cannot be named so; "}},
		"an input PATH":            {p("inputs: [{name: path}]"), []string{"9:21: the project api: the input path would set the variable PATH, which is not for requests to set; "}},
		"inputs twice":             {p("inputs: [{name: a}, {name: a}]"), []string{`9:32: the input "a" is given twice, first in line 9; `}},
		"inputs alike":             {p("inputs: [{name: a-b}, {name: A_B}]"), []string{"9:34: the project api: the variable A_B is set by the input a-b already; "}},
		"input and env":            {p("env: {A: b}\n    inputs: [{name: a}]"), []string{"10:21: the project api: the variable A is set by env already; "}},
		"a default outside":        {p("inputs: [{name: a, default: c, options: [x, y]}]"), []string{`9:33: the project api: the input a: the default "c" is not among its options; they are "x", "y"`}},
		"no default":               {p("inputs: [{name: a, options: [x]}]"), []string{"9:33: the project api: the input a has options and no default; add one"}},
		"no options":               {p("inputs: [{name: a, options: []}]"), []string{"9:33: the project api: the input a has no options in its list; "}},
		"options twice":            {p("inputs: [{name: a, default: x, options: [x, x]}]"), []string{`9:49: the option "x" is given twice, first in line 9; `}},
		"a long default":           {p("inputs: [{name: a, default: " + strings.Repeat("x", 32<<10+1) + "}]"), []string{"9:33: the project api: the input a: a value is over 32KiB"}},
	})
}

func TestFaultsOfSources(t *testing.T) {
	project := func(s string) string {
		return "data_dir: /d\nintegrations:\n  - {name: github, webhook_secrets: [{file: /s}]}\nprojects:\n  - {name: api, steps: [{name: t, run: x}], " + s + "}\n"
	}
	clone := func(s string) string {
		return project("integration: github, repository: a/b, clone_url: '" + s + "'")
	}
	cases := map[string]faultCase{
		"no integration":      {project("repository: a/b"), []string{"5:5: the project api has no integration; add one"}},
		"unknown integration": {project("integration: gihub, repository: a/b"), []string{`5:58: the project api: there is no integration "gihub" (did you mean "github"?); there are github`}},
		"no repository":       {project("integration: github"), []string{"5:5: the project api has no repository; add one"}},
		"a repository of one": {project("integration: github, repository: api"), []string{`5:78: the project api: repository: "api" is not OWNER/NAME; `}},
		"a repository of URL": {project("integration: github, repository: 'https://github.com/a/b'"), []string{`5:78: the project api: repository: "https://github.com/a/b" is not OWNER/NAME; `}},
		"a repository of ..":  {project("integration: github, repository: ../b"), []string{`5:78: the project api: repository: "../b" is not OWNER/NAME; `}},
		"enterprise without clone_url": {strings.Replace(project("integration: github, repository: a/b"), "{name: github,", "{name: github, api_url: 'https://ghe.example.org/api/v3',", 1), []string{
			"5:5: the project api has no clone_url; add one",
		}},
		"one name twice": {faultyBase + oneStep + strings.TrimPrefix(faultyBase[strings.Index(faultyBase, "  - name: api"):], "") + oneStep, []string{
			`9:11: the project "api" is given twice, first in line 5; each needs a name of its own`,
		}},
	}
	for url, why := range map[string]string{
		"ext::sh -c x":                  "uses a git transport that can run commands; ",
		"ftp://h/x":                     `has the scheme "ftp", which docket does not clone from; `,
		"git://h/x":                     `has the scheme "git", which docket does not clone from; `,
		"http://h.example/x":            "goes over plain http, where anyone between can change the code; ",
		"./relative":                    "is not a clone address; ",
		"--upload-pack=x":               "is not a clone address; ",
		"-oProxyCommand=x:y":            "is not a clone address; ",
		"git@-host:x":                   "is not a clone address; ",
		"https:///x":                    "names no host; ",
		"file://host/x":                 "must be file:/// and an absolute path",
		"ssh://-oProxyCommand=x/y":      "names no host; ",
		" https://h/x":                  "holds control characters or blanks at its ends; ",
		"https://h/x\\":                 "",
		"https://github.com/a/b.git":    "",
		"git@github.com:a/b.git":        "",
		"ssh://git@github.com:22/a/b":   "",
		"file:///srv/git/a.git":         "",
		"/srv/git/a.git":                "",
		"http://127.0.0.1:8080/a.git":   "",
		"https://hé.example/x#fragment": "",
	} {
		c := faultCase{text: clone(url)}
		if why != "" {
			c.want = []string{fmt.Sprintf("5:94: the project api: clone_url: %q %s", url, why)}
		}
		cases["clone_url "+url] = c
	}
	for given, shown := range map[string]string{
		"https://me:pw@h/x": "https://***@h/x", "https://token@h/x": "https://***@h/x", "ssh://git:pw@h/x": "ssh://***@h/x",
	} {
		cases["clone_url "+given] = faultCase{clone(given), []string{fmt.Sprintf("5:94: the project api: clone_url: %q holds credentials; ", shown)}}
	}
	runFaultCases(t, cases)
}

func TestFaultsOfNotify(t *testing.T) {
	n := func(s string) string { return faultyBase + oneStep + "    notify:\n      - " + s + "\n" } // s stands in line 10
	hook := "webhook: 'https://h.example/x', secret: {file: /s}"
	runFaultCases(t, map[string]faultCase{
		"neither":               {n("{events: [run.failed]}"), []string{"10:9: the project api: a notify entry needs exactly one of webhook and slack; "}},
		"both":                  {n("{" + hook + ", slack: {file: /url}}"), []string{"10:9: the project api: a notify entry needs exactly one of webhook and slack; "}},
		"no secret":             {n("{webhook: 'https://h.example/x'}"), []string{"10:9: the project api: a notify entry has no secret; add one"}},
		"a literal secret":      {n("{webhook: 'https://h.example/x', secret: hunter2}"), []string{"10:50: the project api: a notify entry: secret is written here as it is; "}},
		"a bad address":         {n("{webhook: 'h.example', secret: {file: /s}}"), []string{`10:19: the project api: a notify entry: webhook: "h.example" must begin with http:// or https://`}},
		"a secret address":      {n("{webhook: {file: /url}, secret: {file: /s}}"), []string{"10:19: the project api: a notify entry: webhook must be an address as text"}},
		"a broken whsec":        {n("{webhook: 'https://h.example/x', secret: {file: /whsec}}"), []string{"10:57: the project api: a notify entry: secret: the secret from /whsec begins with whsec_, but what follows is not base64; "}},
		"a slack literal":       {n("{slack: 'https://hooks.slack.example/x'}"), []string{"10:17: the project api: a notify entry: slack is written here as it is; "}},
		"a slack of no address": {n("{slack: {file: /s}}"), []string{"10:24: the project api: a notify entry: slack: the secret from /s is not an address; "}},
		"slack with secret":     {n("{slack: {file: /url}, secret: {file: /s}}"), []string{"10:31: the project api: a notify entry: slack takes no secret, as its address is one; remove it"}},
		"an unknown event":      {n("{" + hook + ", events: [run.finish]}"), []string{`10:71: the project api: a notify entry: events: "run.finish" is not known (did you mean "run.finished"?); `}},
		"an event twice":        {n("{" + hook + ", events: [run.failed, run.failed]}"), []string{`10:83: the project api: a notify entry: events has "run.failed" twice; keep one`}},
		"no event":              {n("{" + hook + ", events: []}"), []string{"10:70: the project api: a notify entry: events is an empty list; "}},
	})
}

// Ensure that a fault shows its file, place, source line and a caret.
func TestFaultRendering(t *testing.T) {
	_, err := parseConfig("conf/docket.yaml", "data_dir: /d\nlimits:\n  # é\n  body: 25KB\n  日本: x\n", noEnv, secretFiles(nil))
	want := `conf/docket.yaml:4:9: limits: body: "25KB" has an unknown unit; sizes are in bytes, KiB, MiB or GiB (powers of 1024), as in 25MiB
  4 |   body: 25KB
    |         ^
conf/docket.yaml:5:3: limits has no key "日本"; the keys are body, concurrent_runs, log, free_space
  5 |   日本: x
    |   ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Ensure that a secret which was written into the file is not shown, whatever
// else is wrong with its line.
func TestFaultsMaskLiteralSecrets(t *testing.T) {
	for _, text := range []string{
		"data_dir: /d\nadmin_token: hunter2\n",
		"data_dir: /d\nadmin_token: \"hunter2\"\nbogus: 1\n",
		"data_dir: /d\nadmin_tokn: hunter2\n",
		"data_dir: /d\nadmin_token: |\n  hunter2\n  hunter2\n",
		"data_dir: /d\nintegrations: [{bogus: 1, name: g, webhook_secrets: [hunter2], more: 2}]\n",
		"data_dir: /d\nintegrations: [{name: g, webhook_secrets: hunter2}]\n",
		"data_dir: /d\npublic_url: https://me:hunter2@example.org\n",
		faultyBase + oneStep + "    clone_url: https://hunter2@h/x\n    notify: [{slack: hunter2}]\n",
	} {
		_, err := parseConfig("docket.yaml", text, noEnv, secretFiles(map[string]string{"/s": "k"}))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// Ensure that aliases cannot unfold without bound.
func TestAliasBombIsRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("data_dir: /d\nlisten:\n  - &a0 {address: ':1', serve: [hooks]}\n")
	prev := "a0"
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&b, "  - &m%d {<<: [*%s, *%s], serve: [hooks]}\n", i, prev, prev)
		prev = fmt.Sprintf("m%d", i)
	}
	got := strings.Join(faultsOf(t, b.String()), "\n")
	mustContain(t, "the faults", got, "unfold to more than")
}

// Ensure that merges cannot either, where one short alias stands for many keys.
func TestMergesAreBounded(t *testing.T) {
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("K%d: x", i))
	}
	merges := strings.Repeat("*e, ", 2000)
	base := strings.Replace(faultyBase, "  - name: api\n", "  - name: web\n    integration: github\n    repository: acme/web\n    env: &e {"+
		strings.Join(keys, ", ")+"}\n"+oneStep+"  - name: api\n", 1)
	for what, env := range map[string]string{
		"in one list":  "{<<: [" + merges + "]}",
		"in many maps": "{" + strings.Repeat("<<: *e, ", 2000) + "}",
	} {
		got := strings.Join(faultsOf(t, base+"    env: "+env+"\n"+oneStep), "\n")
		mustContain(t, "the faults "+what, got, "unfold to more than")
		if n := strings.Count(got, "unfold to more than"); n != 1 {
			t.Errorf("%s: it is told %d times", what, n)
		}
	}
}
