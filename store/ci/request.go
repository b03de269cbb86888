package ci

// Request asks for a run by hand. Branch and Tag are short names; with
// neither, the project's default branch is meant.
type Request struct {
	Branch string            `json:"branch,omitempty"`
	Tag    string            `json:"tag,omitempty"`
	Commit string            `json:"commit,omitempty"` // 40 or 64 lower-case hex digits
	Inputs map[string]string `json:"inputs,omitempty"`
	Reason string            `json:"reason,omitempty"`
}
