package pipeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"docket/scheduler/pipeline"
	"docket/store/ci"
)

func TestParseFile(t *testing.T) {
	one := []ci.Step{{Name: "a", Run: "x"}}
	for what, tc := range map[string]struct {
		text string
		want pipeline.File
	}{
		"all of it": {
			"# ci\nsteps:\n  - {name: test, run: make test}\n  - name: deploy\n    run: |\n      ./deploy.sh \"$TARGET\" && echo *\n      echo done\n    deploy: true\nenv: {GOFLAGS: -mod=readonly, N: 1, YES: true, HEX: 0x10, EMPTY: \"\"}\ntimeout: 1h30m\n",
			pipeline.File{
				Steps:   []ci.Step{{Name: "test", Run: "make test"}, {Name: "deploy", Run: "./deploy.sh \"$TARGET\" && echo *\necho done\n", Deploy: true}},
				Env:     map[string]string{"GOFLAGS": "-mod=readonly", "N": "1", "YES": "true", "HEX": "0x10", "EMPTY": ""},
				Timeout: 90 * time.Minute,
			},
		},
		"a file from Windows":         {"steps:\r\n  - name: a\r\n    run: |\r\n      x\r\n      y\r\n", pipeline.File{Steps: []ci.Step{{Name: "a", Run: "x\ny\n"}}}},
		"a byte order mark":           {"\ufeffsteps: [{name: a, run: x}]\n", pipeline.File{Steps: one}},
		"a document's beginning":      {"---\nsteps: [{name: a, run: x}]\n...\n", pipeline.File{Steps: one}},
		"folded and quoted":           {"steps:\n- name: 'it''s'\n  run: >\n    x\n    y\n- name: \"1\"\n  run: \"a\\nb\"\n", pipeline.File{Steps: []ci.Step{{Name: "it's", Run: "x y\n"}, {Name: "1", Run: "a\nb"}}}},
		"names in all scripts":        {"steps: [{name: テスト 😊, run: x}]", pipeline.File{Steps: []ci.Step{{Name: "テスト 😊", Run: "x"}}}},
		"a number for a name":         {"steps: [{name: 1, run: 2}]", pipeline.File{Steps: []ci.Step{{Name: "1", Run: "2"}}}},
		"a step that does not deploy": {"steps: [{name: a, run: x, deploy: false}]", pipeline.File{Steps: one}},
		"no variables":                {"env: {}\nsteps: [{name: a, run: x}]", pipeline.File{Steps: one, Env: map[string]string{}}},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := pipeline.ParseFile(".docket.yml", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestParseFile_Faults(t *testing.T) {
	const good = "steps: [{name: a, run: x}]\n"
	many := "steps:\n" + strings.Repeat("- {run: x}\n", 12)
	for what, tc := range map[string]struct{ text, want string }{
		"nothing":                 {"", "p.yml:1:1: the file is empty; write steps"},
		"comments alone":          {"# x\n", "p.yml:1:1: the file is empty; write steps"},
		"no steps":                {"timeout: 1m\n", "p.yml:1:1: the file has no steps; write some, as in: steps: [{name: test, run: make test}]\n  1 | timeout: 1m\n    | ^"},
		"a list":                  {"- a\n", "p.yml:1:1: the file is a list; want a mapping of steps, env, timeout"},
		"text":                    {"make test\n", "p.yml:1:1: the file is text; want a mapping"},
		"steps as a mapping":      {"steps: {}\n", "p.yml:1:1: steps is a mapping; want a list"},
		"steps of nothing":        {"steps:\n", "p.yml:1:1: steps is blank; want a list"},
		"empty steps":             {"steps: []\n", "p.yml:1:1: steps is empty"},
		"a step that is text":     {"steps:\n  - make\n", "p.yml:2:5: a step is text; want a mapping of name, run, deploy\n  2 |   - make\n    |     ^"},
		"a step without a name":   {"steps:\n  - run: x\n", "p.yml:2:5: a step has no name; give it one"},
		"a step without run":      {"steps:\n  - name: a\n", "p.yml:2:5: a step has no run; give it a shell script"},
		"a blank name":            {"steps: [{name: ' ', run: x}]", "p.yml:1:16: a step's name is empty"},
		"no name's value":         {"steps:\n- name:\n  run: x\n", "a step's name is empty or no text"},
		"a name of two lines":     {"steps: [{name: \"a\\nb\", run: x}]", "p.yml:1:16: a step's name has a line break"},
		"a name too long":         {"steps: [{name: " + strings.Repeat("a", 101) + ", run: x}]", "101 bytes and may have 100"},
		"two of one name":         {"steps:\n- {name: a, run: x}\n- {name: a, run: y}\n", "p.yml:3:10: there are two steps named \"a\"; give each a name of its own\n  3 | - {name: a, run: y}\n    |          ^"},
		"a blank script":          {"steps: [{name: a, run: ''}]", "p.yml:1:19: run is blank"},
		"a script that is null":   {"steps: [{name: a, run: null}]", "p.yml:1:19: run is blank; want a shell script"},
		"a script that is a list": {"steps: [{name: a, run: [x]}]", "p.yml:1:19: run is a list; want a shell script"},
		"a NUL in a script":       {"steps: [{name: a, run: \"a\\0b\"}]", "p.yml:1:24: run has a NUL"},
		"deploy that is text":     {"steps: [{name: a, run: x, deploy: yes}]", "p.yml:1:35: deploy is text; want true or false"},
		"an unknown key":          {good + "step: x\n", "p.yml:2:1: the file has no key \"step\" (did you mean \"steps\"?); it has steps, env, timeout\n  2 | step: x\n    | ^"},
		"an unknown key's value":  {"steps: [{name: a, run: x, when: y}]", "p.yml:1:27: a step has no key \"when\"; it has name, run, deploy"},
		"a key twice":             {good + good, "p.yml:2:1: \"steps\" is given twice in the file; keep one"},
		"a key twice in a step":   {"steps:\n- name: a\n  run: x\n  run: y\n", "p.yml:4:3: \"run\" is given twice in a step; keep one"},
		"env as a list":           {good + "env: [A=b]\n", "p.yml:2:6: env is a list; want a mapping"},
		"a bad variable":          {good + "env: {1A: x}\n", "p.yml:2:7: \"1A\" cannot name a variable"},
		"a variable with =":       {good + "env: {A=B: x}\n", "p.yml:2:7: \"A=B\" cannot name a variable"},
		"docket's own variable":   {good + "env: {DOCKET_RUN: x}\n", "p.yml:2:7: \"DOCKET_RUN\" is docket's own"},
		"the run's own home":      {good + "env: {HOME: /root}\n", "p.yml:2:7: \"HOME\" is docket's own"},
		"docket's part of a log":  {"steps: [{name: \"@checkout\", run: x}]", "p.yml:1:16: a step's name begins with @"},
		"a variable of null":      {good + "env: {A: null}\n", "the value of A is blank; want text"},
		"a variable of a list":    {good + "env: {A: [x]}\n", "the value of A is a list; want text"},
		"a NUL in a variable":     {good + "env: {A: \"\\x00\"}\n", "A has a NUL"},
		"a time-out of a number":  {good + "timeout: 30\n", "p.yml:2:10: timeout is no duration over zero; write it as in 90s"},
		"a time-out of zero":      {good + "timeout: 0s\n", "timeout is no duration over zero"},
		"a time-out below zero":   {good + "timeout: -1m\n", "timeout is no duration over zero"},
		"a time-out of a list":    {good + "timeout: [1m]\n", "timeout is no duration over zero"},
		"broken indentation":      {"steps:\n  - name: a\n   run: x\n", "p.yml:3:4: this is not valid YAML"},
		"an open quote":           {"steps: \"\n", "p.yml:1:8: this is not valid YAML"},
		"an anchor":               {"steps: &a [{name: a, run: x}]\n", "p.yml:1:8: anchors (&) and aliases (*) are not read here"},
		"an alias":                {"steps: *a\n", "p.yml:1:8: anchors (&)"},
		"a merge":                 {"<<: {}\n", "p.yml:1:1: anchors (&)"},
		"a tag":                   {"steps: !!str x\n", "p.yml:1:8: tags (!) are not read here"},
		"two documents":           {good + "---\n" + good, "p.yml:3:1: a second YAML document"},
		"a NUL in the file":       {"steps:\n  \x00", "p.yml:2:3: a NUL byte"},
		"Latin-1":                 {"steps:\n# caf\xe9\n", "p.yml:2:6: not UTF-8; save the file as UTF-8 text\n  2 | # caf\ufffd"},
		"an escape is not shown":  {"steps: # \x1b[2J\n", "\n  1 | steps: # \ufffd[2J"},
		"too many steps":          {"steps:\n" + strings.Repeat("- {name: a, run: x}\n", 51), "p.yml:1:1: there are 51 steps and may be 50"},
		"a file too big":          {"#" + strings.Repeat("x", 64<<10), "p.yml:1:1: the file has over 65536 bytes, the most that is read"},
		"too deep":                {strings.Repeat("[", 100) + strings.Repeat("]", 100), "p.yml:1:21: values lie too deep"},
		"too deep in lists":       {strings.Repeat("- ", 500) + "x", "values lie too deep"},
		"too many values":         {strings.Repeat("- x\n", 11_000), "too many YAML values"},
		"many faults":             {many, "p.yml:11:3: a step has no name; give it one, as in: {name: test, run: make test}\n  11 | - {run: x}\n     |   ^\nand 2 more; `docket check --pipeline p.yml` tells them all"},
	} {
		t.Run(what, func(t *testing.T) {
			f, err := pipeline.ParseFile("p.yml", []byte(tc.text))
			if ci.CodeOf(err) != ci.CodeInvalid || !strings.Contains(ci.MessageOf(err), tc.want) {
				t.Errorf("ParseFile = %+v, %v\nwant an error that says %s", f, err, tc.want)
			}
			if f.Steps != nil || f.Env != nil || f.Timeout != 0 {
				t.Errorf("a faulty file gave %+v", f)
			}
		})
	}
}

func TestParseFile_TellsAllFaultsAtOnce(t *testing.T) {
	_, err := pipeline.ParseFile("p.yml", []byte("steps:\n- {name: a}\n- {run: x}\ntimeout: soon\n"))
	for _, line := range []string{"p.yml:2:3: a step has no run", "p.yml:3:3: a step has no name", "p.yml:4:10: timeout"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v\ndoes not say %q", err, line)
		}
	}
}

// Ensure that each fault by itself has its place and source line, in the order
// of the file, however many there are.
func TestCheckFile(t *testing.T) {
	text := "# é\nenv: {1A: x}\nsteps:\n" + strings.Repeat("- {run: x}\n", 30)
	f, faults := pipeline.CheckFile("p.yml", []byte(text))
	if len(faults) != 31 || f.Steps != nil {
		t.Fatalf("%d faults, %+v", len(faults), f)
	}
	want := pipeline.Fault{File: "p.yml", Line: 2, Column: 7, Message: `"1A" cannot name a variable; use letters, digits and _, and no digit first`, Source: "env: {1A: x}"}
	if faults[0] != want || faults[30].Line != 33 || faults[30].Source != "- {run: x}" {
		t.Errorf("%+v\n%+v", faults[0], faults[30])
	}
	if _, faults := pipeline.CheckFile("p.yml", []byte("steps:\n"+strings.Repeat("- {}\n", 45)+"env: {"+strings.Repeat("1: 2, ", 300)+"}\n")); len(faults) > 200 {
		t.Errorf("%d faults", len(faults))
	}
}

// Ensure that a long line is cut around its fault, and that a tab, a BOM and
// text that turns its direction leave the caret in its place.
func TestFault_String(t *testing.T) {
	for what, tc := range map[string]struct {
		fault pipeline.Fault
		want  string
	}{
		"a plain one":   {pipeline.Fault{File: "f", Line: 12, Column: 3, Message: "m", Source: "ab c"}, "f:12:3: m\n  12 | ab c\n     |   ^"},
		"the file":      {pipeline.Fault{File: "f", Message: "m"}, "f: m"},
		"a tab":         {pipeline.Fault{File: "f", Line: 1, Column: 3, Message: "m", Source: "\tab"}, "f:1:3: m\n  1 | \tab\n    | \t ^"},
		"the other way": {pipeline.Fault{File: "f", Line: 1, Column: 2, Message: "m", Source: "\u202eab"}, "f:1:2: m\n  1 | \ufffdab\n    |  ^"},
		"a long line": {
			pipeline.Fault{File: "f", Line: 1, Column: 501, Message: "m", Source: strings.Repeat("a", 500) + "X" + strings.Repeat("b", 500)},
			"f:1:501: m\n  1 | " + strings.Repeat("a", 59) + "X" + strings.Repeat("b", 60) + "\n    | " + strings.Repeat(" ", 59) + "^",
		},
	} {
		if got := tc.fault.String(); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, tc.want)
		}
	}
	if _, faults := pipeline.CheckFile("p.yml", []byte("\ufeffstep: x\n")); faults[0].String() != "p.yml:1:1: the file has no key \"step\" (did you mean \"steps\"?); it has steps, env, timeout\n  1 | step: x\n    | ^" {
		t.Errorf("with a BOM: %s", faults[0])
	}
}

