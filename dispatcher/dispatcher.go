// Package dispatcher tells the world how runs went: it carries the store's
// outbox to GitHub and Gitea, to webhooks and to Slack.
//
// It delivers at least once. An attempt is on disk before its request leaves,
// its outcome after the answer; whatever lies between, a kill or a time-out,
// is sent again under the same id. Entries of one lane go in order and one at
// a time; lanes do not wait for each other.
package dispatcher

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"docket/dispatcher/forge"
	"docket/store"
	"docket/store/ci"
)

// Defaults of Options.
const (
	DefaultScan    = 5 * time.Second
	DefaultWorkers = 8
	DefaultTimeout = 15 * time.Second
)

// Options are what a dispatcher works with. Store and Config are required.
type Options struct {
	Store  *store.Store
	Config func() *ci.Config // the configuration in force; asked at every attempt
	Log    *slog.Logger      // default: nothing is logged
	Now    func() time.Time  // default time.Now; the store's and this one must agree
	Client *http.Client      // its Transport is used; redirects are never followed
	Forge  *forge.Forge      // the way to GitHub; default one of its own

	Scan    time.Duration  // the longest time between two looks at the store, default DefaultScan
	Workers int            // lanes that may send at once, default DefaultWorkers
	Timeout time.Duration  // of one attempt, default DefaultTimeout
	Version string         // of docket, for the User-Agent, default "dev"
	Jitter  func() float64 // in [0, 1), default random

	// NoWakeups switches the store's wakeups off: the scan alone finds work.
	// For tests.
	NoWakeups bool
	// BeforeSend is called when an attempt is on record and nothing has left,
	// AfterSend after an answer and before its record. For tests.
	BeforeSend, AfterSend func(ci.OutboxEntry)
}

// Dispatcher sends what the outbox holds. Several may share one store; the
// store's lanes are not guarded against that, so run one per store.
type Dispatcher struct {
	store     *store.Store
	log       *slog.Logger
	now       func() time.Time
	jitter    func() float64
	client    *http.Client
	ownForge  *forge.Forge // to be let go of; nil: it is somebody else's
	scan      time.Duration
	workers   int
	timeout   time.Duration
	noWakeups bool
	adapters  map[string]Adapter
	counters  map[string]*counters

	beforeSend, afterSend func(ci.OutboxEntry)
}

// New returns a dispatcher that does nothing until Run.
func New(o Options) *Dispatcher {
	d := &Dispatcher{
		store:     o.Store,
		log:       o.Log,
		now:       o.Now,
		jitter:    o.Jitter,
		client:    forge.Outward(o.Client, maxAnswer),
		scan:      o.Scan,
		workers:   o.Workers,
		timeout:   o.Timeout,
		noWakeups: o.NoWakeups,

		beforeSend: o.BeforeSend, afterSend: o.AfterSend,
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.jitter == nil {
		d.jitter = rand.Float64
	}
	if d.scan <= 0 {
		d.scan = DefaultScan
	}
	if d.workers <= 0 {
		d.workers = DefaultWorkers
	}
	if d.timeout <= 0 {
		d.timeout = DefaultTimeout
	}
	agent := "docket/" + o.Version
	if o.Version == "" {
		agent = "docket/dev"
	}
	if o.Forge == nil {
		o.Forge = forge.New(forge.Options{Config: o.Config, Client: o.Client, Now: d.now, Version: o.Version})
		d.ownForge = o.Forge
	}
	hub := GitHub{Forge: o.Forge, Config: o.Config, Repository: currentRepository(o.Store), Now: d.now}
	d.adapters = map[string]Adapter{
		ci.OutboxGitHubStatus: &hub,
		ci.OutboxGitHubCheck:  &GitHubCheck{GitHub: hub, Run: o.Store.Run, Check: o.Store.Check, SetCheck: o.Store.SetCheck},
		ci.OutboxGiteaStatus:  &Gitea{Client: d.client, Config: o.Config, Repository: currentRepository(o.Store), Now: d.now, Agent: agent},
		ci.OutboxWebhook:      &Webhook{Client: d.client, Config: o.Config, Now: d.now, Agent: agent},
		ci.OutboxSlack:        &Slack{Client: d.client, Config: o.Config, Now: d.now, Agent: agent},
	}
	d.counters = make(map[string]*counters, len(d.adapters))
	for kind := range d.adapters {
		d.counters[kind] = &counters{}
	}
	return d
}
