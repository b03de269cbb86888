package scheduler

import (
	"context"
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
	midLine bool // the last output did not end its line
}

var _ runner.Recorder = (*recorder)(nil)

func (r *recorder) StepStarted(ctx context.Context, step int, deploy bool, p ci.Process) error {
	err := r.store.StepStarted(ctx, r.run, r.attempt, step, deploy, p)
	r.passing(PointStepBegins)
	return err
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
