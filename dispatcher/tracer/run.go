package tracer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"docket/store"
	"docket/store/ci"
)

// Classes of errors of runs and steps, as error.type has them.
const (
	faultStep        = "step_failed"
	faultTimeout     = "timeout"
	faultCheckout    = "checkout_failed"
	faultPrepare     = "prepare_failed"
	faultInterrupted = "interrupted"
)

// maxOpen bounds how many runs are remembered that have not ended.
const maxOpen = 10_000

// seen is what is remembered of a run that has not ended.
type seen struct {
	since time.Time // when it came to its present state
}

// ofRun makes the spans of a run that came to another state: of the time that
// it waited, of each attempt with its steps, and at its end of the run itself.
func (t *Tracer) ofRun(at time.Time, c *store.RunChange) {
	r := &c.Run
	if c.Lost {
		t.ofLost(at, r)
		return
	}
	since := t.since(r)
	switch c.From {
	case ci.Preparing, ci.Held, ci.Queued:
		t.ofWait(r, c.From, since, at)
	case ci.Running:
		if r.State.Final() {
			t.ofAttempt(r, at)
		}
	}
	if !r.State.Final() {
		if _, known := t.open[r.ID]; known || len(t.open) < maxOpen {
			if c.From == "" {
				at = r.CreatedAt.Time
			}
			t.open[r.ID] = seen{since: at}
		}
		return
	}
	delete(t.open, r.ID)
	t.ofEnd(r)
}

// since returns when a run came to the state that it leaves. From before this
// life only its creation is on record, so that where it had been prepared,
// approved or tried in another one, the wait is told as longer or shorter than
// it was.
func (t *Tracer) since(r *ci.Run) time.Time {
	if s, ok := t.open[r.ID]; ok {
		return s.since
	}
	if r.Attempt > 1 {
		return t.began
	}
	return r.CreatedAt.Time
}

// ofWait is the time in which something had to happen before a run could begin.
func (t *Tracer) ofWait(r *ci.Run, state ci.State, from, to time.Time) {
	s := span{at: t.ids.inRun(r), name: waitName(state), from: from, to: to, attrs: t.runID(r)}
	s.id = t.ids.span(kindRun, r.ID, "wait", string(state), strconv.Itoa(r.Attempt))
	if state == ci.Queued {
		s.attrs = append(s.attrs, semconv.CICDPipelineRunStatePending)
	}
	if state == ci.Preparing && r.State == ci.Failed {
		s.fail(faultPrepare, r.ReasonLine())
	}
	t.emit(s)
}

// waitName is what a run does in a state that is not its last.
func waitName(s ci.State) string {
	switch s {
	case ci.Preparing:
		return "prepare"
	case ci.Held:
		return "wait for approval"
	}
	return "queue"
}

// ofLost is how the loss of a run's process was settled, and, where the run
// begins again, the attempt that was lost: one that ends the run is told there.
func (t *Tracer) ofLost(at time.Time, r *ci.Run) {
	s := span{at: t.ids.inRun(r), name: "recover", from: t.began, to: at, attrs: append(t.runID(r), attrAttempt.Int(r.Attempt))}
	s.id = t.ids.span(kindRun, r.ID, "recover", strconv.Itoa(r.Attempt))
	t.emit(s)
	if _, again := t.open[r.ID]; again { // it is queued once more
		r.State, r.Reason = ci.Interrupted, "docket stopped while it ran"
		t.ofAttempt(r, at)
	}
}

// ofAttempt makes the spans of one attempt: the checkout, which is all that
// comes before the first step, and the steps.
func (t *Tracer) ofAttempt(r *ci.Run, end time.Time) {
	checkout := span{from: r.StartedAt.Time, to: end}
	begun := false
	for i := range r.Steps {
		st := &r.Steps[i]
		if st.StartedAt.IsZero() {
			continue
		}
		if !begun {
			begun, checkout.to = true, st.StartedAt.Time
		}
		s := span{name: "step " + st.Name, from: st.StartedAt.Time, to: st.FinishedAt.Time}
		if st.FinishedAt.IsZero() {
			s.to = end
		}
		t.task(&s, r, st.Name, strconv.Itoa(i), stepResult(r, st))
		if st.ExitCode != nil {
			s.attrs = append(s.attrs, semconv.ProcessExitCode(*st.ExitCode))
		}
		t.emit(s)
	}
	checkout.name = "checkout"
	res := result{name: "success"}
	if !begun {
		if res = runResult(r); res.fault == faultStep {
			res.fault = faultCheckout
		}
	}
	t.task(&checkout, r, "checkout", "checkout", res)
	t.emit(checkout)
}

// task fills in what the conventions want of a task of a pipeline.
func (t *Tracer) task(s *span, r *ci.Run, name, key string, res result) {
	attempt := strconv.Itoa(r.Attempt)
	s.at, s.id = t.ids.inRun(r), t.ids.span(kindRun, r.ID, "task", attempt, key)
	s.attrs = append(t.runID(r), attrAttempt.Int(r.Attempt), semconv.CICDPipelineTaskName(name),
		semconv.CICDPipelineTaskRunID(r.ID+"/"+attempt+"/"+key), semconv.CICDPipelineTaskRunResultKey.String(res.name))
	if cfg := t.config(); cfg.PublicURL != "" {
		s.attrs = append(s.attrs, semconv.CICDPipelineTaskRunURLFull(cfg.RunURL(r.ID)))
	}
	s.fault, s.says = res.fault, res.says
}

