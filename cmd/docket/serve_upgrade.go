package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// An upgrade replaces the program in the same process. At SIGUSR2 the binary
// that now lies where docket was started from rehearses its start. If it can,
// docket drains and closes the store, the new program rehearses once more, with
// the store, and then the process becomes it. It inherits the listening sockets,
// which are never closed: who connects meanwhile waits. Where a rehearsal fails,
// this docket goes on.

// serveUpgradable serves until ctx ends, or until another program takes over.
func (a *app) serveUpgradable(ctx context.Context) error {
	if r, err := handedOver(rehearseEnv); err != nil || r != nil {
		return errors.Join(err, a.rehearse(r))
	}
	d := &appliance{level: new(slog.LevelVar)}
	d.log = newLog(a.err, nil, d.level)
	if err := d.inherit(); err != nil {
		return err
	}
	path, err := a.configPath()
	if err != nil {
		return err
	}
	d.secrets = &watchedFiles{}
	cfg, err := d.secrets.load(path, a.getenv)
	if err != nil {
		return err
	}
	d.log = newLog(a.err, cfg, d.level)
	d.config, d.reload = cfg, func() (*ci.Config, error) { return d.secrets.load(path, a.getenv) }
	for {
		if err := a.serve(ctx, d); err != nil || len(d.kept) == 0 || ctx.Err() != nil {
			return err
		}
		stopWatchdog := d.watchdogWhile(alwaysWell) // a new schema takes a large store minutes
		err := d.rehearseNext(ctx, true)
		stopWatchdog()
		if ctx.Err() != nil {
			return nil // it was ended while it made way
		}
		if err == nil {
			a.failpoints.at(pointBecoming)
			err = d.become()
		}
		d.log.Error("upgrade failed; this docket goes on", keyProgram, d.program, keyError, err)
		d.config, d.given, d.kept = d.current.Load(), d.kept, nil
	}
}

// inherit takes the sockets that the program before or the service manager
// left, and finds out where this program lies.
func (d *appliance) inherit() error {
	from, err := handedOver(handoverEnv)
	if err != nil {
		return err
	}
	if from != nil {
		d.given, err = from.sockets()
	} else {
		d.given, err = activatedSockets()
	}
	if err != nil {
		return err
	}
	if d.program, err = program(); err != nil {
		return fmt.Errorf("docket cannot find out where its own program lies; start it by its path: %w", err)
	}
	return nil
}

// program is the file that docket was started from, by its name: an upgrade
// starts what lies there then.
func program() (string, error) {
	name := os.Args[0]
	if !strings.ContainsRune(name, filepath.Separator) {
		found, err := exec.LookPath(name)
		if err != nil {
			return os.Executable()
		}
		name = found
	}
	return filepath.Abs(name)
}

// upgradeOnSignal lets the new program rehearse at each SIGUSR2, and closes
// upgrade once one can take over. stop ends it and waits.
func (d *appliance) upgradeOnSignal(ctx context.Context, listeners []*listener) (upgrade <-chan struct{}, stop func()) {
	asked, can := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGUSR2)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-asked:
				err := d.keep(listeners)
				if err == nil {
					err = d.rehearseNext(ctx, false)
				}
				if err == nil {
					close(can)
					return
				}
				d.kept.close()
				d.kept = nil
				d.log.Error("upgrade refused; this docket goes on", keyProgram, d.program, keyError, err)
			case <-ctx.Done():
				return
			}
		}
	})
	return can, func() {
		cancel()
		wg.Wait()
		// The process may become another program, which one signal more must
		// not end before it listens to it.
		signal.Ignore(syscall.SIGUSR2)
	}
}

// keep holds on to the listening sockets beyond the end of their listeners.
func (d *appliance) keep(listeners []*listener) error {
	if d.program == "" {
		return errors.New("this docket cannot be upgraded while it runs; stop it and start it again")
	}
	for _, l := range listeners {
		f, err := l.ln.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			return fmt.Errorf("the socket %s cannot be handed over: %w", l.address, err)
		}
		d.kept = append(d.kept, &socket{name: l.name, ours: true, file: f, local: l.ln.Addr()})
	}
	return nil
}

// become makes this process the new program, with the kept sockets. It only
// returns if that fails.
func (d *appliance) become() error {
	h := d.handover()
	var fds []int
	for i, s := range d.kept {
		h.Listeners[i].FD = int(s.file.Fd())
		fds = append(fds, h.Listeners[i].FD)
	}
	defer runtime.KeepAlive(d) // and with it the sockets' files
	variable, err := h.variable(handoverEnv)
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("file descriptor %d cannot be handed over: %w", fd, err)
		}
	}
	signal.Ignore(syscall.SIGHUP) // until the new program listens to it
	err = syscall.Exec(d.program, os.Args, append(os.Environ(), variable))
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fmt.Errorf("%s cannot be started: %w", d.program, err)
}
