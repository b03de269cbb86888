package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"docket/dispatcher"
	"docket/dispatcher/forge"
	"docket/dispatcher/tracer"
	"docket/scheduler"
	"docket/scheduler/runner"
	"docket/server"
	"docket/store"
	"docket/store/ci"
)

func newServe(a *app) *cobra.Command {
	var demo bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the appliance",
		Long: `Run the appliance: take webhooks and requests on the configured listeners, run what
they ask for, and tell the provider and others how it went.

SIGTERM or SIGINT ends it: nothing new is started, running steps get shutdown_grace to
end by themselves, and what still runs then is recorded as interrupted; until then
deliveries are taken. A second signal does not wait. SIGHUP reads the configuration again;
a broken one is refused and the old one stays in force. A secret's file that changes is read again by itself. Listeners, data_dir,
log.format and whether there are traces are only read at the start.

SIGUSR2 makes the process the docket that now lies where it was started from, or the same
one with new listeners, and refuses nobody: the new one first tries itself out, steps end
as at SIGTERM, and who connects meanwhile waits. Under systemd docket takes the sockets of
docket.socket, so that a restart refuses nobody either.

With --demo no configuration is needed: docket makes a temporary data directory, a local
git repository and one project, delivers a signed push to itself, and prints where to look.`,
		Example: `  docket serve -c /etc/docket/docket.yaml
  docket serve --demo`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if demo {
				return a.serveDemo(cmd.Context())
			}
			return a.serveUpgradable(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "show what docket does, without a configuration")
	return cmd
}

// appliance is one running docket: the only place where the rooms are wired
// together.
type appliance struct {
	log     *slog.Logger
	level   *slog.LevelVar                                      // of log; nil: fixed
	config  *ci.Config                                          // in force at the start
	reload  func() (*ci.Config, error)                          // reads it again
	secrets *watchedFiles                                       // of the configuration; nil: they are not watched
	ready   func(ctx context.Context, addresses []string) error // called once it listens; nil: nothing

	program string  // what SIGUSR2 starts; "": it is refused
	given   sockets // at the start
	kept    sockets // for the next program

	listeners []*listener // that it serves on

	current atomic.Pointer[ci.Config]
	store   *store.Store
	forge   *forge.Forge
	sched   *scheduler.Scheduler
	server  *server.Server
	tracer  *tracer.Tracer // nil: none
	backups *backups

	began     time.Time
	stopping  atomic.Bool // it starts nothing more
	rereading sync.Mutex
	refused   atomic.Bool // the configuration was broken when it was last read
}

