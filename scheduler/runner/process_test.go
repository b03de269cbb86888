package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/scheduler/runner"
	"docket/store/ci"
)

// Ensure that a step ends when its shell does, that what it left behind is
// ended too, and that the log says so.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	survived := filepath.Join(t.TempDir(), "survived")
	for name, tt := range map[string]struct{ script, notice string }{
		"a child in the background":       {"echo hi; (sleep 20; touch " + survived + ") & exit 0", "behind, now ended"},
		"a child that ignores SIGTERM":    {"echo hi; (trap '' TERM HUP; sleep 20; touch " + survived + ") & sleep 0.2", "behind, now ended"},
		"a double fork in a new session":  {"echo hi; (setsid sh -c '(sleep 20; touch " + survived + ") &' &) ; sleep 0.3", "behind, now ended"},
		"one that closed its descriptors": {"echo hi; setsid sleep 20 </dev/null >/dev/null 2>&1 & sleep 0.2", "left 1 process behind"},
		"one without an environment":      {"echo hi; env -i setsid sleep 20 & sleep 0.2", "left 1 process behind"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			rec := mustSucceed(t, r, g.work(1, tt.script, "echo next"))
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("it took %s", d)
			}
			if rec.text(0) != "hi\n" || rec.text(1) != "next\n" || !rec.noticed(tt.notice) {
				t.Errorf("printed %q and %q, notices %q", rec.text(0), rec.text(1), rec.notices)
			}
		})
	}
	if _, err := os.Stat(survived); err == nil {
		t.Error("a process survived its step")
	}
	rec := mustSucceed(t, r, g.work(2, "for i in $(seq 200); do (true) & done; wait; echo done"))
	if rec.noticed("behind") {
		t.Errorf("children that were waited for count as left: %q", rec.notices)
	}
}

// stop carries a run and stops it once step 0 has printed "ready".
func stop(t *testing.T, r *runner.Runner, w runner.Work, cause error) (runner.Result, *recorder) {
	t.Helper()
	rec := newRecorder()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan runner.Result, 1)
	go func() { done <- r.Carry(ctx, w, rec) }()
	rec.waitFor(t, 0, "ready")
	cancel(cause)
	select {
	case res := <-done:
		return res, rec
	case <-time.After(30 * time.Second):
		t.Fatal("the run did not end")
		return runner.Result{}, nil
	}
}

// Ensure that a stop is SIGTERM to the whole tree, the grace, then SIGKILL,
// and that the reason says which it was.
func TestStop(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	lock := filepath.Join(t.TempDir(), "lock")
	survived := filepath.Join(t.TempDir(), "survived")
	cancelled := &runner.Stop{State: ci.Cancelled, Reason: "cancelled by ann"}
	for name, tt := range map[string]struct {
		script string
		grace  time.Duration
		cause  error
		state  ci.State
		reason string
	}{
		"a trap that releases a lock": {
			"touch " + lock + "; trap 'sleep 0.5; rm " + lock + "; exit 7' TERM; sh -c 'echo ready; exec sleep 20'",
			10 * time.Second, cancelled, ci.Cancelled, "cancelled by ann (ended by SIGTERM)",
		},
		"a child that cleans up after its shell": {
			"touch " + lock + "; (trap 'sleep 0.5; rm " + lock + "; exit' TERM; sh -c 'echo ready; exec sleep 20' & wait) & wait",
			10 * time.Second, cancelled, ci.Cancelled, "cancelled by ann (ended by SIGTERM)",
		},
		"a shell that ignores SIGTERM": {
			"trap '' TERM; echo ready; while :; do sleep 0.1; done",
			300 * time.Millisecond, cancelled, ci.Cancelled, "cancelled by ann (ended by SIGKILL)",
		},
		"a grandchild in the background": {
			"(sleep 3; touch " + survived + ") & echo ready; wait",
			10 * time.Second, &runner.Stop{State: ci.Superseded, Reason: "superseded by api-9"}, ci.Superseded, "superseded by api-9 (ended by SIGTERM)",
		},
		"a daemon that ignores SIGTERM": {
			"(setsid sh -c 'trap \"\" TERM; (sleep 3; touch " + survived + ") & wait' &); sleep 0.3; echo ready; sleep 20",
			300 * time.Millisecond, &runner.Stop{State: ci.Interrupted, Reason: "the server stops"}, ci.Interrupted, "the server stops (ended by SIGKILL)",
		},
		"a stopped process": {
			"echo ready; kill -STOP $$",
			10 * time.Second, cancelled, ci.Cancelled, "cancelled by ann (ended by SIGTERM)",
		},
		"no cause": {
			"echo ready; sleep 20",
			10 * time.Second, nil, ci.Interrupted, "the server stopped (ended by SIGTERM)",
		},
		"a step that signals its supervisor": {
			"kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; sleep 0.3; kill -0 $PPID; echo ready; sleep 20",
			10 * time.Second, cancelled, ci.Cancelled, "cancelled by ann (ended by SIGTERM)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := g.work(1, tt.script, "echo never")
			w.Spec.Grace = ci.Duration(tt.grace)
			start := time.Now()
			res, rec := stop(t, r, w, tt.cause)
			if res.State != tt.state || res.Reason != tt.reason {
				t.Errorf("the run is %s (%s), want %s (%s)", res.State, res.Reason, tt.state, tt.reason)
			}
			if res.Steps[0].State != ci.StepCancelled || res.Steps[1].State != ci.StepSkipped || rec.text(1) != "" {
				t.Errorf("the steps are %+v", res.Steps)
			}
			if d := time.Since(start); d > 8*time.Second {
				t.Errorf("it took %s", d)
			}
			for _, p := range []string{lock, survived} {
				if _, err := os.Stat(p); err == nil {
					t.Errorf("%s is there", p)
				}
			}
		})
	}
}

