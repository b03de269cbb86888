package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"docket/store/ci"
)

// defaultGrace is the time between SIGTERM and SIGKILL where a spec has none.
const defaultGrace = 10 * time.Second

// Preparation is the step number under which the checkout is recorded.
const Preparation = -1

// Work is one claimed run and all that it needs.
type Work struct {
	Run      ci.Run
	Spec     ci.Spec
	Secrets  map[string]ci.Secret // values of Spec.Secrets; a fork's run gets none of them
	Event    []byte               // the payload for DOCKET_EVENT_FILE; nil: an empty file
	URL      string               // the run's page
	LogLimit int64                // bytes of output over all steps; 0: no limit
}

// Recorder keeps what happens. Calls about one run come one at a time: no
// output of a step comes before its StepStarted returned or after its
// StepFinished was called.
type Recorder interface {
	// StepStarted must be durable when it returns nil; only then anything of
	// the step runs. p is the supervisor of all that the step will start, the
	// same for all steps of a run. An error ends the run as interrupted.
	StepStarted(ctx context.Context, step int, deploy bool, p ci.Process) error
	// StepFinished is told once for each step that was started. An error
	// changes nothing: the Result says the same again.
	StepFinished(ctx context.Context, step int, r ci.StepResult) error
	// Output gets a step's bytes in order, masked. An error loses only them.
	// p is valid during the call.
	Output(step int, at time.Time, p []byte) error
	// Notice gets a line of docket's own: "[docket] " and a text, no newline.
	Notice(step int, at time.Time, text string) error
}

// Stop is the cause with which a run's context is cancelled.
type Stop struct {
	State  ci.State // Cancelled, Superseded or Interrupted
	Reason string
}

// Error returns the reason.
func (s *Stop) Error() string { return string(s.State) + ": " + s.Reason }

// Result is how a run ended. Steps has one entry for each of the spec's.
type Result struct {
	State  ci.State
	Reason string // "" where it just succeeded or failed by an exit code
	Steps  []ci.StepResult
}

var errTimedOut = errors.New(ci.ReasonTimedOut)

// carrier is one run being carried.
type carrier struct {
	Work
	r     *Runner
	rec   Recorder
	ws    workspace
	out   *output
	grace time.Duration
	s     *session
	steps []ci.StepResult
}

// Carry carries a run to its end. When it returns no process of the run is
// left and its workspace is gone.
//
// A step's result is its shell's exit code, whatever its output and its
// leftovers. ctx ends the run early: with a *Stop as the cause as that says,
// else as interrupted.
func (r *Runner) Carry(ctx context.Context, w Work, rec Recorder) Result {
	c := &carrier{Work: w, r: r, rec: rec, grace: time.Duration(w.Spec.Grace)}
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	var secrets []string
	for _, s := range w.Secrets {
		secrets = append(secrets, s.Reveal())
	}
	if rem, err := parseRemote(w.Spec.CloneURL); err == nil {
		secrets = append(secrets, rem.password)
	}
	c.out = &output{rec: rec, now: r.now, mask: newMasker(secrets), limit: w.LogLimit}
	for _, s := range w.Spec.Steps {
		c.steps = append(c.steps, ci.StepResult{Name: s.Name, State: ci.StepSkipped})
	}
	if t := time.Duration(w.Spec.Timeout); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t, errTimedOut)
		defer cancel()
	}
	state, reason := c.carry(ctx)
	return Result{State: state, Reason: c.out.mask.text(reason), Steps: c.steps}
}

