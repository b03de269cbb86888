package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/store/ci"
)

// upgrades is how often the tests under load replace docket.
func upgrades(t *testing.T) int { return numberFrom(t, "DOCKET_UPGRADES", 10) }

// pushesPerRun is how many pushes the senders send for each that starts a run.
func pushesPerRun(t *testing.T) int { return numberFrom(t, "DOCKET_PUSHES_PER_RUN", 20) }

func numberFrom(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number above 0", variable, text)
	}
	return n
}

// taggedAlone lets a project run for tags, which supersede nothing.
var taggedAlone = obj{"on": obj{"push": obj{"branches": []string{"main"}, "tags": []string{"v*"}}}}

// Ensure that an upgrade refuses no delivery and loses none: the process
// becomes the new program, and its sockets stay open.
func TestUpgradesUnderLoad(t *testing.T) {
	t.Parallel()
	m, repo := newServiceManager(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, taggedAlone) })
	d.environ = []string{"NOTIFY_SOCKET=" + m.path}
	d.launch()
	m.wait("READY=1")
	d.waitListening()
	s := d.startSenders(8, repo)
	for range upgrades(t) {
		before := s.sent()
		eventually(t, "deliveries arrive", func() bool { return s.sent() > before })
		d.signal(syscall.SIGUSR2)
		m.wait("RELOADING=1")
		m.wait("READY=1")
	}
	s.stop()
	if n := strings.Count(d.logText(), "making way for the new program"); n != upgrades(t) {
		t.Errorf("%d upgrades, want %d", n, upgrades(t))
	}
	if list := d.output("runs", "list", "-c", d.configPath()); list.code != exitDone {
		t.Errorf("the admin socket: %+v", list)
	}
}

// Ensure that under a service manager that holds the socket a restart refuses
// no delivery and loses none.
func TestRestartsUnderActivation(t *testing.T) {
	t.Parallel()
	m, repo := newServiceManager(t), newRepository(t, "acme/api", 7)
	held, address := heldSocket(t)
	d := newDaemon(t, nil, func(d *daemon) {
		d.config["listen"] = []obj{{"address": address}}
		d.addProject("api", repo, taggedAlone)
	})
	d.environ, d.sockets = []string{"NOTIFY_SOCKET=" + m.path}, []*os.File{held}
	d.launch()
	m.wait("READY=1")
	d.waitListening()
	if d.addresses[0] != address {
		t.Fatalf("docket listens on %s, not on the socket that it was given, %s", d.addresses[0], address)
	}
	s := d.startSenders(8, repo)
	for range upgrades(t) {
		before := s.sent()
		eventually(t, "deliveries arrive", func() bool { return s.sent() > before })
		d.signal(syscall.SIGTERM)
		mustContain(t, "the end", m.wait("STOPPING=1"), "EXTEND_TIMEOUT_USEC=")
		d.waitExit()
		d.launch()
		m.wait("READY=1")
	}
	s.stop()
}