// ofEnd is the run itself, from when it was made to its end.
func (t *Tracer) ofEnd(r *ci.Run) {
	res := runResult(r)
	s := span{
		at: t.ids.ofRun(r), id: t.ids.span(kindRun, r.ID), name: "RUN " + r.Project, kind: trace.SpanKindServer,
		from: r.CreatedAt.Time, to: r.FinishedAt.Time, fault: res.fault, says: res.says, attrs: append(t.runAttrs(r),
			semconv.CICDPipelineResultKey.String(res.name), attrAttempt.Int(r.Attempt)),
	}
	if r.Internal.Deploying {
		s.attrs = append(s.attrs, attrDeploy.Bool(true))
	}
	s.links = t.causes(r)
	t.emit(s)
}

// causes are what a run with a trace of its own goes back to: the delivery
// that asked for it, and the run that it repeats.
func (t *Tracer) causes(r *ci.Run) (list []trace.SpanContext) {
	if r.Cause.Kind == ci.CauseDelivery {
		return nil
	}
	if r.Cause.Receipt != "" {
		list = append(list, t.ids.ofReceipt(r.Cause.Receipt).context())
	}
	if r.Cause.Run != "" {
		if old, err := t.store.Run(r.Cause.Run); err == nil {
			list = append(list, t.ids.inRun(&old).context())
		}
	}
	return list
}

func (t *Tracer) runID(r *ci.Run) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.CICDPipelineName(r.Project), semconv.CICDPipelineRunID(r.ID)}
}

// runAttrs are what a run is and builds. Who pushed and what they wrote is
// left out.
func (t *Tracer) runAttrs(r *ci.Run) []attribute.KeyValue {
	cfg := t.config()
	owner, name, _ := strings.Cut(r.Source.Repository, "/")
	head, kind := r.Source.Branch, semconv.VCSRefHeadTypeBranch
	if r.Source.Tag != "" {
		head, kind = r.Source.Tag, semconv.VCSRefHeadTypeTag
	}
	provider, url, base, change := "", "", "", ""
	if in := cfg.Integration(r.Internal.Integration); in != nil {
		provider = in.Provider
	}
	if cfg.PublicURL != "" {
		url = cfg.RunURL(r.ID)
	}
	if pr := r.Source.PullRequest; pr != nil {
		head, base, change = pr.Head, pr.Base, strconv.Itoa(pr.Number)
	}
	return append(texts(semconv.CICDPipelineActionNameRun, semconv.CICDPipelineRunURLFull(url),
		semconv.VCSProviderNameKey.String(provider), semconv.VCSOwnerName(owner), semconv.VCSRepositoryName(name),
		semconv.VCSRefHeadName(head), kind, semconv.VCSRefHeadRevision(r.Source.Commit), semconv.VCSRefBaseName(base), semconv.VCSChangeID(change),
		attrState.String(string(r.State)), attrCause.String(r.Cause.Kind), attrEvent.String(r.Cause.Event), attrReceipt.String(r.Cause.Receipt),
		attrReason.String(r.ReasonLine()), attrSupersededBy.String(r.SupersededBy)), t.runID(r)...)
}

// result is how a run or a step went, in the conventions' words.
type result struct {
	name        string // of cicd.pipeline.result and cicd.pipeline.task.run.result
	fault, says string // see span
}

// runResult judges a run that has ended.
func runResult(r *ci.Run) result {
	says := r.ReasonLine()
	switch r.State {
	case ci.Succeeded:
		return result{name: "success"}
	case ci.Cancelled, ci.Superseded:
		if r.Internal.Skip {
			return result{name: "skip"}
		}
		return result{name: "cancellation"}
	case ci.Interrupted:
		return result{"error", faultInterrupted, says}
	}
	if r.Reason == ci.ReasonTimedOut {
		return result{"timeout", faultTimeout, says}
	}
	for i := range r.Steps {
		if st := &r.Steps[i]; st.State == ci.StepFailed {
			if says == "" {
				says = stepSays(st)
			}
			return result{"failure", faultStep, says}
		}
	}
	if r.Attempt == 0 {
		return result{"error", faultPrepare, says}
	}
	return result{"error", faultCheckout, says}
}

func stepResult(r *ci.Run, st *ci.StepResult) result {
	switch st.State {
	case ci.StepSucceeded:
		return result{name: "success"}
	case ci.StepFailed:
		if r.Reason == ci.ReasonTimedOut {
			return result{"timeout", faultTimeout, st.Reason}
		}
		return result{"failure", faultStep, stepSays(st)}
	}
	if r.State == ci.Interrupted {
		return result{"error", faultInterrupted, r.ReasonLine()}
	}
	return result{name: "cancellation"}
}

func stepSays(st *ci.StepResult) string {
	switch {
	case st.Reason != "":
		return st.Reason
	case st.ExitCode != nil:
		return fmt.Sprintf("the step %q ended with exit code %d", st.Name, *st.ExitCode)
	}
	return fmt.Sprintf("the step %q failed", st.Name)
}