func TestParseFile_TakesAFileAtItsLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("steps:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "- {name: s%d, run: x}\n", i)
	}
	b.WriteString("#" + strings.Repeat("x", 64<<10-b.Len()-1))
	f, err := pipeline.ParseFile("p.yml", []byte(b.String()))
	if err != nil || len(f.Steps) != 50 || b.Len() != 64<<10 {
		t.Errorf("%d bytes, %d steps, %v", b.Len(), len(f.Steps), err)
	}
}

func TestApply(t *testing.T) {
	spec := ci.Spec{Version: 1, CloneURL: "u", Timeout: ci.Duration(30 * time.Minute), Env: map[string]string{"A": "1", "B": "1"}, Steps: []ci.Step{}}
	f := pipeline.File{Steps: []ci.Step{{Name: "a", Run: "x"}}, Env: map[string]string{"B": "2", "C": "2"}, Timeout: time.Minute}
	got := pipeline.Apply(spec, f)
	want := spec
	want.Steps, want.Timeout, want.Env = f.Steps, ci.Duration(time.Minute), map[string]string{"A": "1", "B": "2", "C": "2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	f.Steps[0].Run, got.Env["A"] = "y", "3"
	if spec.Env["A"] != "1" || got.Steps[0].Run != "x" {
		t.Error("the spec shares memory with what it was made of")
	}
	for what, tc := range map[string]struct{ project, file, want time.Duration }{
		"longer than the project's": {time.Minute, time.Hour, time.Minute},
		"not given":                 {time.Minute, 0, time.Minute},
		"the project has none":      {0, time.Hour, time.Hour},
	} {
		got := pipeline.Apply(ci.Spec{Timeout: ci.Duration(tc.project)}, pipeline.File{Timeout: tc.file})
		if time.Duration(got.Timeout) != tc.want {
			t.Errorf("a time-out %s: %v, want %v", what, time.Duration(got.Timeout), tc.want)
		}
	}
}

// Ensure that a file on one line, as JSON has it, may have as many steps.
func TestParseFile_OnOneLine(t *testing.T) {
	var steps []string
	for i := range pipeline.MaxSteps {
		steps = append(steps, fmt.Sprintf(`{"name": "s%d", "run": "x", "deploy": false}`, i))
	}
	f, err := pipeline.ParseFile("p.yml", []byte(`{"steps": [`+strings.Join(steps, ", ")+`]}`))
	if err != nil || len(f.Steps) != pipeline.MaxSteps {
		t.Errorf("%d steps, %v", len(f.Steps), err)
	}
}

// Ensure that any text gives a file within its bounds or faults with a place,
// and that a file which is written down again reads as the same one.
func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"steps:\n  - {name: test, run: make test}\n  - name: d\n    run: |\n      x\n    deploy: true\nenv: {A: b, N: 1}\ntimeout: 30m\n",
		"", "[]", "a: &x [*x]", "<<: *a", "? [a]\n: b\n", "- - - x", "{{{", "\"\\", "|\n x", "a: >-\n\n x", "!!binary x", "%YAML 1.2\n---\n", "\t", "a:\r\n b", "'", "#", "--- ---", "...",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := pipeline.ParseFile("p.yml", b)
		if err != nil {
			if ci.CodeOf(err) != ci.CodeInvalid || !strings.HasPrefix(err.Error(), "p.yml:") || !utf8.ValidString(err.Error()) || strings.ContainsRune(err.Error(), 0x1b) {
				t.Fatalf("error %q", err)
			}
			return
		}
		names := map[string]bool{}
		for _, s := range got.Steps {
			if s.Name == "" || names[s.Name] || strings.TrimSpace(s.Run) == "" || strings.ContainsRune(s.Run, 0) {
				t.Fatalf("step %+v of %q", s, b)
			}
			names[s.Name] = true
		}
		if n := len(got.Steps); n == 0 || n > pipeline.MaxSteps || got.Timeout < 0 {
			t.Fatalf("ParseFile(%q) = %+v", b, got)
		}
		for k, v := range got.Env {
			if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
				t.Fatalf("variable %q=%q of %q", k, v, b)
			}
		}
		written := asJSON(t, got)
		again, err := pipeline.ParseFile("p.yml", written)
		if len(written) <= pipeline.MaxFile && (err != nil || cmp.Diff(got, again, cmpopts.EquateEmpty()) != "") {
			t.Fatalf("%q is %+v, written %s, and that is %+v, %v", b, got, written, again, err)
		}
	})
}

// asJSON writes a file in the part of YAML that is JSON.
func asJSON(t *testing.T, f pipeline.File) []byte {
	t.Helper()
	steps := []map[string]any{}
	for _, s := range f.Steps {
		steps = append(steps, map[string]any{"name": s.Name, "run": s.Run, "deploy": s.Deploy})
	}
	out := map[string]any{"steps": steps}
	if len(f.Env) > 0 {
		out["env"] = f.Env
	}
	if f.Timeout > 0 {
		out["timeout"] = f.Timeout.String()
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