// Ensure that sockets are matched by name, and that one that nobody would
// answer on is an error that says so.
func TestActivationMatchesSockets(t *testing.T) {
	t.Parallel()
	held, address := heldSocket(t)
	d := newDaemon(t, nil, func(d *daemon) {
		d.config["listen"] = []obj{{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:1", "socket": "docket"}}
	})
	d.sockets = []*os.File{held}
	d.launch()
	d.waitListening()
	if d.addresses[1] != address {
		t.Errorf("the listener named docket is %s, want %s", d.addresses[1], address)
	}
	d.stop()

	d.config["listen"] = []obj{{"address": "127.0.0.1:0"}}
	d.configure()
	d.launch()
	d.waitExit()
	if code := d.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("it ended with %d", code)
	}
	mustContain(t, "the error", d.logText(), "the service manager listens on "+address, "docket.socket")
}

// Ensure that a program that cannot take over never gets to: docket goes on,
// with its configuration and its running steps.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil, waitStep("work")) })
	d.copyProgram()
	d.start()
	good := string(mustMarshal(t, d.config))
	d.mustStart("api", "K", obj{"commit": repo.commit("refs/heads/main")})
	d.waitStarted("work", "api-1")

	mustWrite(t, d.configPath(), strings.Replace(good, `"clone_url"`, `"clone_uhl"`, 1))
	d.signal(syscall.SIGUSR2)
	d.waitLog("clone_uhl")
	mustWrite(t, d.configPath(), strings.Replace(good, `"data_dir":"`, `"data_dir":"/elsewhere`, 1))
	d.signal(syscall.SIGUSR2)
	d.waitLog("data_dir was ")
	mustWrite(t, d.configPath(), good)
	d.replaceProgram("echo it is broken; exit 3\n")
	d.signal(syscall.SIGUSR2)
	d.waitLog("it is broken")
	d.replaceProgram("exit 0\n")
	d.signal(syscall.SIGUSR2)
	d.waitLog("does not know how to take over")

	if log := d.logText(); strings.Count(log, "upgrade refused") != 4 || strings.Contains(log, "making way") {
		t.Errorf("the log:\n%s", log)
	}
	d.open("api-1")
	d.waitRun("api-1", ci.Succeeded)
}

// Ensure that a program that fails once the store is free does not take over
// either: deliveries were taken while the step ended, the ones that came then
// waited, and the docket before answers them.
func TestUpgradeFailsLate(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) {
		d.troubled = true
		d.config["shutdown_grace"] = "20s"
		d.addProject("api", repo, nil, waitStep("work"))
	})
	d.start()
	commit := repo.commit("refs/heads/main")
	d.mustStart("api", "K", obj{"commit": commit})
	d.waitStarted("work", "api-1")
	d.signal(syscall.SIGUSR2)
	d.waitLog("making way for the new program")
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
	if a := d.call("GET", "/readyz", "", nil); a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "starts no runs") {
		t.Errorf("readyz of a docket that makes way: %v", a)
	}
	mustWrite(t, d.configPath(), "data_dir: [")
	d.open("all")
	d.waitLog("upgrade failed; this docket goes on")
	d.waitRun("api-1", ci.Succeeded)
	d.waitRun("api-2", ci.Succeeded)
	d.mustDeliver(http.StatusAccepted, "d-2", repo.push("refs/heads/main", "", commit))
	d.waitRun("api-3", ci.Succeeded)

	d.configure()
	d.signal(syscall.SIGUSR2)
	eventually(t, "it is upgraded after all", func() bool {
		return strings.Count(d.logText(), "making way") == 2 && strings.Count(d.logText(), "msg=listening") == 6
	})
	d.mustDeliver(http.StatusAccepted, "d-3", repo.push("refs/heads/main", "", commit))
	d.waitRun("api-4", ci.Succeeded)
}

// Ensure that the service manager does not take docket for dead while the new
// program gives a large store a new schema.
func TestUpgradeKeepsTheWatchdogQuiet(t *testing.T) {
	t.Parallel()
	m, repo := newServiceManager(t), newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.addProject("api", repo, nil) })
	d.environ = []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=1000000"}
	d.copyProgram()
	d.start()
	if err := os.Rename(d.program, d.program+".real"); err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(d.dir, "gate")
	d.replaceProgram(`case "$` + rehearseEnv + `" in *'"Open":true'*) until [ -e '` + gate + `' ]; do sleep 0.05; done;; esac
exec '` + d.program + `.real' "$@"
`)
	d.signal(syscall.SIGUSR2)
	d.waitLog(`msg="shut down"`)
	for range 5 {
		m.forget()
		m.wait("WATCHDOG=1")
	}
	mustWrite(t, gate, "")
	m.wait("READY=1")
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", repo.commit("refs/heads/main")))
}

// Ensure that a large store has time to be given a new schema.
func TestRehearsalTakesTheStoresSizeIntoAccount(t *testing.T) {
	if small, large := rehearsalFor(1<<20), rehearsalFor(9<<30); small != rehearseTimeout || large < 15*time.Minute {
		t.Errorf("%s for 1 MiB and %s for 9 GiB", small, large)
	}
}
