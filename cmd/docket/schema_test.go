package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"docket/scheduler/pipeline"
)

// rules is a JSON Schema as a validator reads it. It knows the words that
// docket's schemas have and refuses others.
type rules struct {
	root map[string]any
}

func mustRules(t *testing.T, args ...string) rules {
	t.Helper()
	var r rules
	if err := json.Unmarshal([]byte(newWorld(t).must(append([]string{"schema"}, args...)...)), &r.root); err != nil {
		t.Fatal(err)
	}
	if r.root["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Fatalf("a schema of %v", r.root["$schema"])
	}
	return r
}

// faults returns what a YAML text has against the rules.
func (r rules) faults(t *testing.T, text string) []string {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v = nil
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return r.check(r.root, v, "")
}

func (r rules) check(s map[string]any, v any, at string) (list []string) {
	fail := func(format string, args ...any) { list = append(list, at+": "+fmt.Sprintf(format, args...)) }
	for word, want := range s {
		switch word {
		case "$schema", "$defs", "title", "description", "default":
		case "$ref":
			def, ok := r.root["$defs"].(map[string]any)[strings.TrimPrefix(want.(string), "#/$defs/")].(map[string]any)
			if !ok {
				panic(fmt.Sprint("no definition ", want))
			}
			list = append(list, r.check(def, v, at)...)
		case "type":
			if types, ok := want.([]any); ok && slices.Contains(types, any(typeOf(v))) || want == typeOf(v) {
				continue
			}
			types, _ := want.([]any)
			if typeOf(v) != "integer" || want != "number" && !slices.Contains(types, any("number")) {
				fail("%v is not of type %v", v, want)
			}
		case "const":
			if v != want {
				fail("%v is not %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				fail("%v is none of %v", v, want)
			}
		case "oneOf", "anyOf":
			n := 0
			for _, choice := range want.([]any) {
				if len(r.check(choice.(map[string]any), v, at)) == 0 {
					n++
				}
			}
			if n == 0 || word == "oneOf" && n > 1 {
				fail("%d of %s hold", n, word)
			}
		default:
			list = append(list, r.checkMore(s, word, want, v, at)...)
		}
	}
	return list
}

func (r rules) checkMore(s map[string]any, word string, want, v any, at string) (list []string) {
	fail := func(format string, args ...any) { list = append(list, at+": "+fmt.Sprintf(format, args...)) }
	object, _ := v.(map[string]any)
	array, _ := v.([]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	limit, _ := want.(float64)
	switch word {
	case "properties":
		for name, rule := range want.(map[string]any) {
			if value, ok := object[name]; ok {
				list = append(list, r.check(rule.(map[string]any), value, at+"/"+name)...)
			}
		}
	case "additionalProperties":
		known, _ := s["properties"].(map[string]any)
		for name, value := range object {
			if _, ok := known[name]; ok {
				continue
			}
			if rule, ok := want.(map[string]any); ok {
				list = append(list, r.check(rule, value, at+"/"+name)...)
			} else {
				fail("no key %s", name)
			}
		}
	case "propertyNames":
		for name := range object {
			list = append(list, r.check(want.(map[string]any), name, at+"/"+name)...)
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := object[name.(string)]; !ok && object != nil {
				fail("no %s", name)
			}
		}
	case "items":
		for i, value := range array {
			list = append(list, r.check(want.(map[string]any), value, fmt.Sprint(at, "/", i))...)
		}
	case "uniqueItems":
		for i := range array {
			if slices.Contains(array[:i], array[i]) {
				fail("%v twice", array[i])
			}
		}
	case "pattern":
		if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
			fail("%q does not match %s", text, want)
		}
	case "minLength":
		if isText && utf8.RuneCountInString(text) < int(limit) {
			fail("%q is too short", text)
		}
	case "minItems":
		if array != nil && len(array) < int(limit) {
			fail("too few")
		}
	case "maxItems":
		if len(array) > int(limit) {
			fail("too many")
		}
	case "minimum":
		if isNumber && number < limit {
			fail("%v is too small", number)
		}
	case "maximum":
		if isNumber && number > limit {
			fail("%v is too large", number)
		}
	default:
		panic("the validator does not know " + word)
	}
	return list
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
	}
	return "number"
}

