package scheduler

import (
	"context"
	"log/slog"
	"time"

	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
)

// recorder keeps what happens in one attempt of a run.
type recorder struct {
	store   *store.Store
	run     string
	attempt int
	log     *store.LogWriter // nil: it could not be opened
	passing func(point string)
	say     *slog.Logger
	midLine bool // the last output did not end its line
}

var _ runner.Recorder = (*recorder)(nil)

// StepStarted waits for a store that takes no writes, as on a full disk, for
// as long as the run may go on.
func (r *recorder) StepStarted(ctx context.Context, step int, deploy bool, p ci.Process) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.store.StepStarted(ctx, r.run, r.attempt, step, deploy, p)
		if err == nil || ci.CodeOf(err) != ci.CodeUnavailable || ctx.Err() != nil {
			r.passing(PointStepBegins)
			return err
		}
		r.say.Error("step's start not recorded, and tried again", keyError, err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (r *recorder) StepFinished(ctx context.Context, step int, res ci.StepResult) error {
	r.passing(PointStepEnded)
	return r.store.StepFinished(ctx, r.run, r.attempt, step, res)
}

func (r *recorder) Output(step int, at time.Time, p []byte) error {
	if r.log == nil {
		return nil
	}
	if len(p) > 0 {
		r.midLine = p[len(p)-1] != '\n'
	}
	return r.log.Append(step, at, p, false)
}

func (r *recorder) Notice(step int, at time.Time, text string) error {
	if r.log == nil {
		return nil
	}
	line := text + "\n"
	if r.midLine {
		line = "\n" + line
	}
	r.midLine = false
	return r.log.Append(step, at, []byte(line), true)
}
