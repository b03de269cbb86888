package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/store"
)

// obj is a mapping of a configuration, a payload or a request.
type obj = map[string]any

const (
	hookSecret   = "the secret of the hook"
	notifySecret = "the secret of the notifications"
	statusToken  = "ghp_fortests"
	adminToken   = "dkt_admin-for-tests"
)

// patience is how long a test waits for what should take moments.
const patience = 20 * time.Second

// daemon is docket as a process, with a directory of its own. It can be
// started and killed as often as a test likes. When the test ends it is
// stopped, nothing of its runs may be left, its log may not tell of a fault,
// and its store must be whole.
type daemon struct {
	t       *testing.T
	dir     string
	data    string // data_dir
	room    string // where steps and the test meet
	control string // see controlEnv
	config  obj

	cmd       *exec.Cmd
	exited    chan struct{} // closed when the process has ended
	log       string        // of the present process
	starts    int
	addresses []string // host:port of the listeners, in order

	program string     // in place of the test binary; see copyProgram
	sockets []*os.File // passed as the service manager does
	environ []string   // beyond the usual

	troubled bool // faults in the log are what the test is about
}

// newDaemon prepares a docket. change is called with its configuration, which
// has one integration "github" and no project.
func newDaemon(t *testing.T, hub *fakeGitHub, change func(d *daemon)) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: shortDir(t)}
	d.data, d.room, d.control = filepath.Join(d.dir, "data"), filepath.Join(d.dir, "room"), filepath.Join(d.dir, "control")
	for _, dir := range []string{d.room, d.control} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"hook.secret": hookSecret, "notify.secret": notifySecret, "github.token": statusToken, "admin.token": adminToken,
	} {
		mustWrite(t, filepath.Join(d.dir, name), text+"\n")
	}
	d.config = obj{
		"data_dir": d.data, "public_url": "http://docket.test", "scan_interval": "250ms", "shutdown_grace": "200ms",
		"admin_token":  obj{"file": "admin.token"},
		"listen":       []obj{{"address": "127.0.0.1:0"}},
		"limits":       obj{"concurrent_runs": 2, "free_space": 1 << 20},
		"integrations": []obj{integration("github", hub)},
		"projects":     []obj{},
	}
	change(d)
	d.configure()
	t.Cleanup(d.end)
	return d
}

// shortDir is a temporary directory with a short path, as sockets like it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dkt")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// integration is one that reports to hub, or to nobody where that is nil.
func integration(name string, hub *fakeGitHub, installations ...int64) obj {
	in := obj{"name": name, "webhook_secrets": []obj{{"file": "hook.secret"}}}
	if hub != nil {
		in["api_url"], in["token"] = hub.URL, obj{"file": "github.token"}
	}
	if len(installations) > 0 {
		in["installations"] = installations
	}
	return in
}

// addProject adds a project whose steps know the room. Without steps it has
// one that says its commit.
func (d *daemon) addProject(name string, repo *repository, more obj, steps ...obj) {
	if len(steps) == 0 {
		steps = []obj{step("work", `cat name`)}
	}
	p := obj{
		"name": name, "integration": "github", "repository": repo.fullName, "clone_url": repo.dir,
		"env": obj{"ROOM": d.room}, "steps": steps, "grace": "200ms",
	}
	for k, v := range more {
		p[k] = v
	}
	d.config["projects"] = append(d.config["projects"].([]obj), p)
}

func step(name, script string) obj { return obj{"name": name, "run": script} }

// waitStep is a step that says that it has begun, in its order, and waits
// until the test opens its run's gate.
func waitStep(name string) obj {
	return step(name, `echo "$DOCKET_RUN" >>"$ROOM/order"; : >"$ROOM/`+name+`.$DOCKET_RUN"
until [ -e "$ROOM/open.$DOCKET_RUN" ] || [ -e "$ROOM/open.`+name+`.$DOCKET_RUN" ] || [ -e "$ROOM/open.all" ]; do sleep 0.02; done`)
}

// open opens the gate of a run, of one of its steps ("test.api-1"), or of "all".
func (d *daemon) open(run string) {
	d.t.Helper()
	mustWrite(d.t, filepath.Join(d.room, "open."+run), "")
}

// waitStarted waits until a run is in the waitStep of that name.
func (d *daemon) waitStarted(name, run string) {
	d.t.Helper()
	d.waitRoom(name + "." + run)
}

func (d *daemon) waitRoom(file string) {
	d.t.Helper()
	eventually(d.t, "a step makes "+file, func() bool {
		_, err := os.Stat(filepath.Join(d.room, file))
		return err == nil
	})
}