// Ensure that the schema takes every configuration that docket comes with.
func TestSchemaTakesDocketsOwnFiles(t *testing.T) {
	r := mustRules(t)
	dir := t.TempDir()
	demo := &demonstration{dir: dir, config: filepath.Join(dir, hereConfig)}
	if err := demo.writeConfig(); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"packaging/docket.yaml": mustRead(t, "../../packaging/docket.yaml"),
		"init":                  mustRead(t, mustInit(t, "github")),
		"init of gitea":         mustRead(t, mustInit(t, "gitea")),
		"the demo's":            mustRead(t, demo.config),
		"every event":           everyEvent,
	} {
		if list := r.faults(t, text); len(list) > 0 {
			t.Errorf("%s:\n%s", what, strings.Join(list, "\n"))
		}
	}
	p := mustRules(t, "pipeline")
	for _, text := range []string{
		"steps: [{name: a, run: x}]", "steps:\n- name: 1\n  run: |\n    a\n    b\n  deploy: true\nenv: {A: 1, B: true, C: x}\ntimeout: 1h30m\n",
	} {
		if list := p.faults(t, text); len(list) > 0 {
			t.Errorf("%s:\n%s", text, strings.Join(list, "\n"))
		}
	}
}

func mustInit(t *testing.T, provider string) string {
	t.Helper()
	w := newWorld(t)
	w.must("init", "--provider", provider, w.dir)
	return w.path("docket.yaml")
}

// soundConfig is a configuration with every section in it, and where each is.
func soundConfig() (root obj, at map[section]obj) {
	secret := obj{"file": "/s"}
	at = map[section]obj{
		sectionListen: {"address": "127.0.0.1:1"}, sectionLimits: {}, sectionLog: {}, sectionRetention: {"runs": "200h"}, sectionBackup: {"dir": "b"}, sectionSecret: secret,
		sectionApp: {"id": 1, "private_key": obj{"file": "/app.pem"}}, sectionConcurrency: {"group": "g"}, sectionGit: {},
		sectionInput: {"name": "target"}, sectionStep: {"name": "test", "run": "make"},
		sectionNotify: {"webhook": "https://h.example/x", "secret": obj{"file": "/s"}},
		sectionPush:   {}, sectionSkip: {"labels": []any{"no-ci"}}, sectionMergeGroup: {}, sectionRelease: {}, sectionDispatch: {},
		sectionSchedule: {"cron": "@daily"}, sectionTraces: {"endpoint": "http://c.example:4318", "headers": obj{"X-Key": secret}},
	}
	at[sectionACME] = obj{"domains": []any{"ci.example.org"}}
	at[sectionTLS] = obj{"acme": at[sectionACME]}
	at[sectionListen]["tls"] = at[sectionTLS]
	at[sectionPullRequest] = obj{"skip": at[sectionSkip]}
	at[sectionOn] = obj{
		"push": at[sectionPush], "pull_request": at[sectionPullRequest], "merge_group": at[sectionMergeGroup],
		"release": at[sectionRelease], "dispatch": at[sectionDispatch], "schedule": []any{at[sectionSchedule]},
	}
	at[sectionIntegration] = obj{"name": "github", "webhook_secrets": []any{secret}, "installations": []any{1}, "app": at[sectionApp]}
	at[sectionProject] = obj{
		"name": "api", "integration": "github", "repository": "acme/api", "on": at[sectionOn], "git": at[sectionGit],
		"concurrency": at[sectionConcurrency], "inputs": []any{at[sectionInput]}, "steps": []any{at[sectionStep]}, "notify": []any{at[sectionNotify]},
	}
	root = obj{
		"data_dir": "/d", "listen": []any{at[sectionListen]}, "limits": at[sectionLimits], "log": at[sectionLog], "retention": at[sectionRetention], "backup": at[sectionBackup],
		"traces":       at[sectionTraces],
		"integrations": []any{at[sectionIntegration]}, "projects": []any{at[sectionProject]},
	}
	at[sectionTop] = root
	return root, at
}

