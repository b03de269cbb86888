package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	manager "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// What the service manager is told, in the words of sd_notify(3).
const notifyReady = manager.SdNotifyReady + "\nSTATUS=Takes deliveries and runs what they ask for."

// notifyReloading is for a moment in which docket is busy with itself.
func notifyReloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return manager.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", manager.SdNotifyReloading, now.Nano()/1000)
}

// notifyStopping asks for the time that a shutdown may take: running steps
// have shutdown_grace and then each project's own grace, requests theirs.
func (d *appliance) notifyStopping() string {
	cfg := d.current.Load()
	long := cfg.ShutdownGrace + httpGrace + 30*time.Second
	for _, p := range cfg.Projects {
		long = max(long, cfg.ShutdownGrace+httpGrace+30*time.Second+p.Grace)
	}
	return fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=Takes deliveries and waits for running steps, up to %s.",
		manager.SdNotifyStopping, long.Microseconds(), cfg.ShutdownGrace)
}

// notify tells the service manager, if there is one.
func (d *appliance) notify(state string) {
	if _, err := manager.SdNotify(false, state); err != nil {
		d.log.Warn("the service manager cannot be told", keyError, err)
	}
}

// firstScan is how long settling what an earlier stop left behind may take.
const firstScan = 15 * time.Minute

// watchdog tells the service manager that docket is well, as long as it is,
// until stop is called.
func (d *appliance) watchdog() (stop func()) { return d.watchdogWhile(d.well) }

// alwaysWell is for work that has a limit of its own.
func alwaysWell(context.Context, time.Duration) error { return nil }

// watchdogWhile tells the service manager four times in its interval that all is
// well, as long as well says so in a quarter of it, until stop is called.
func (d *appliance) watchdogWhile(well func(context.Context, time.Duration) error) (stop func()) {
	interval, err := manager.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("the watchdog is not understood, so it is not told", keyError, err)
	}
	if err != nil || interval == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(interval / 4)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := well(ctx, interval/4); err == nil {
				d.notify(manager.SdNotifyWatchdog)
			} else if ctx.Err() == nil {
				d.log.Error("the watchdog is not told that all is well", keyError, err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// well returns nil unless a restart is what mends docket: the scheduler looks
// for work, and the store takes a write in time. A full disk is no reason to
// end what runs, as the next docket would find it full too.
func (d *appliance) well(ctx context.Context, limit time.Duration) error {
	last := d.sched.LastScan()
	age, most := time.Since(last), d.longestScan()
	if last.IsZero() {
		age, most = time.Since(d.began), firstScan
	}
	if age > most && !d.stopping.Load() {
		return fmt.Errorf("the scheduler's last scan is %s old", age.Round(time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := d.store.Probe(ctx); err != nil && fullDisk(d.current.Load().DataDir) == "" {
		return err
	}
	return nil
}
