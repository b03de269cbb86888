package ci

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// SupersedePolicy says which older runs give way to a newer one.
type SupersedePolicy string

const (
	SupersedeNone    SupersedePolicy = "none"
	SupersedePending SupersedePolicy = "pending" // those that have not begun
	SupersedeRunning SupersedePolicy = "running" // also those that run, unless they deploy
)

// Policies for OnInterrupt: what becomes of a run whose process was lost.
const (
	OnInterruptStop    = "stop"
	OnInterruptRequeue = "requeue"
)

// Policies for Replays: what becomes of known bytes under a new delivery id.
const (
	ReplaysAccept = "accept"
	ReplaysRefuse = "refuse"
)

// Values of Integration.Report: how the provider is told of a run.
const (
	ReportStatuses = "statuses" // commit statuses
	ReportChecks   = "checks"   // check runs, of a GitHub App alone
)

// Providers.
const (
	ProviderGitHub = "github"
	ProviderGitea  = "gitea" // and Forgejo
)

// Values of Project.OnSkip: what becomes of the status of what a filter keeps from running.
const (
	OnSkipSilent = "silent" // nothing is said
	OnSkipReport = "report" // it is reported as skipped, which is a success
)

// Values of Project.Recover: what becomes of a head that no run is known of.
const (
	RecoverList = "list" // it is shown
	RecoverRun  = "run"  // its run is started
)

// Config is the operator's configuration, checked and with its secrets read:
// a snapshot that is replaced as a whole and never changed.
type Config struct {
	DataDir   string
	PublicURL string // without a slash at its end; "" if none
	Listen    []Listen
	// TrustedProxies are networks whose word on a client's address is taken,
	// beside that of this machine itself.
	TrustedProxies []netip.Prefix
	Limits         Limits
	Retention      Retention
	Backup         *Backup // nil: none by itself
	ShutdownGrace  time.Duration
	ScanInterval   time.Duration
	AdminToken     Secret
	Log            LogConfig
	Traces         *Traces // nil: none
	Integrations   []Integration
	Projects       []Project
}

// Retention is how long what has ended is kept; 0 is for ever, and for bodies
// and logs as long as what they belong to.
type Retention struct {
	Runs   time.Duration // runs, receipts, notifications and decisions
	Bodies time.Duration // of deliveries
	Logs   time.Duration // of runs
}

// Backup is how the store is backed up by itself.
type Backup struct {
	Dir   string
	Every time.Duration
	Keep  int // how many backups of its own stay in Dir
}

// Traces is where spans go, by OTLP over HTTP.
type Traces struct {
	Endpoint string            // the whole address, with its path
	Headers  map[string]Secret // of each request, by name
	Sample   float64           // the share of traces that are kept, 0 to 1
}

// The formats of docket's own log.
const (
	LogText = "text"
	LogJSON = "json"
)

// LogConfig is how much docket's own log says, and how it is written.
type LogConfig struct {
	Level  string // debug, info, warn or error
	Format string // LogText or LogJSON
}

// Listen is one address and what may be reached there.
type Listen struct {
	Address string
	Socket  string   // the name of the service manager's socket to take; "": the one with the address
	Serve   []string // empty: everything; else of "hooks", "api", "ui"
	TLS     *TLS     // nil: plain
	// Redirect sends everything but webhooks, /healthz and ACME's challenges
	// from a plain listener to one with TLS.
	Redirect bool
}

// Scheme is that of the listener's addresses.
func (l Listen) Scheme() string {
	if l.TLS != nil {
		return "https"
	}
	return "http"
}

// TLS is where a listener's certificate comes from: two files, or ACME.
type TLS struct {
	Cert, Key string // paths of PEM files
	ACME      *ACME
}

// ACME is how certificates are asked for by RFC 8555.
type ACME struct {
	Domains   []string // the only names that certificates are asked for
	Email     string   // "": none is given
	Directory string   // the certificate authority's; "": Let's Encrypt's
}

// Serves reports whether the listener answers for a part of the server.
func (l Listen) Serves(part string) bool { return len(l.Serve) == 0 || slices.Contains(l.Serve, part) }

// Limits are the operator's bounds, in bytes and counts.
type Limits struct {
	Body           int64
	ConcurrentRuns int
	Log            int64 // of one run
	FreeSpace      int64
}

// Integration is one provider with its secrets.
type Integration struct {
	Name           string
	Provider       string // ProviderGitHub or ProviderGitea
	APIURL         string // with a slash at its end
	WebhookSecrets []Secret
	Installations  []int64 // allowed; empty: only a webhook that has none
	Token          Secret  // zero: no statuses, unless there is an App
	App            *App    // instead of a token
	Report         string  // ReportStatuses or ReportChecks
	// RecoverEvery is how often the provider is asked for deliveries that did
	// not arrive and for heads without a run; 0: never.
	RecoverEvery time.Duration
}