// Ensure that loader and schema know the same keys: a sound configuration is
// taken by both, and in each mapping a key that is not of it, one that is
// missing, and a value that no key has are refused by both.
func TestSchemaAndLoaderAgree(t *testing.T) {
	r := mustRules(t)
	both := func(what string, root obj, sound bool) {
		t.Helper()
		text := string(mustMarshal(t, root))
		loader, schema := faultsOf(t, text), r.faults(t, text)
		if (len(loader) == 0) != sound || (len(schema) == 0) != sound {
			t.Errorf("%s: the loader says %q, the schema %q", what, loader, schema)
		}
	}
	root, _ := soundConfig()
	both("a sound one", root, true)
	for s, m := range configKeys() {
		root, at := soundConfig()
		at[s]["zzz"] = 1
		both(fmt.Sprintf("zzz in %s", s), root, false)
		for _, k := range m.keys {
			root, at := soundConfig()
			at[s][k.name] = []any{obj{}}
			both(fmt.Sprintf("a list of a mapping as %s in %s", k.name, s), root, false)
			root, at = soundConfig()
			_, had := at[s][k.name]
			delete(at[s], k.name)
			if had && (k.required || slices.Contains(m.oneOf, k.name)) {
				both(fmt.Sprintf("no %s in %s", k.name, s), root, false)
			}
			for _, word := range k.words {
				root, at := soundConfig()
				delete(at[sectionNotify], "events")
				at[s][k.name] = word
				if k.shape == isWords {
					at[s][k.name] = []any{word}
				}
				if word != "gitea" { // needs more than itself
					both(fmt.Sprintf("%s: %s in %s", k.name, word, s), root, true)
				}
			}
		}
	}
}

// Ensure that the pipeline file's reader and schema know the same keys.
func TestPipelineSchemaAndReaderAgree(t *testing.T) {
	r := mustRules(t, "pipeline")
	sound := func() (obj, obj) {
		step := obj{"name": "a", "run": "x", "deploy": true}
		return obj{"steps": []any{step}, "env": obj{"A": "b"}, "timeout": "1m"}, step
	}
	both := func(what string, root obj, sound bool) {
		t.Helper()
		text := mustMarshal(t, root)
		_, faults := pipeline.CheckFile("p.yml", text)
		if schema := r.faults(t, string(text)); (len(faults) == 0) != sound || (len(schema) == 0) != sound {
			t.Errorf("%s: the reader says %v, the schema %q", what, faults, schema)
		}
	}
	root, _ := sound()
	both("a sound one", root, true)
	for place, keys := range [][]pipeline.Key{pipeline.FileKeys(), pipeline.StepKeys()} {
		pick := func() (root, at obj) {
			root, step := sound()
			return root, []obj{root, step}[place]
		}
		root, at := pick()
		at["zzz"] = 1
		both("zzz", root, false)
		for _, k := range keys {
			root, at := pick()
			at[k.Name] = []any{obj{}}
			both("a list of a mapping as "+k.Name, root, false)
			root, at = pick()
			delete(at, k.Name)
			both("no "+k.Name, root, !k.Required)
		}
	}
	root, _ = sound()
	many := []any{}
	for i := range pipeline.MaxSteps + 1 {
		many = append(many, obj{"name": fmt.Sprint("s", i), "run": "x"})
	}
	root["steps"] = many
	both("too many steps", root, false)
	root["steps"] = many[1:]
	both("as many as may be", root, true)
}

// Ensure that every default can be read, and is what the schema says.
func TestDefaultsAreTheSchemas(t *testing.T) {
	for s, m := range configKeys() {
		for _, k := range m.keys {
			if k.def == "" {
				continue
			}
			root, at := soundConfig()
			at[s][k.name] = k.schema()["default"]
			if list := faultsOf(t, string(mustMarshal(t, root))); len(list) > 0 {
				t.Errorf("the default %v of %s in %s: %q", k.def, k.name, s, list)
			}
		}
	}
}

// Ensure that wrong use is told.
func TestSchemaUsage(t *testing.T) {
	w := newWorld(t)
	if r := w.run("schema", "docket"); r.code != exitUsage || !strings.Contains(r.err, `there is no schema of "docket": use config or pipeline`) {
		t.Errorf("%d, %s", r.code, r.err)
	}
	if r := w.run("schema", "config", "x"); r.code != exitUsage {
		t.Errorf("%d, %s", r.code, r.err)
	}
	if config, same := w.must("schema"), w.must("schema", "config"); config != same {
		t.Error("config is not the default")
	}
}