// Ensure that a time-out fails the run, with the reason, and leaves nothing.
func TestTimeout(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	w := g.work(1, "echo ready; sleep 30", "echo never")
	w.Spec.Timeout = ci.Duration(1500 * time.Millisecond)
	res, rec := carry(t, r, w)
	if res.State != ci.Failed || res.Reason != "timed out" || res.Steps[0].State != ci.StepFailed || !strings.HasPrefix(res.Steps[0].Reason, "timed out after 1.5s (ended by SIGTERM)") {
		t.Errorf("got %+v", res)
	}
	if !rec.noticed("timed out after") {
		t.Errorf("notices %q", rec.notices)
	}
}

// Ensure that a run is over, with nothing left, when a step kills its own
// supervisor or stops it.
func TestSupervisorLost(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	r, _ := mustRunner(t)
	res, _ := carry(t, r, g.work(1, "(setsid sleep 20 &); sleep 0.2; kill -KILL $PPID; sleep 20"))
	if res.State != ci.Interrupted || res.Steps[0].State != ci.StepFailed || !strings.Contains(res.Reason, "unknown") {
		t.Errorf("got %+v", res)
	}
	w := g.work(2, "kill -STOP $PPID; echo ready; sleep 60")
	w.Spec.Grace = ci.Duration(100 * time.Millisecond)
	res, _ = stop(t, r, w, &runner.Stop{State: ci.Cancelled, Reason: "enough"})
	if res.State != ci.Cancelled {
		t.Errorf("got %+v", res)
	}
}

// server is a stand-in that carries one run in its own process.
type server struct {
	cmd  *exec.Cmd
	proc ci.Process
	dir  string
	in   *bufio.Reader
}

func mustServer(t *testing.T, g *repository, step string) *server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{dir: realDir(t)}
	s.cmd = exec.Command(self, asServer, s.dir, g.bare, g.head())
	s.cmd.Env = append(os.Environ(), "STEP="+step)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	s.in = bufio.NewReader(out)
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			t.Fatal("the server ended before its step was ready")
		}
		if strings.HasPrefix(line, "process ") {
			if _, err := fmt.Sscanf(line, "process %s %d %d", &s.proc.Machine, &s.proc.PID, &s.proc.Start); err != nil {
				t.Fatal(err)
			}
		}
		if line == "ready\n" {
			return s
		}
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

