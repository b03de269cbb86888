package dispatcher

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"docket/store"
	"docket/store/ci"
)

// Log keys.
const (
	keyEntry   = "entry"
	keyKind    = "kind"
	keyRun     = "run"
	keyEntries = "notifications"
	keyReceipt = "receipt"
	keyTarget  = "target"
	keyAttempt = "attempt"
	keyReason  = "reason"
	keyNext    = "next"
	keyErr     = "error"
	keyStack   = "stack"
)

// about names an entry in a line of the log: with its run, and the delivery
// that made that.
func (d *Dispatcher) about(e ci.OutboxEntry) []any {
	attrs := []any{keyEntry, e.ID, keyKind, e.Kind, keyRun, e.Run, keyTarget, e.Target, keyAttempt, e.Attempts}
	if run, err := d.store.Run(e.Run); err == nil && run.Cause.Receipt != "" {
		attrs = append(attrs, keyReceipt, run.Cause.Receipt)
	}
	return attrs
}

// verdict is what the loop learns from an attempt.
type verdict int

const (
	verdictAborted    verdict = iota // ended without a record
	verdictQuick                     // recorded; it took the receiver little time
	verdictSlow                      // recorded; it took long, or there was no answer
	verdictNotSent                   // it was not to be sent after all
	verdictUnwritable                // the store takes no writes
)

// attempt carries one entry once: recorded, sent, recorded. It runs at the top
// of a goroutine and so is the one that logs. The end of ctx does not cut an
// attempt short that has begun; its own time-out does.
func (d *Dispatcher) attempt(ctx context.Context, due ci.OutboxEntry) verdict {
	work := context.WithoutCancel(ctx)
	e, ok, err := d.store.BeginAttempt(work, due.ID)
	if err != nil {
		d.log.Error("an attempt cannot be recorded, so nothing is sent", append(d.about(due), keyErr, err)...)
		if ci.CodeOf(err) == ci.CodeUnavailable {
			return verdictUnwritable
		}
		return verdictNotSent
	}
	if !ok {
		if e.State == ci.OutboxSkipped {
			d.count(due.Kind, ci.OutboxSkipped)
		}
		return verdictNotSent
	}
	if d.beforeSend != nil {
		d.beforeSend(e)
	}
	began := d.now()
	r := d.send(work, e)
	took := d.now().Sub(began)
	if d.afterSend != nil {
		d.afterSend(e)
	}
	rec, hold := settle(e, r, d.now(), d.jitter())
	rec.Status = r.Status
	if !d.record(ctx, e, rec, hold) {
		return verdictAborted
	}
	d.count(e.Kind, rec.State)
	d.logOutcome(e, rec)
	if took > d.timeout/3 {
		return verdictSlow
	}
	return verdictQuick
}

// send makes an adapter's panic a result like any other.
func (d *Dispatcher) send(ctx context.Context, e ci.OutboxEntry) (r Result) {
	a := d.adapters[e.Kind]
	if a == nil {
		return Result{Outcome: Dead, Detail: "this version of docket does not know notifications of the kind " + e.Kind}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("sending met a fault of docket's own", append(d.about(e), keyErr, p, keyStack, string(debug.Stack()))...)
			r = Result{Outcome: Retry, Detail: "docket met a fault of its own while sending; the server's log has the cause"}
		}
	}()
	return a.Send(ctx, e)
}

// record writes the outcome, and the hold before it: killed between the two,
// the entry is sent again, but not before the receiver wants it. While the
// store takes no writes it goes on trying, since sending again what has
// arrived is worse than waiting; the end of ctx leaves one last try.
func (d *Dispatcher) record(ctx context.Context, e ci.OutboxEntry, rec store.AttemptResult, hold time.Time) bool {
	work := context.WithoutCancel(ctx)
	for last := false; ; {
		err := d.write(work, e, rec, hold)
		if err == nil {
			return true
		}
		d.log.Error("an outcome cannot be recorded", append(d.about(e), keyErr, err)...)
		if last || ci.CodeOf(err) != ci.CodeUnavailable {
			return false
		}
		wait := time.NewTimer(d.scan)
		select {
		case <-ctx.Done():
			last = true
		case <-wait.C:
		}
		wait.Stop()
	}
}

func (d *Dispatcher) write(ctx context.Context, e ci.OutboxEntry, rec store.AttemptResult, hold time.Time) error {
	if !hold.IsZero() {
		if err := d.store.Hold(ctx, e.Receiver(), hold, rec.Error); err != nil {
			return err
		}
	}
	return d.store.FinishAttempt(ctx, e.ID, e.Attempts, rec)
}

func (d *Dispatcher) logOutcome(e ci.OutboxEntry, rec store.AttemptResult) {
	switch rec.State {
	case ci.OutboxSent:
		if d.log.Enabled(context.Background(), slog.LevelDebug) {
			d.log.Debug("notification sent", d.about(e)...)
		}
	case ci.OutboxPending:
		d.log.Warn("notification failed and will be tried again", append(d.about(e), keyReason, rec.Error, keyNext, rec.NextAt)...)
	case ci.OutboxSkipped:
		d.log.Info("notification skipped", append(d.about(e), keyReason, rec.Error)...)
	case ci.OutboxDead:
		d.log.Error("notification given up", append(d.about(e), keyReason, rec.Error)...)
	}
}
