package ci

import (
	"strconv"
	"time"
)

// Hook is a webhook at the provider that brings deliveries: a repository's
// own, or that of a GitHub App, which has no id of its own.
type Hook struct {
	App        bool   `json:"app,omitempty"`
	Repository string `json:"repository,omitempty"` // owner/name
	ID         int64  `json:"id,omitempty"`
}

// MissedDelivery is a delivery that the provider made and docket has no
// receipt of.
type MissedDelivery struct {
	Receipt     string `json:"receipt"` // the id that its receipt will have
	Integration string `json:"integration"`
	Event       string `json:"event"`
	Action      string `json:"action,omitempty"`
	Hook        Hook   `json:"hook"`
	ProviderID  int64  `json:"provider_id"`  // of its newest attempt
	FirstAt     Time   `json:"delivered_at"` // its first attempt, as far as the provider listed it
	LastAt      Time   `json:"attempted_at"` // its newest attempt
	StatusCode  int    `json:"status_code"`  // the answer to it; 0 for none
	Status      string `json:"status"`       // the provider's words for it
	Asked       int    `json:"asked"`        // how often the provider was asked to redeliver it
	AskedAt     Time   `json:"asked_at"`
	NextAt      Time   `json:"next_at"` // when it may be asked for again
	// GaveUp says why it is not asked for any more; "" while it is.
	GaveUp string `json:"gave_up"`
}

// Recovery is how far an integration was compared with its provider.
type Recovery struct {
	Integration string `json:"integration"`
	// ComparedAt is when the last comparison ended, DeliveriesAt and HeadsAt
	// when the last one that could be made in full did.
	ComparedAt   Time `json:"compared_at"`
	DeliveriesAt Time `json:"deliveries_at"`
	HeadsAt      Time `json:"heads_at"`
	// Problem says why the last comparison could not be made, or not in full.
	Problem string `json:"problem"`
	// PausedUntil is when the provider's rate limit lets docket ask again.
	PausedUntil Time           `json:"paused_until"`
	Hooks       []HookState    `json:"hooks"`
	Projects    []ProjectHeads `json:"projects"`
	Last        Round          `json:"last"`
}

// HookState is how far one webhook's deliveries were compared.
type HookState struct {
	Hook
	Off bool `json:"off"` // somebody switched it off: nothing is delivered
	// ComparedTo: every delivery up to here has a receipt or is listed as missed.
	ComparedTo Time   `json:"compared_to"`
	Problem    string `json:"problem"`
}

// ProjectHeads is why a project's heads could not be compared, "" if they were.
type ProjectHeads struct {
	Project string `json:"project"`
	Problem string `json:"problem"`
}

// Round is what one comparison of an integration found and did.
type Round struct {
	Deliveries int `json:"deliveries"` // attempts that the provider listed
	Missed     int `json:"missed"`     // deliveries without a receipt, those of earlier rounds included
	Arrived    int `json:"arrived"`    // missed before, and here by now
	Asked      int `json:"asked"`      // that the provider was asked to redeliver
	GaveUp     int `json:"gave_up"`    // that are not asked for any more
	Foreign    int `json:"foreign"`    // of repositories or installations that are not configured
	Heads      int `json:"heads"`      // that the provider listed
	NoRun      int `json:"no_run"`     // heads that no run is known of
	Started    int `json:"started"`    // runs that were started for them
}

// Gap is a time in which docket was not there.
type Gap struct {
	ID   string `json:"id"`
	From Time   `json:"from"`
	To   Time   `json:"to"`
	// Exact is false where docket was killed: From is its last sign of life then.
	Exact bool `json:"exact"`
	// Missed, Recovered and GaveUp count the deliveries that were made meanwhile.
	Missed    int `json:"missed"`
	Recovered int `json:"recovered"`
	GaveUp    int `json:"gave_up"`
	// ComparedAt is when an integration was first compared after it.
	ComparedAt Time `json:"compared_at"`
}

// Spans reports whether a time lies in the gap, give or take a slack.
func (g *Gap) Spans(t time.Time, slack time.Duration) bool {
	return !t.Before(g.From.Add(-slack)) && !t.After(g.To.Add(slack))
}

// Head is where a branch, a tag or an open pull request stands at the provider.
type Head struct {
	Ref    string `json:"ref"`    // full; refs/pull/N/head for a pull request
	Commit string `json:"commit"` // what it points to; an annotated tag's own object
	// Annotated: Commit is a tag object, to be peeled before it is built.
	Annotated   bool         `json:"annotated,omitempty"`
	Message     string       `json:"message,omitempty"` // the head commit's, where the provider tells it
	Actor       string       `json:"actor,omitempty"`
	PullRequest *PullRequest `json:"pull_request,omitempty"`
}

// Key names the head in its project: "#N" for a pull request, else the full ref.
func (h *Head) Key() string {
	if h.PullRequest != nil {
		return "#" + strconv.Itoa(h.PullRequest.Number)
	}
	return h.Ref
}

// MissedHead is a head that no run and no delivery is known of.
type MissedHead struct {
	Project string `json:"project"`
	Head
	Before   string `json:"before"`    // the head that was known before; "" for none
	SeenAt   Time   `json:"seen_at"`   // when it was first seen
	ListedAt Time   `json:"listed_at"` // when its delivery was waited for no longer; null before
}

// HeadsBase is what a project's heads are compared with: those of the first
// comparison are taken as known.
type HeadsBase struct {
	Repository Repository `json:"repository"`
	At         Time       `json:"at"`
	Heads      int        `json:"heads"`
}

// Recovers reports whether the provider can be asked for what did not arrive;
// why says what it lacks: a sentence without a dot at its end.
func (i *Integration) Recovers() (ok bool, why string) {
	switch {
	case i.Provider == ProviderGitea:
		return false, "Gitea and Forgejo keep no list of deliveries that docket could ask for, so what did not arrive stays missing until the next push"
	case !i.Reports():
		return false, "it has neither token nor app, so GitHub cannot be asked"
	case i.RecoverEvery <= 0:
		return false, "recover_every is 0"
	}
	return true, ""
}