func (c *carrier) carry(ctx context.Context) (ci.State, string) {
	var err error
	if c.ws, err = c.r.workspace(c.Run); err != nil {
		return ci.Failed, ci.MessageOf(err)
	}
	if ctx.Err() != nil {
		return c.stopped(ctx, "")
	}
	if err := c.ws.create(); err != nil {
		return ci.Failed, "the workspace cannot be made: " + err.Error()
	}
	defer func() {
		if err := c.r.Remove(c.Run); err != nil {
			c.out.notice(len(c.steps)-1, "the workspace could not be removed: %v", err)
		}
	}()
	if c.s, err = c.r.open(c.ws, c.Run.ID); err != nil {
		return ci.Failed, "no process can be started: " + err.Error()
	}
	defer c.s.close()
	if err := c.rec.StepStarted(ctx, Preparation, false, c.s.proc); err != nil {
		return c.unrecorded(ctx, err)
	}
	notes, state, reason := c.prepare(ctx)
	if state != ci.Running {
		return state, reason
	}
	env, cut := environment(c.Work, c.ws)
	for _, name := range cut {
		notes = append(notes, name+" is longer than 32 KiB and was cut in the environment")
	}
	for i := range c.steps {
		if ctx.Err() != nil {
			return c.stopped(ctx, "")
		}
		if err := c.rec.StepStarted(ctx, i, c.Spec.Steps[i].Deploy, c.s.proc); err != nil {
			return c.unrecorded(ctx, err)
		}
		for _, n := range notes {
			c.out.notice(i, "%s", n)
		}
		notes = nil
		if state, reason := c.step(ctx, i, env); state != ci.Running {
			return state, reason
		}
	}
	return ci.Succeeded, ""
}

// unrecorded is the end of a run whose next step could not be recorded.
func (c *carrier) unrecorded(ctx context.Context, err error) (ci.State, string) {
	if ctx.Err() != nil {
		return c.stopped(ctx, "")
	}
	return ci.Interrupted, "the start of a step could not be recorded, so it was not run: " + err.Error()
}

// stopped tells how a run ends whose context is done. signal is the one that
// ended what was running, "" where nothing was.
func (c *carrier) stopped(ctx context.Context, signal string) (ci.State, string) {
	by := ""
	if signal != "" {
		by = " (ended by " + signal + ")"
	}
	var s *Stop
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimedOut):
		return ci.Failed, errTimedOut.Error()
	case errors.As(cause, &s):
		if s.Reason == "" {
			return s.State, string(s.State) + by
		}
		return s.State, s.Reason + by
	default:
		return ci.Interrupted, "the server stopped" + by
	}
}

// prepare fills the workspace. The state is Running if the steps may start.
func (c *carrier) prepare(ctx context.Context) (notes []string, _ ci.State, reason string) {
	result := ci.StepResult{Name: "checkout", State: ci.StepRunning, StartedAt: ci.At(c.r.now())}
	out := c.out.step(Preparation)
	notes, err := c.fill(ctx, out)
	out.flush()
	result.FinishedAt = ci.At(c.r.now())
	state := ci.Running
	switch {
	case err == nil:
		result.State = ci.StepSucceeded
		c.out.notice(Preparation, "HEAD is %s", c.Run.Source.Commit)
	case ctx.Err() != nil:
		result.State = ci.StepCancelled
		state, reason = c.stopped(ctx, c.s.stopped)
	case errors.Is(err, errLost):
		result.State = ci.StepFailed
		state, reason = ci.Interrupted, "the preparation's end is unknown: "+err.Error()
	default:
		result.State = ci.StepFailed
		state, reason = ci.Failed, personMessage(err)
	}
	result.Reason = c.out.mask.text(reason)
	if reason != "" {
		c.out.notice(Preparation, "%s", reason)
	}
	_ = c.rec.StepFinished(context.WithoutCancel(ctx), Preparation, result)
	return notes, state, reason
}

// personMessage is an error's sentence for people; a fault of the host's,
// such as a full disk, is told as it is.
func personMessage(err error) string {
	var e *ci.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "the workspace cannot be prepared: " + err.Error()
}

func (c *carrier) fill(ctx context.Context, out *stepOutput) ([]string, error) {
	rem, err := parseRemote(c.Spec.CloneURL)
	if err != nil {
		return nil, err
	}
	if !c.Run.Fork {
		for _, name := range c.Spec.Secrets {
			if _, ok := c.Secrets[name]; !ok {
				return nil, ci.Errorf(ci.CodeInvalid, "the secret %s, which the run was frozen with, is not configured any more: configure it again or start a new run", name)
			}
		}
	}
	if err := os.WriteFile(c.ws.event(), c.Event, 0o600); err != nil {
		return nil, err
	}
	if note := c.Run.Internal.Note; note != "" {
		c.out.notice(Preparation, "%s", note)
	}
	c.out.notice(Preparation, "fetching %s of %s from %s", ci.ShortCommit(c.Run.Source.Commit), c.Run.Source.Ref, rem.shown)
	g := &git{r: c.r, s: c.s, w: c.ws, remote: rem, masks: c.out.mask, stderr: out.write}
	notes, err := g.fill(ctx, c.Run, c.Spec.Git)
	if err == nil { // a URL with credentials may be in it, and the steps come now
		err = os.Remove(c.ws.gitconfig())
	}
	return notes, err
}

