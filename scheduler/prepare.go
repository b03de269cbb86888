package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"docket/scheduler/pipeline"
	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
)

// An inbox job is tried this often, after waits that double from jobFirstWait
// to jobMaxWait: some 20 minutes in all. Then its run fails.
const (
	jobTries     = 12
	jobFirstWait = 2 * time.Second
	jobMaxWait   = 5 * time.Minute
)

// prepare hands due inbox jobs to workers. next is when another one is due.
func (s *Scheduler) prepare(work context.Context) (next time.Time, err error) {
	s.mu.Lock()
	busy := len(s.jobs)
	s.mu.Unlock()
	runs, next, err := s.Store.Jobs(s.Now(), s.Workers+busy)
	if err != nil {
		return next, err
	}
	for _, r := range runs {
		s.startJob(work, r)
	}
	return next, nil
}

func (s *Scheduler) startJob(work context.Context, r ci.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[r.ID] || len(s.jobs) >= s.Workers || work.Err() != nil {
		return
	}
	s.jobs[r.ID] = true
	s.workers.Go(func() {
		s.doJob(work, r)
		s.mu.Lock()
		delete(s.jobs, r.ID)
		s.mu.Unlock()
		s.lookAgain()
	})
}

// doJob finds out what a run still needs, and freezes it.
func (s *Scheduler) doJob(ctx context.Context, r ci.Run) {
	log := s.about(&r)
	res, err := s.resolve(ctx, r)
	if err != nil && ctx.Err() == nil {
		tries := r.Internal.Job.Attempts + 1
		if tries < jobTries {
			wait := min(jobFirstWait<<min(tries-1, 20), jobMaxWait)
			log.Warn("preparing failed, and is repeated", keyTry, tries, keyWait, wait, keyError, err)
			if err := s.Store.DelayJob(ctx, r.ID, s.Now().Add(wait), ci.MessageOf(err)); err != nil {
				log.Error("delay of an inbox job not recorded", keyError, err)
			}
			return
		}
		res = store.Resolution{Failed: fmt.Sprintf("could not be prepared in %d tries: %s", jobTries, ci.MessageOf(err))}
	} else if err != nil {
		return // shut down: the next start does it
	}
	if _, err := s.Store.ResolveJob(ctx, r.ID, res); err != nil {
		log.Error("inbox job not recorded, and repeated", keyError, err)
	}
}

// resolve does a job's work. An error may be gone next time; what is final is
// in the resolution.
func (s *Scheduler) resolve(ctx context.Context, r ci.Run) (res store.Resolution, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = ci.Wrap(ci.CodeInternal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "docket met a fault of its own while preparing")
		}
	}()
	spec, err := s.Store.Spec(r.Spec)
	if err != nil {
		return res, err
	}
	commit := r.Source.Commit
	if job := r.Internal.Job; job.Resolve && commit == "" {
		if job.Object != "" {
			commit, err = s.Runner.Peel(ctx, spec.CloneURL, r.Source.Ref, job.Object)
		} else {
			commit, err = s.Runner.Resolve(ctx, spec.CloneURL, r.Source.Ref)
		}
		if err != nil {
			return giveUp(err)
		}
		res.Commit = commit
	}
	if job := r.Internal.Job; job.Paths != nil {
		goesOn, reason, err := s.filterPaths(ctx, &r, spec.CloneURL, commit)
		if err != nil {
			return giveUp(err)
		}
		if !goesOn {
			res.Skipped = reason
			return res, nil
		}
		res.Note = reason
	}
	if job := r.Internal.Job; job.Pipeline != "" {
		full, err := s.readPipeline(ctx, r, spec, commit, job.Pipeline)
		if err != nil {
			return giveUp(err)
		}
		res.Spec = &full
	}
	return res, nil
}

// filterPaths decides by the files that a run's commit changed whether it goes
// on. What cannot be compared counts as changed.
func (s *Scheduler) filterPaths(ctx context.Context, r *ci.Run, cloneURL, commit string) (goesOn bool, reason string, err error) {
	job := r.Internal.Job
	span := runner.Span{Commit: commit, Ref: r.Source.Ref, Base: "refs/heads/" + job.Base}
	if r.Source.PullRequest == nil {
		span.Before = r.Source.Before
	}
	var files []string
	why := "the project has no default_branch to compare a new branch with"
	if span.Before != "" || job.Base != "" {
		files, why, err = s.Runner.Changed(ctx, r.Project, cloneURL, span)
	}
	switch {
	case err != nil:
		return false, "", err
	case why != "":
		return true, why + ", so it counts as matching " + job.PathsKey + "'s paths", nil
	}
	goesOn, reason = pipeline.MatchPaths(*job.Paths, job.PathsKey, files)
	return goesOn, reason, nil
}

// readPipeline completes a spec from the pipeline file at the run's commit. A
// fork's pull request has no say in what runs: its base's file is used.
func (s *Scheduler) readPipeline(ctx context.Context, r ci.Run, spec ci.Spec, commit, path string) (ci.Spec, error) {
	ref := r.Source.Ref
	if pr := r.Source.PullRequest; r.Fork && pr != nil {
		ref = "refs/heads/" + pr.Base
		base, err := s.Runner.Resolve(ctx, spec.CloneURL, ref)
		if err != nil {
			return spec, err
		}
		commit = base
	}
	text, err := s.Runner.ReadFile(ctx, r.Project, spec.CloneURL, ref, commit, path, pipeline.MaxFile)
	if err != nil {
		return spec, err
	}
	f, err := pipeline.ParseFile(path, text)
	if err != nil {
		return spec, err
	}
	return pipeline.Apply(spec, f), nil
}

// giveUp tells what will never be different from what may be gone next time.
func giveUp(err error) (store.Resolution, error) {
	var e *ci.Error
	if errors.As(err, &e) {
		switch e.Code {
		case ci.CodeNotFound, ci.CodeInvalid, ci.CodeTooLarge, ci.CodeMalformed:
			return store.Resolution{Failed: e.Message}, nil
		}
	}
	return store.Resolution{}, err
}
