package scheduler

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"docket/scheduler/runner"
	"docket/store"
	"docket/store/ci"
)

// claim takes queued runs for as long as there is room, and carries each.
func (s *Scheduler) claim(ctx, work context.Context) error {
	if !s.enoughSpace() || !s.enoughDescriptors() {
		return nil
	}
	limit := s.Config().Limits.ConcurrentRuns
	for ctx.Err() == nil {
		s.mu.Lock()
		full := len(s.carrying) >= limit
		s.mu.Unlock()
		if full {
			return nil
		}
		st, err := s.Store.AnyQueued()
		if err != nil || !st {
			return err
		}
		r, ok, err := s.Store.Claim(ctx, s.Boot, limit)
		if err != nil {
			return err
		}
		if ok {
			s.start(work, r)
			continue
		}
		// A push that came since the scan began: who gives way comes first.
		if scopes, err := s.Store.Scopes(1); err != nil || len(scopes) == 0 {
			return err
		}
		if err := s.supersede(ctx); err != nil {
			return err
		}
	}
	return nil
}

// neededDescriptors is how many files a run may have to open at its start.
const neededDescriptors = 16

// enoughDescriptors looks whether a run that starts could open its files. It
// waits until it can: one that fails for want of them has not done its work.
func (s *Scheduler) enoughDescriptors() bool {
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for range neededDescriptors {
		f, err := os.Open(os.DevNull)
		if err != nil {
			if !s.fewFiles {
				s.Log.Warn("no run starts: no more files can be opened; raise the limit (LimitNOFILE= in a systemd unit)", keyError, err)
			}
			s.fewFiles = true
			return false
		}
		open = append(open, f)
	}
	s.fewFiles = false
	return true
}

// enoughSpace looks whether a run may start. Intake goes on in any case.
func (s *Scheduler) enoughSpace() bool {
	need := s.Config().Limits.FreeSpace
	if need <= 0 {
		s.lowSpace.Store(false)
		return true
	}
	free, err := s.FreeSpace()
	if err != nil {
		s.Log.Error("free space cannot be read, so no run starts", keyError, err)
	}
	low := err != nil || free < need
	if low && !s.lowSpace.Swap(true) {
		s.Log.Warn("no run starts: too little free space", keyFree, free, keyFreeSpace, need)
	} else if !low && s.lowSpace.Swap(false) {
		s.Log.Info("there is enough free space again", keyFree, free)
	}
	return !low
}

func (s *Scheduler) start(work context.Context, r ci.Run) {
	ctx, cancel := context.WithCancelCause(work)
	s.mu.Lock()
	s.carrying[r.ID] = cancel
	s.mu.Unlock()
	s.workers.Go(func() {
		s.carry(ctx, r)
		cancel(nil)
		s.mu.Lock()
		delete(s.carrying, r.ID)
		s.mu.Unlock()
		s.lookAgain()
	})
}

// carry takes a claimed run to its end, and the end into the store.
func (s *Scheduler) carry(ctx context.Context, r ci.Run) {
	log := s.about(&r).With(keyAttempt, r.Attempt)
	log.Info("run started", keyCommit, r.Source.Commit)
	s.Passing(PointClaimed)
	res := s.carryOut(ctx, r)
	if res.State == ci.Interrupted {
		// Refused a deploy step because it was asked to stop: that is the reason.
		if now, err := s.Store.Run(r.ID); err == nil && now.CancelRequested != nil {
			res.State, res.Reason = now.CancelRequested.Into, now.CancelRequested.Reason
		}
	}
	end := store.Result{State: res.State, Reason: res.Reason, Steps: res.Steps}
	s.Passing(PointRunEnded)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := s.Store.FinishRun(context.WithoutCancel(ctx), r.ID, r.Attempt, end)
		if err == nil {
			s.Passing(PointRunFinished)
			log.Info("run ended", keyState, res.State, keyReason, res.Reason)
			return
		}
		if ci.CodeOf(err) != ci.CodeUnavailable {
			log.Error("run's end not recorded", keyState, res.State, keyError, err)
			return
		}
		if ctx.Err() != nil && wait >= 5*time.Second {
			log.Error("run's end not recorded before the shutdown; the next start settles it", keyError, err)
			return
		}
		log.Error("run's end not recorded, and tried again", keyState, res.State, keyError, err)
		time.Sleep(wait)
	}
}

// carryOut gathers what a run needs and lets the runner carry it.
func (s *Scheduler) carryOut(ctx context.Context, r ci.Run) (res runner.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.about(&r).Error("panic in a run", keyPanic, p, keyStack, string(debug.Stack()))
			res = runner.Result{State: ci.Failed, Reason: "docket met a fault of its own; the server's log has the cause"}
		}
	}()
	failed := func(format string, args ...any) runner.Result {
		return runner.Result{State: ci.Failed, Reason: fmt.Sprintf(format, args...)}
	}
	spec, err := s.Store.Spec(r.Spec)
	if err != nil {
		return failed("its frozen spec cannot be read")
	}
	work := runner.Work{Run: r, Spec: spec, URL: s.Config().RunURL(r.ID), LogLimit: s.Config().Limits.Log}
	if work.Secrets, err = s.secrets(&r, &spec); err != nil {
		return failed("%s", ci.MessageOf(err))
	}
	if work.Event, err = s.event(&r); err != nil {
		return failed("its delivery cannot be read: %s", ci.MessageOf(err))
	}
	rec := &recorder{store: s.Store, run: r.ID, attempt: r.Attempt, passing: s.Passing, say: s.about(&r)}
	if rec.log, err = s.Store.Logs().Create(r.ID, r.Attempt); err != nil {
		s.about(&r).Error("log cannot be written, and the run goes on without", keyError, err)
	} else {
		defer rec.log.Close()
	}
	return s.Runner.Carry(ctx, work, rec)
}

// secrets returns the values of the secrets that the frozen spec names, as
// configured today. A fork's run gets none.
func (s *Scheduler) secrets(r *ci.Run, spec *ci.Spec) (map[string]ci.Secret, error) {
	if r.Fork || len(spec.Secrets) == 0 {
		return nil, nil
	}
	p := s.Config().Project(r.Project)
	values := map[string]ci.Secret{}
	for _, name := range spec.Secrets {
		if p == nil || p.Secrets[name].IsZero() {
			return nil, ci.Errorf(ci.CodeInvalid, "secret %s of project %s is not configured any more", name, r.Project)
		}
		values[name] = p.Secrets[name]
	}
	return values, nil
}

// event returns the payload of the delivery behind a run, nil if there is none.
func (s *Scheduler) event(r *ci.Run) ([]byte, error) {
	_, receipt := r.Told()
	if receipt == "" {
		return nil, nil
	}
	id, err := ci.ParseReceiptID(receipt)
	if err != nil {
		return nil, err
	}
	header, body, err := s.Store.ReceiptBody(id)
	if ci.CodeOf(err) == ci.CodeNotFound {
		return nil, nil // retention took it
	}
	if err == nil && strings.HasPrefix(strings.ToLower(header["Content-Type"]), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		return []byte(form.Get("payload")), err
	}
	return body, err
}
