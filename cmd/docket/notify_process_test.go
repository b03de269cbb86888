package main

import (
	"strings"
	"syscall"
	"testing"
)

// Ensure that the service manager's watchdog is told that all is well only
// while it is: never while the store takes no writes, and again when it does.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	m := newServiceManager(t)
	d := newDaemon(t, nil, func(d *daemon) { d.troubled = true })
	d.environ = []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=200000"}
	d.launch()
	m.wait("READY=1")
	d.waitListening()
	m.wait("WATCHDOG=1")
	m.wait("WATCHDOG=1")

	const unwell = "the watchdog is not told that all is well"
	d.setControl("fail", "1") // every commit
	d.waitLog(unwell)
	m.forget()
	n := strings.Count(d.logText(), unwell)
	eventually(t, "docket stays unwell", func() bool { return strings.Count(d.logText(), unwell) > n+3 })
	if lines := m.forget(); strings.Contains(strings.Join(lines, "\n"), "WATCHDOG=1") {
		t.Errorf("told while no commit succeeds: %q", lines)
	}
	d.disarm()
	m.wait("WATCHDOG=1")

	d.signal(syscall.SIGHUP)
	mustContain(t, "the state while the configuration is read", m.wait("RELOADING=1"), "MONOTONIC_USEC=")
	m.wait("READY=1")
	d.signal(syscall.SIGTERM)
	m.wait("STOPPING=1")
	d.waitExit()
}
