package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// Spec is everything that decides how a run is carried out, frozen when the
// run is made. Equal specs have equal digests. Secrets are named, never held.
type Spec struct {
	Version  int               `json:"version"` // of this shape, 1
	CloneURL string            `json:"clone_url"`
	Git      GitOptions        `json:"git"`
	Timeout  Duration          `json:"timeout"`
	Grace    Duration          `json:"grace"`
	Env      map[string]string `json:"env,omitempty"`
	Secrets  []string          `json:"secrets,omitempty"` // variable names, sorted
	Steps    []Step            `json:"steps"`
	Report   bool              `json:"report,omitempty"` // tell the provider the commit's status
	// Reporter is the kind of outbox entry that tells it; "" is OutboxGitHubStatus.
	Reporter string         `json:"reporter,omitempty"`
	Notify   []NotifyTarget `json:"notify,omitempty"`
}

// StatusKind is the kind of outbox entry that tells the provider a run's state.
func (s *Spec) StatusKind() string {
	if s.Reporter == "" {
		return OutboxGitHubStatus
	}
	return s.Reporter
}

// GitOptions is how a workspace is filled.
type GitOptions struct {
	Submodules bool `json:"submodules,omitempty"`
	LFS        bool `json:"lfs,omitempty"`
	Depth      int  `json:"depth,omitempty"` // commits of history, 0 for all
}

// Step is one shell script of a run.
type Step struct {
	Name   string `json:"name"`
	Run    string `json:"run"`
	Deploy bool   `json:"deploy,omitempty"` // from here on nothing supersedes the run
}

// NotifyTarget is one configured receiver of run notifications.
type NotifyTarget struct {
	Kind   string   `json:"kind"`   // OutboxWebhook or OutboxSlack
	Target string   `json:"target"` // the configured address, or for a secret one its name
	Events []string `json:"events"`
}

// Digest returns "sha256:" and the hex digest of the spec's JSON, whose keys
// are in a fixed order.
func (s *Spec) Digest() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Spec holds only strings, numbers and booleans
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Duration is a time.Duration whose JSON is Go's notation, as in "30m0s".
type Duration time.Duration

// MarshalText returns Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's notation.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// ReservedVariable reports whether docket sets a variable itself in every
// step, so that no configuration may.
func ReservedVariable(name string) bool {
	return name == "CI" || name == "HOME" || name == "DOCKET" || strings.HasPrefix(name, "DOCKET_")
}