const stubborn = `trap '' TERM HUP INT
(trap '' TERM; sleep 300) &
(setsid sh -c 'trap "" TERM; (sleep 300) & wait' &)
(cd /; setsid sh -c 'trap "" TERM; sleep 300' &)
sleep 0.3; sh -c 'echo ready; exec sleep 300'`

// Ensure that SIGKILL to the server leaves no process of its run, without any
// recovery.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	s := mustServer(t, g, stubborn)
	if n := len(processesOf(s.dir)); n < 5 {
		t.Fatalf("only %d processes are found before the kill", n)
	}
	s.kill()
	eventually(t, "all processes are gone", func() bool { return len(processesOf(s.dir)) == 0 })
}

func runOf(s *server) ci.Run {
	w := workOf("/x", strings.Repeat("1", 40), 1)
	w.Run.Internal.Process = &s.proc
	return w.Run
}

// Ensure that Reap ends a tree whose supervisor was killed with the server,
// and says how many processes there were.
func TestReap(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	s := mustServer(t, g, stubborn)
	before := len(processesOf(s.dir))
	// Stopped first, so that it cannot do its work between the two kills.
	_ = syscall.Kill(s.proc.PID, syscall.SIGSTOP)
	s.kill()
	_ = syscall.Kill(s.proc.PID, syscall.SIGKILL)
	eventually(t, "the supervisor is gone", func() bool { return len(processesOf(s.dir)) == before-1 })
	r, err := runner.New(options(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	killed, err := r.Reap(context.Background(), runOf(s))
	if err != nil || killed != before-1 || len(processesOf(s.dir)) != 0 {
		t.Errorf("killed %d of %d, %v; left %q", killed, before-1, err, processesOf(s.dir))
	}
	if killed, err = r.Reap(context.Background(), runOf(s)); killed != 0 || err != nil {
		t.Errorf("again: %d, %v", killed, err)
	}
}

// Ensure that Reap ends a supervisor that is alive, with its tree.
func TestReapSupervisor(t *testing.T) {
	t.Parallel()
	g := mustRepository(t)
	s := mustServer(t, g, stubborn)
	_ = syscall.Kill(s.proc.PID, syscall.SIGSTOP)
	s.kill()
	r, err := runner.New(options(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	if killed, err := r.Reap(context.Background(), runOf(s)); err != nil || killed < 5 || len(processesOf(s.dir)) != 0 {
		t.Errorf("killed %d, %v; left %q", killed, err, processesOf(s.dir))
	}
}

// Ensure that a stranger which got the recorded process id is left alone, and
// another run's process too.
func TestReapSparesStrangers(t *testing.T) {
	t.Parallel()
	r, data := mustRunner(t)
	other := exec.Command("sleep", "60")
	other.Env = []string{"HOME=" + filepath.Join(data, "workspaces/api/11-1/home")}
	for _, cmd := range []*exec.Cmd{exec.Command("sleep", "60"), other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		start, _ := strconv.ParseUint(strings.Fields(string(stat))[21], 10, 64)
		machine := strings.TrimSpace(string(boot))
		for name, p := range map[string]*ci.Process{
			"another start":   {Machine: machine, PID: cmd.Process.Pid, Start: start - 1},
			"another machine": {Machine: "another", PID: cmd.Process.Pid, Start: start},
			"no process":      nil,
		} {
			run := workOf("/x", strings.Repeat("1", 40), 1).Run
			run.Internal.Process = p
			if killed, err := r.Reap(context.Background(), run); killed != 0 || err != nil {
				t.Errorf("%s: killed %d, %v", name, killed, err)
			}
			if cmd.Process.Signal(syscall.Signal(0)) != nil {
				t.Fatalf("%s: the stranger is dead", name)
			}
		}
		run := workOf("/x", strings.Repeat("1", 40), 1).Run
		run.Internal.Process = &ci.Process{Machine: machine, PID: cmd.Process.Pid, Start: start}
		if killed, err := r.Reap(context.Background(), run); killed != 1 || err != nil {
			t.Errorf("the recorded process itself: killed %d, %v", killed, err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Errorf("it ended with %v", err)
		}
	}
}
