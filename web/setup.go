package web

import (
	"slices"
	"strings"
	"time"

	"docket/store/ci"
)

// SetupPage is the page at /setup: how to connect each integration, and
// whether it worked.
type SetupPage struct {
	Chrome
	Integrations []SetupIntegration
	// NoPublicURL says that public_url is not configured, so that the addresses
	// are guesses from the request.
	NoPublicURL bool
	First       *FirstSteps // nil after the first green run
	// Missed are heads that no run is known of, with how many more there are.
	Missed     []MissedHead
	MoreMissed int
	Gaps       []GapRow // the newest first
	Backups    *SetupBackups
	// Pausable is what this person may pause now.
	Pausable []ci.Work
}

func (*SetupPage) template() string { return "setup" }

// Parts names the live parts.
func (*SetupPage) Parts() []string { return []string{PartBanners, PartMissed, PartList, PartGaps} }

// SetupIntegration is one integration's row of facts.
type SetupIntegration struct {
	Name     string
	Provider string // "github" or "gitea"
	HookURL  string // absolute, to paste
	// SecretName tells which configured secret to paste; its value is never here.
	SecretNames []string
	Events      []string // to tick, in the provider's words ("Pushes", "Pull requests")
	Statuses    bool     // a token is configured, so commit statuses are sent
	Projects    []SetupProject
	// Last is the newest delivery, nil if none ever arrived.
	Last *ci.Receipt
	// LastRefusal is the newest refusal, nil for none that is remembered.
	LastRefusal *Refusal
	Recovery    Recovery
}

// SetupProject is a project and the page at the provider where its webhook is added.
type SetupProject struct {
	Name       string
	Repository string
	HooksURL   string // "" if unknown
}

// FirstSteps are the three steps to a first green run; each is done or not.
type FirstSteps struct {
	Connected bool   // a delivery has arrived
	Started   bool   // a run exists
	Green     bool   // a run has succeeded
	HookURL   string // of the first integration, "" for none
	Project   string // to start a run of, "" for none
}

// ProviderText is the provider's name as it writes itself.
func (s SetupIntegration) ProviderText() string {
	switch s.Provider {
	case "github":
		return "GitHub"
	case "gitea":
		return "Gitea or Forgejo"
	}
	return s.Provider
}

// Of gives rows of a recovery its words.
func (*SetupPage) Of() Recovery { return Recovery{} }

// CanPause reports whether this person may pause a part now.
func (p *SetupPage) CanPause(w ci.Work) bool { return slices.Contains(p.Pausable, w) }

// What the provider's settings page calls the fields of a webhook.

// URLField is where the address goes.
func (s SetupIntegration) URLField() string {
	if s.Provider == ci.ProviderGitea {
		return "Target URL"
	}
	return "Payload URL"
}

// TypeField is where the content type is chosen.
func (s SetupIntegration) TypeField() string {
	if s.Provider == ci.ProviderGitea {
		return "POST Content Type"
	}
	return "Content type"
}

// EventsField is where the events are ticked.
func (s SetupIntegration) EventsField() string {
	if s.Provider == ci.ProviderGitea {
		return "Custom Events"
	}
	return "Events"
}

// SetupBackups says how the backups go that docket makes by itself.
type SetupBackups struct {
	Dir    string // "": none are configured
	Every  time.Duration
	Keep   int
	Last   ci.Time // zero: none yet
	Failed string  // why the last try failed, "" if it did not
}

// EveryText says how often.
func (b *SetupBackups) EveryText() string {
	s := b.Every.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