// order returns the runs in the order in which their waitStep began.
func (d *daemon) order() []string {
	b, err := os.ReadFile(filepath.Join(d.room, "order"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func (d *daemon) configPath() string { return filepath.Join(d.dir, "docket.yaml") }

// configure writes the configuration. What is JSON is YAML.
func (d *daemon) configure() {
	d.t.Helper()
	b, err := json.MarshalIndent(d.config, "", " ")
	if err != nil {
		d.t.Fatal(err)
	}
	mustWrite(d.t, d.configPath(), string(b))
}

// command is a command line of the binary under test.
func (d *daemon) command(args ...string) *exec.Cmd {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	if d.program != "" {
		exe = d.program
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = d.dir
	cmd.Env = []string{controlEnv + "=" + d.control, "PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "TMPDIR=" + d.dir}
	return cmd
}

// launch starts the server and does not wait for anything.
func (d *daemon) launch() {
	d.t.Helper()
	d.starts++
	d.log = filepath.Join(d.dir, fmt.Sprintf("log.%d", d.starts))
	out, err := os.Create(d.log)
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	d.cmd = d.command("serve", "-c", d.configPath())
	if len(d.sockets) > 0 {
		d.passSockets()
	}
	d.cmd.Env = append(d.cmd.Env, d.environ...)
	d.cmd.Stdout, d.cmd.Stderr = out, out
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	exited, cmd := make(chan struct{}), d.cmd
	d.exited = exited
	go func() {
		_ = cmd.Wait() // the test looks at ProcessState
		close(exited)
	}()
}

// start starts the server and waits until it is ready.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	d.waitListening()
	eventually(d.t, "docket is ready", func() bool { return d.call("GET", "/readyz", "", nil).status == 200 })
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+:\d+) `)

// waitListening waits until every listener's address is known.
func (d *daemon) waitListening() {
	d.t.Helper()
	eventually(d.t, "docket listens", func() bool {
		select {
		case <-d.exited:
			d.t.Fatalf("docket ended at its start: %v\n%s", d.cmd.ProcessState, d.logText())
		default:
		}
		d.addresses = nil
		for _, m := range listeningLine.FindAllStringSubmatch(d.logText(), -1) {
			d.addresses = append(d.addresses, m[1])
		}
		return len(d.addresses) == len(d.config["listen"].([]obj))
	})
}

func (d *daemon) logText() string { return mustRead(d.t, d.log) }

// waitLog waits until the present process has logged something.
func (d *daemon) waitLog(text string) {
	d.t.Helper()
	eventually(d.t, "docket logs "+text, func() bool { return strings.Contains(d.logText(), text) })
}

// kill ends the server with SIGKILL.
func (d *daemon) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	d.waitKilled()
}

// waitKilled waits until the server has died of SIGKILL.
func (d *daemon) waitKilled() {
	d.t.Helper()
	d.waitExit()
	if ws := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		d.t.Fatalf("docket ended with %v, not by SIGKILL\n%s", d.cmd.ProcessState, d.logText())
	}
}

func (d *daemon) waitExit() {
	d.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.exited:
	case <-timer.C:
		d.t.Fatalf("docket does not end\n%s", d.logText())
	}
}

func (d *daemon) signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatal(err)
	}
}

// stop ends the server with SIGTERM, which must go well.
func (d *daemon) stop() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	d.waitExit()
	if code := d.cmd.ProcessState.ExitCode(); code != exitDone {
		d.t.Errorf("docket ended with %v after SIGTERM\n%s", d.cmd.ProcessState, d.logText())
	}
}

func (d *daemon) running() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// arm asks for a SIGKILL at the nth passing of a point from now on; n counts
// from 1.
func (d *daemon) arm(point string, n int) {
	d.t.Helper()
	d.setControl("kill", fmt.Sprintf("%s %d", point, n))
}

// disarm takes every failpoint back.
func (d *daemon) disarm() {
	d.t.Helper()
	for _, name := range []string{"kill", "fail"} {
		if err := os.Remove(filepath.Join(d.control, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.t.Fatal(err)
		}
	}
}

func (d *daemon) setControl(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.control, name)
	mustWrite(d.t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		d.t.Fatal(err)
	}
}

// end is what holds after every test.
func (d *daemon) end() {
	d.t.Helper()
	defer func() {
		if d.running() { // it did not stop, and must not stay
			d.kill()
		}
	}()
	d.disarm()
	if d.running() {
		d.signal(syscall.SIGCONT)
		d.stop()
	}
	for n := 1; n <= d.starts; n++ {
		d.checkLog(n)
	}
	// The supervisors of a killed server need a moment.
	within(d.t, 5*time.Second, "no process of a run is left", func() bool { return len(processesBelow(d.data)) == 0 })
	if d.starts > 0 {
		d.verify()
	}
}

// checkLog looks for faults in the log of the nth process.
func (d *daemon) checkLog(n int) {
	d.t.Helper()
	log := mustRead(d.t, filepath.Join(d.dir, fmt.Sprintf("log.%d", n)))
	if d.t.Failed() {
		const most = 8 << 10
		d.t.Logf("log of process %d:\n%s", n, log[max(0, len(log)-most):])
	}
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, "DATA RACE"), strings.Contains(line, "panic"):
			d.t.Errorf("a fault in the log of process %d:\n%s", n, log)
			return
		case strings.Contains(line, "level=ERROR") && !d.troubled && !strings.Contains(line, "path=/readyz"):
			d.t.Errorf("a fault in the log of process %d: %s", n, line)
		}
	}
}

// verify looks whether the store of the stopped server is whole.
func (d *daemon) verify() {
	d.t.Helper()
	broken, err := store.VerifyFile(d.t.Context(), filepath.Join(d.data, storeFile))
	if err != nil && d.t.Context().Err() == nil {
		d.t.Errorf("verify: %v", err)
	}
	for _, line := range broken {
		d.t.Errorf("verify: %s", line)
	}
}

// processesBelow returns the processes that were started with a HOME below a
// directory, as those of runs are.
func processesBelow(dir string) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // gone, or not ours
		}
		if strings.Contains("\x00"+string(b), "\x00HOME="+dir+"/") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			list = append(list, filepath.Base(filepath.Dir(f))+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// eventually polls until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s", limit, what)
		}
	}
}
