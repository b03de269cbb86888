package pipeline

// Key is one key of a pipeline file: what the reader takes and an editor is
// told of.
type Key struct {
	Name     string
	About    string // for people, what it does
	Required bool
	Most     int // of a list; 0: any number
}

// FileKeys is every key of a pipeline file.
func FileKeys() []Key {
	return []Key{
		{Name: "steps", Required: true, Most: MaxSteps, About: "Shell scripts, in order, in the workspace at the exact commit."},
		{Name: "env", About: "Variables of every step, over those of the project."},
		{Name: "timeout", About: "Of a run, where it is shorter than the project's."},
	}
}

// StepKeys is every key of one of its steps.
func StepKeys() []Key {
	return []Key{
		{Name: "name", Required: true, About: "What logs and pages call it."},
		{Name: "run", Required: true, About: "A script for sh -eu."},
		{Name: "deploy", About: "From here on nothing supersedes the run."},
	}
}

func keyNames(keys []Key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Name
	}
	return list
}