// serve runs the appliance until ctx ends. It is shut down in the order
// scheduler, listeners, dispatcher, tracer, store: while running steps end,
// deliveries are taken.
func (a *app) serve(ctx context.Context, d *appliance) (err error) {
	d.began = time.Now()
	d.stopping.Store(false)
	d.refused.Store(false)
	work := newWorkMetrics()
	d.current.Store(d.config)
	a.collectLessOften()
	if err := os.MkdirAll(d.config.DataDir, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made; create it, or mend data_dir in the configuration: %w", err)
	}
	d.store, err = store.Open(filepath.Join(d.config.DataDir, storeFile), store.Options{
		RunURL: func(id string) string { return d.current.Load().RunURL(id) }, Failpoint: a.failpoints.commit,
		Committed: work.committed, Changed: d.changed(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	d.startTraces()
	if kept := d.store.Kept(); kept != "" {
		d.log.Info("the store was brought forward to this docket's schema, and the file as it was is kept; remove it when all is well", keyKept, kept)
	}

	d.forge = forge.New(forge.Options{Config: d.current.Load, Version: buildInfo().Version})
	defer d.forge.Close()
	carrier, err := d.newRunner()
	if err != nil {
		return err
	}
	d.sched = scheduler.New(scheduler.Options{
		Store: d.store, Config: d.current.Load, Runner: carrier, Log: d.log, Provider: provider{d.forge},
		Boot: hex.EncodeToString(randomBytes(8)), NoWakeups: a.failpoints.noWakeups, RecoverEvery: a.failpoints.recoverEvery,
		KeepBodies: a.failpoints.keepBodies, Passing: a.failpoints.at,
	})
	sender := dispatcher.New(dispatcher.Options{
		Store: d.store, Config: d.current.Load, Forge: d.forge, Log: d.log, Version: buildInfo().Version, Scan: d.config.ScanInterval,
		NoWakeups:  a.failpoints.noWakeups,
		BeforeSend: func(ci.OutboxEntry) { a.failpoints.at(pointBeforeSend) },
		AfterSend:  func(ci.OutboxEntry) { a.failpoints.at(pointAfterSend) },
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		sentCollector{sender.Stats}, recoveryCollector{d.sched.RecoveryStats, d.store, d.current.Load})
	work.register(registry, d)
	d.registerTraces(registry)
	d.backups = &backups{config: d.current.Load, store: d.store, log: d.log, now: time.Now}
	d.server = server.New(server.Options{
		Store: d.store, Config: d.current.Load, Log: d.log, Level: d.level, Ready: d.notReady, Version: buildInfo().Version, Registry: registry,
		Reload: func(context.Context) error { return d.reread() }, Recover: d.sched.Recover, Backups: d.backups.Status, Traces: d.traces(),
		Connections: connectionsFor(len(d.config.Listen), openFiles()),
	})
	listeners, err := listen(d)
	if err != nil {
		return err
	}
	registry.MustRegister(certificateCollector(listeners), connectionCollector(listeners))
	return d.work(ctx, listeners, sender)
}

// gcPercent is how far the heap grows between two collections, in percent of
// what lives. Little lives here and much is made for each delivery, so that at
// Go's own 100 a fifth of the processor's time goes into collecting.
const gcPercent = 400

// memoryLimit is where collecting begins to be done more often, in bytes: a
// flood of large bodies makes much at once.
const memoryLimit = 384 << 20

// collectLessOften sets gcPercent and memoryLimit, unless the operator has set
// GOGC or GOMEMLIMIT.
func (a *app) collectLessOften() {
	if a.getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if a.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// work runs the three workers and ends them in order.
func (d *appliance) work(ctx context.Context, listeners []*listener, sender *dispatcher.Dispatcher) error {
	schedCtx, stopSched := context.WithCancel(context.WithoutCancel(ctx))
	sendCtx, stopSend := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSched()
	defer stopSend()
	end := make(chan struct{}) // one of the workers failed
	var once sync.Once
	fail := func(what string, err error) error {
		if err != nil {
			d.log.Error("a worker ended, so docket stops", keyWorker, what, keyError, err)
			once.Do(func() { close(end) })
		}
		return err
	}
	stopHUP := d.rereadOnHUP()
	defer stopHUP()
	upgrade, stopUpgrade := d.upgradeOnSignal(ctx, listeners)
	defer stopUpgrade()
	var watching sync.WaitGroup
	watching.Go(func() { d.watchSecrets(schedCtx) })
	var sched, send errgroup.Group
	sched.Go(func() error { return fail("scheduler", d.sched.Run(schedCtx)) })
	send.Go(func() error { return fail("dispatcher", sender.Run(sendCtx)) })
	var saving sync.WaitGroup
	saving.Go(func() { d.backups.run(schedCtx) })
	endTraces := d.runTraces(ctx)
	var serving errgroup.Group
	for _, l := range listeners {
		serving.Go(l.serve)
	}
	d.sayPauses()
	for _, l := range listeners {
		d.log.Info("listening", keyAddress, l.address, keyServes, l.what)
	}
	d.given.close()
	stopWatchdog := d.watchdog()
	defer stopWatchdog()
	d.notify(notifyReady)
	if d.ready != nil {
		if err := d.ready(ctx, addresses(listeners)); err != nil {
			d.log.Error("start", keyError, err)
		}
	}
	what, told := "shutting down", d.notifyStopping
	select {
	case <-ctx.Done():
	case <-end:
	case <-upgrade:
		what, told = "making way for the new program", notifyReloading
	}
	d.log.Info(what)
	d.notify(told())
	d.stopping.Store(true)
	for _, l := range listeners {
		l.end()
	}
	stopSched()
	err := sched.Wait()
	watching.Wait()
	shutDown(listeners, d.log)
	err = errors.Join(err, serving.Wait())
	saving.Wait()
	stopSend()
	err = errors.Join(err, send.Wait())
	endTraces()
	d.log.Info("shut down")
	return err
}

// sayPauses logs what an operator has to resume.
func (d *appliance) sayPauses() {
	paused, err := d.store.Pauses()
	if err != nil {
		d.log.Error("pauses cannot be read", keyError, err)
	}
	for _, p := range []pausable{pausableRuns, pausableOutbox} {
		if pause := paused.Of(p.work); pause != nil {
			d.log.Warn(p.held, keySince, pause.Since, keyBy, pause.By.Name, keyReason, pause.Reason)
		}
	}
}

// notReady says why the appliance as a whole is not ready.
func (d *appliance) notReady() []string {
	cfg := d.current.Load()
	var reasons []string
	if last := d.sched.LastScan(); d.stopping.Load() {
		reasons = append(reasons, "docket is shutting down: it takes deliveries and starts no runs")
	} else if last.IsZero() {
		reasons = append(reasons, "the scheduler has not finished its first scan yet: it is settling what an earlier stop left behind")
	} else if age := time.Since(last); age > d.longestScan() {
		reasons = append(reasons, fmt.Sprintf("the scheduler's last scan is %s old; the log says what keeps it", age.Round(time.Second)))
	}
	if d.sched.LowSpace() {
		reasons = append(reasons, fmt.Sprintf("no run starts: less than free_space (%d bytes) is free in %s; make room, or lower limits.free_space", cfg.Limits.FreeSpace, cfg.DataDir))
	}
	if reason := fullDisk(cfg.DataDir); reason != "" {
		reasons = append(reasons, reason)
	}
	if reason := cmp.Or(noDescriptors(), d.notAccepting(time.Now())); reason != "" {
		reasons = append(reasons, reason)
	}
	return reasons
}

// longestScan is how old the last scan may be where all is well.
func (d *appliance) longestScan() time.Duration {
	return 4 * max(d.current.Load().ScanInterval, scheduler.DefaultScan)
}

// leastSpace is what must be free for docket to be ready, in bytes: with less,
// small writes may still succeed where a delivery does not fit.
const leastSpace = 512 << 10

// fullDisk says that the disk of a directory is full, or "".
func fullDisk(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Sprintf("the free space of %s cannot be read; check that its disk is there", dir)
	}
	if free := int64(st.Bavail) * st.Bsize; free < leastSpace {
		return fmt.Sprintf("the disk of %s is full (%d bytes are left), so deliveries are refused; free some space on its disk", dir, free)
	}
	return ""
}

const noMoreFiles = "docket can open no more files and connections, so new ones wait; raise its limit (LimitNOFILE= in a systemd unit), and see who holds so many connections"

// noDescriptors says that this process can open no more files, or "".
func noDescriptors() string {
	f, err := os.Open(os.DevNull)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return noMoreFiles
	}
	if err == nil {
		f.Close()
	}
	return ""
}

// self is this very binary, even when another one has taken its place on disk.
const self = "/proc/self/exe"

// newRunner returns the runner of this binary, which starts itself again as
// the supervisor of what a run starts.
func (d *appliance) newRunner() (*runner.Runner, error) {
	return runner.New(runner.Options{
		DataDir: d.config.DataDir, Supervisor: []string{self, superviseCommand}, Credential: d.credential,
	})
}
