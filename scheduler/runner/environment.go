package runner

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"docket/store/ci"
)

// Variable is one of the variables that every step has.
type Variable struct {
	Name    string
	Meaning string
}

const (
	// defaultPath is a step's PATH, and the only part of an environment that
	// a project's env may set where it looks reserved.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// maxValue is the longest value of a variable, in bytes. Linux refuses to
	// start a program with a string of 128 KiB.
	maxValue = 32 << 10
)

// Variables lists what every step finds in its environment besides the
// project's env, the inputs and the secrets.
func Variables() []Variable {
	return []Variable{
		{"PATH", "a fixed default, " + defaultPath + "; only the project's env may set another"},
		{"HOME", "an empty directory of this run's attempt"},
		{"TMPDIR", "a directory of this run's attempt; the project's env may set another"},
		{"LANG", "C.UTF-8; the project's env may set another"},
		{"CI", "true"},
		{"DOCKET", "true"},
		{"DOCKET_RUN", "the run's id, as in api-42"},
		{"DOCKET_PROJECT", "the project's name"},
		{"DOCKET_NUMBER", "the run's number in its project"},
		{"DOCKET_EVENT", "what caused the run: push, pull_request, manual and so on"},
		{"DOCKET_REF", "the full ref, as in refs/heads/main"},
		{"DOCKET_BRANCH", "the branch's short name; empty for a tag"},
		{"DOCKET_TAG", "the tag's short name; empty for a branch"},
		{"DOCKET_COMMIT", "the exact commit, which is HEAD"},
		{"DOCKET_URL", "the run's page"},
		{"DOCKET_EVENT_FILE", "a file with the delivery's payload, whole; empty where there was none"},
	}
}

// environment returns a step's whole environment, sorted by name, and the
// names whose value was cut. Later layers win: env, inputs, secrets, and what
// nothing may override. A fork's run gets no secrets.
func environment(w Work, ws workspace) (env, cut []string) {
	vars := map[string]string{
		"PATH": defaultPath, "LANG": "C.UTF-8", "TMPDIR": ws.tmp(),
	}
	for name, v := range w.Spec.Env {
		vars[name] = v
	}
	for name, v := range w.Run.Inputs {
		if name = inputVariable(name); !ownVariable(name) {
			vars[name] = v
		}
	}
	if !w.Run.Fork {
		for _, name := range w.Spec.Secrets {
			if s, ok := w.Secrets[name]; ok && !ownVariable(name) {
				vars[name] = s.Reveal()
			}
		}
	}
	for name := range vars {
		if strings.HasPrefix(name, "DOCKET_") {
			delete(vars, name)
		}
	}
	run := w.Run
	event, _ := run.Told()
	if event == "" {
		event = ci.EventManual
	}
	for name, v := range map[string]string{
		"HOME": ws.home(), "CI": "true", "DOCKET": "true",
		"DOCKET_RUN": run.ID, "DOCKET_PROJECT": run.Project, "DOCKET_NUMBER": strconv.FormatUint(run.Number, 10),
		"DOCKET_EVENT": event, "DOCKET_REF": run.Source.Ref, "DOCKET_BRANCH": run.Source.Branch,
		"DOCKET_TAG": run.Source.Tag, "DOCKET_COMMIT": run.Source.Commit, "DOCKET_URL": w.URL,
		"DOCKET_EVENT_FILE": ws.event(),
	} {
		vars[name] = v
	}
	for name, v := range vars {
		if !variableName(name) {
			continue
		}
		short := cutValue(strings.ReplaceAll(v, "\x00", ""))
		if len(short) < len(v) {
			cut = append(cut, name)
		}
		env = append(env, name+"="+short)
	}
	sort.Strings(env)
	sort.Strings(cut)
	return env, cut
}

// inputVariable returns the variable of an input: upper case, - and . as _.
func inputVariable(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(name))
}

// ownVariable reports whether a variable is docket's to set.
func ownVariable(name string) bool {
	if strings.HasPrefix(name, "DOCKET_") {
		return true
	}
	for _, v := range Variables() {
		if v.Name == name {
			return true
		}
	}
	return false
}

// variableName reports whether a shell can name it.
func variableName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// cutValue cuts a value to 32 KiB, never inside a UTF-8 sequence.
func cutValue(v string) string {
	if len(v) <= maxValue {
		return v
	}
	n := maxValue
	for n > maxValue-utf8.UTFMax && !utf8.RuneStart(v[n]) {
		n--
	}
	if !utf8.RuneStart(v[n]) { // not UTF-8 at all
		n = maxValue
	}
	return v[:n]
}