// step runs one step to its end. The state is Running if the run goes on.
func (c *carrier) step(ctx context.Context, i int, env []string) (ci.State, string) {
	res := &c.steps[i]
	res.State, res.StartedAt = ci.StepRunning, ci.At(c.r.now())
	out := c.out.step(i)
	e, err := c.shell(ctx, i, env, out)
	out.flush()
	state, reason := c.judge(ctx, i, e, err)
	if e.leftovers > 0 {
		c.out.notice(i, "the step left %d %s behind, now ended", e.leftovers, plural(e.leftovers, "process", "processes"))
	}
	res.FinishedAt = ci.At(c.r.now())
	res.Reason = c.out.mask.text(res.Reason)
	_ = c.rec.StepFinished(context.WithoutCancel(ctx), i, *res)
	return state, reason
}

// shell starts a step's script. The script is a file: it may be longer than a
// command line, and nothing of it is one.
func (c *carrier) shell(ctx context.Context, i int, env []string, out *stepOutput) (ended, error) {
	script := c.ws.script(i)
	if err := os.WriteFile(script, []byte(c.Spec.Steps[i].Run+"\n"), 0o600); err != nil {
		return ended{}, err
	}
	return c.s.run(ctx, work{
		command: command{Path: "/bin/sh", Argv: []string{"sh", "-eu", script}, Env: env, Dir: c.ws.src()},
		out:     out.write,
		grace:   c.grace,
	})
}

// judge decides what a step's end means for it and for the run.
func (c *carrier) judge(ctx context.Context, i int, e ended, err error) (ci.State, string) {
	res := &c.steps[i]
	if e.stopped != "" || err != nil && ctx.Err() != nil {
		state, reason := c.stopped(ctx, e.stopped)
		res.State, res.Reason = ci.StepCancelled, reason
		if state == ci.Failed {
			res.State = ci.StepFailed
			res.Reason = fmt.Sprintf("%s after %s (ended by %s)", reason, time.Duration(c.Spec.Timeout), e.stopped)
		}
		if err == nil {
			res.ExitCode = &e.exit
		}
		c.out.notice(i, "%s", res.Reason)
		return state, reason
	}
	switch {
	case errors.Is(err, errLost):
		res.State, res.Reason = ci.StepFailed, "its end is unknown: "+err.Error()
		c.out.notice(i, "%s", res.Reason)
		return ci.Interrupted, fmt.Sprintf("the end of step %q is unknown: %v", res.Name, err)
	case err != nil:
		res.State, res.Reason = ci.StepFailed, "the shell could not be started: "+err.Error()
		c.out.notice(i, "%s", res.Reason)
		return ci.Failed, fmt.Sprintf("step %q: %s", res.Name, res.Reason)
	}
	res.ExitCode = &e.exit
	if e.exit == 0 {
		res.State = ci.StepSucceeded
		return ci.Running, ""
	}
	res.State = ci.StepFailed
	if e.signal == 0 {
		if e.exit == 128+int(syscall.SIGKILL) {
			c.out.notice(i, "a command was ended by SIGKILL; %s", outOfMemory)
		}
		return ci.Failed, ""
	}
	res.Reason = fmt.Sprintf("the shell was ended by signal %d (%s)", int(e.signal), e.signal)
	if e.signal == syscall.SIGKILL {
		res.Reason += "; " + outOfMemory
	}
	c.out.notice(i, "%s", res.Reason)
	return ci.Failed, fmt.Sprintf("step %q: %s", res.Name, res.Reason)
}

// outOfMemory is what a SIGKILL that nobody here sent mostly means.
const outOfMemory = "if the step did not do that itself, memory ran out: see the kernel's log, and give the step less to do at once or the machine more memory"

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
