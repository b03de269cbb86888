package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/scheduler/runner"
	"docket/store/ci"

	"go.uber.org/goleak"
)

// Markers that make the test binary another program.
const (
	asSupervisor = "as-supervisor"
	asServer     = "as-server" // carries one run, to be killed
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asSupervisor:
			os.Exit(runner.Supervise(os.Args[2:]))
		case asServer:
			os.Exit(standIn(os.Args[2], os.Args[3], os.Args[4]))
		}
	}
	goleak.VerifyTestMain(m)
}

func options(dataDir string) runner.Options {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return runner.Options{DataDir: dataDir, Supervisor: []string{self, asSupervisor}}
}

func mustRunner(t *testing.T, change ...func(*runner.Options)) (*runner.Runner, string) {
	t.Helper()
	dir := realDir(t)
	o := options(dir)
	for _, c := range change {
		c(&o)
	}
	r, err := runner.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p := processesOf(dir); len(p) > 0 {
			t.Errorf("processes are left: %v", p)
		}
	})
	return r, dir
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// recorder keeps everything and can be told to fail.
type recorder struct {
	mu       sync.Mutex
	events   []string
	out      map[int]*bytes.Buffer
	notices  []string
	process  ci.Process
	finished map[int]ci.StepResult

	startErr func(step int) error
	outErr   func() error
	seen     chan struct{} // gets a token after each output
}

func newRecorder() *recorder {
	return &recorder{out: map[int]*bytes.Buffer{}, finished: map[int]ci.StepResult{}, seen: make(chan struct{}, 1)}
}

func (r *recorder) StepStarted(_ context.Context, step int, deploy bool, p ci.Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("start %d %v", step, deploy))
	r.process = p
	if r.startErr != nil {
		return r.startErr(step)
	}
	return nil
}

func (r *recorder) StepFinished(_ context.Context, step int, s ci.StepResult) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("finish %d %s", step, s.State))
	r.finished[step] = s
	return nil
}

func (r *recorder) Output(step int, _ time.Time, p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outErr != nil {
		if err := r.outErr(); err != nil {
			return err
		}
	}
	if r.out[step] == nil {
		r.out[step] = &bytes.Buffer{}
	}
	r.out[step].Write(p)
	select {
	case r.seen <- struct{}{}:
	default:
	}
	return nil
}

func (r *recorder) Notice(step int, _ time.Time, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, fmt.Sprintf("%d %s", step, text))
	return nil
}

func (r *recorder) text(step int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out[step] == nil {
		return ""
	}
	return r.out[step].String()
}

func (r *recorder) noticed(part string) bool { return r.noticeCount(part) > 0 }

func (r *recorder) noticeCount(part string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.notices {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// waitFor waits until a step has printed a text.
func (r *recorder) waitFor(t *testing.T, step int, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(r.text(step), text) {
		select {
		case <-r.seen:
		case <-deadline:
			t.Fatalf("step %d never printed %q; it printed %q, notices %q", step, text, r.text(step), r.notices)
		}
	}
}

// repository is a bare remote and a clone to commit in.
type repository struct {
	t         *testing.T
	bare, dir string
}

func mustRepository(t *testing.T) *repository {
	t.Helper()
	root := realDir(t)
	g := &repository{t: t, bare: filepath.Join(root, "remote.git"), dir: filepath.Join(root, "clone")}
	g.in(root, "init", "-q", "--bare", "-b", "main", g.bare)
	g.in(root, "init", "-q", "-b", "main", g.dir)
	g.git("remote", "add", "origin", g.bare)
	g.commit("README", "hello\n")
	return g
}

func (g *repository) in(dir string, args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *repository) git(args ...string) string {
	g.t.Helper()
	return g.in(g.dir, args...)
}

// commit commits one file, pushes main and returns the commit.
func (g *repository) commit(name, content string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		g.t.Fatal(err)
	}
	return g.push()
}

func (g *repository) push() string {
	g.t.Helper()
	g.git("add", "-A")
	g.git("commit", "-q", "--allow-empty", "-m", "change")
	g.git("push", "-q", "--force", "origin", "HEAD:refs/heads/main")
	return g.head()
}

func (g *repository) head() string { g.t.Helper(); return g.git("rev-parse", "HEAD") }

// work makes a run of the repository's head with these steps.
func (g *repository) work(number uint64, steps ...string) runner.Work {
	g.t.Helper()
	return workOf(g.bare, g.head(), number, steps...)
}

func workOf(url, commit string, number uint64, steps ...string) runner.Work {
	w := runner.Work{
		Run: ci.Run{
			ID: ci.RunID("api", number), Project: "api", Number: number, State: ci.Running, Attempt: 1,
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Event: ci.EventPush},
			Source: ci.Source{Repository: "acme/api", Ref: "refs/heads/main", Branch: "main", Commit: commit},
		},
		Spec: ci.Spec{Version: 1, CloneURL: url},
		URL:  "https://ci.example.org/runs/" + ci.RunID("api", number),
	}
	for i, s := range steps {
		w.Spec.Steps = append(w.Spec.Steps, ci.Step{Name: "step" + strconv.Itoa(i), Run: s})
	}
	return w
}

func carry(t *testing.T, r *runner.Runner, w runner.Work) (runner.Result, *recorder) {
	t.Helper()
	rec := newRecorder()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return r.Carry(ctx, w, rec), rec
}

func mustSucceed(t *testing.T, r *runner.Runner, w runner.Work) *recorder {
	t.Helper()
	res, rec := carry(t, r, w)
	if res.State != ci.Succeeded {
		t.Fatalf("the run is %s (%s), want succeeded; steps %+v, output %q, preparation %q, notices %q", res.State, res.Reason, res.Steps, rec.text(0), rec.text(-1), rec.notices)
	}
	return rec
}

// processesOf lists the living processes that were started with a HOME below
// dir, or work there.
func processesOf(dir string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		cwd, _ := os.Readlink("/proc/" + e.Name() + "/cwd")
		if !strings.Contains(string(env), "HOME="+dir+"/") && !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		cmd, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		found = append(found, e.Name()+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
	}
	return found
}

// eventually polls a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// standIn is a server that carries one run and is meant to be killed.
func standIn(dataDir, url, commit string) int {
	r, err := runner.New(options(dataDir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := workOf(url, commit, 1, os.Getenv("STEP"))
	r.Carry(context.Background(), w, &printer{recorder: newRecorder()})
	return 0
}

// printer tells the parent process what happens.
type printer struct{ *recorder }

func (p *printer) StepStarted(ctx context.Context, step int, deploy bool, proc ci.Process) error {
	_, err := fmt.Printf("process %s %d %d\n", proc.Machine, proc.PID, proc.Start)
	return errors.Join(err, p.recorder.StepStarted(ctx, step, deploy, proc))
}

func (p *printer) Output(_ int, _ time.Time, b []byte) error {
	_, err := os.Stdout.Write(b)
	return err
}