// App is a GitHub App that docket acts as.
type App struct {
	ID         int64
	PrivateKey Secret // PEM
}

// Reports reports whether the integration can tell the provider a status.
func (i *Integration) Reports() bool { return !i.Token.IsZero() || i.App != nil }

// Project is one repository's configured work.
type Project struct {
	Name          string
	Integration   string
	Repository    string // owner/name
	RepositoryID  int64  // 0: pinned at the first signed delivery
	CloneURL      string
	DefaultBranch string
	On            On
	Supersede     SupersedePolicy
	OnInterrupt   string
	Replays       string
	Git           GitOptions
	Timeout       time.Duration
	Grace         time.Duration
	Inputs        []Input
	Env           map[string]string
	Secrets       map[string]Secret // by variable name
	Steps         []Step
	Pipeline      string // path in the repository, instead of Steps
	Notify        []Notify
	Public        bool
	Concurrency   Concurrency
	HoldTimeout   time.Duration // how long a fork's run waits for approval
	OnSkip        string
	Recover       string
}

// On is which events start runs; a nil part starts none.
type On struct {
	Push        *OnPush
	PullRequest *OnPullRequest
	MergeGroup  *OnMergeGroup
	Release     *OnRelease
	Dispatch    *OnDispatch
	Schedule    []Schedule
}

// Concurrency keeps runs from overlapping: of those with one group at most
// one runs, the others wait in the order in which they were made.
type Concurrency struct {
	Group  string // "": none. Projects that name the same one share it.
	PerRef bool   // each ref (or pull request) of the project has a group of its own
}

// OnMergeGroup filters merge groups by the branch that they would change; nil matches all.
type OnMergeGroup struct {
	Branches []string
}

// OnRelease filters releases by action; nil: published.
type OnRelease struct {
	Types []string
}

// OnDispatch filters repository_dispatch events by type (GitHub's event_type),
// as patterns; nil matches all.
type OnDispatch struct {
	Types []string
}

// Schedule is a time table: one run a slot.
type Schedule struct {
	Cron     string `json:"cron"`               // five fields, or @daily and the like
	Timezone string `json:"timezone,omitempty"` // an IANA name; "" is UTC
	Branch   string `json:"branch,omitempty"`   // "" is the project's default branch
}

// OnPush filters pushes by glob patterns. A nil list matches nothing where
// the other is given; with both nil every branch matches and no tag does.
type OnPush struct {
	Branches []string
	Tags     []string
	Paths    Paths // of branches alone: a tag is not filtered by files
}

// Paths filters by changed files: an event counts where at least one changed
// file matches Only (any, where it is nil) and does not match Ignore.
type Paths struct {
	Only   []string `json:"only,omitempty"`
	Ignore []string `json:"ignore,omitempty"`
}

// IsZero reports whether nothing is filtered.
func (p Paths) IsZero() bool { return p.Only == nil && p.Ignore == nil }

// OnPullRequest filters pull requests by their base branch; nil matches all.
type OnPullRequest struct {
	Branches   []string
	Paths      Paths
	SkipLabels []string // one of these keeps a pull request from running
	SkipDrafts bool     // a draft does not run until it is ready for review
}

// Input is a value that a manual request may set.
type Input struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Options []string `json:"options"` // empty: anything up to MaxInput bytes
}

// MaxInput is the longest value of an input, in bytes.
const MaxInput = 32 << 10

// Notify is one configured receiver.
type Notify struct {
	Kind   string // OutboxWebhook or OutboxSlack
	Target string // the address; for Slack, whose address is a secret, that secret's name
	URL    Secret // where to send
	Secret Secret // signs a webhook
	Events []string
}

// Integration returns the integration of that name, or nil.
func (c *Config) Integration(name string) *Integration {
	for i := range c.Integrations {
		if c.Integrations[i].Name == name {
			return &c.Integrations[i]
		}
	}
	return nil
}

// Project returns the project of that name, or nil.
func (c *Config) Project(name string) *Project {
	for i := range c.Projects {
		if c.Projects[i].Name == name {
			return &c.Projects[i]
		}
	}
	return nil
}

// RunURL returns the address of a run's page; relative without a public URL.
func (c *Config) RunURL(id string) string { return c.PublicURL + "/runs/" + id }

// SameRepository compares two owner/name names as providers do: ASCII letters
// without regard to case, and a .git at the end left off.
func SameRepository(a, b string) bool { return foldRepository(a) == foldRepository(b) }

func foldRepository(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return strings.TrimSuffix(string(b), ".git")
}

// StatusContext returns the context of a commit status of a run: one for
// pull requests, one for everything else.
func StatusContext(project, event string) string {
	if event == EventPullRequest || event == EventMergeGroup {
		return "docket/" + project + "/pr"
	}
	return "docket/" + project
}
