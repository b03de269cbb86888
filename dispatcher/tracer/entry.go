package tracer

import (
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"docket/store"
	"docket/store/ci"
)

// Classes of errors of notifications, beside the status of an answer.
const (
	faultUnanswered = "unanswered"
	faultUnknown    = "unknown"
	faultDead       = "dead"
)

// ofEntry makes the spans of a notification: of each attempt when it is over,
// and of the whole when it was sent, given up or skipped.
func (t *Tracer) ofEntry(at time.Time, c *store.EntryChange) {
	e := &c.Entry
	run, err := t.store.Run(e.Run)
	if err != nil {
		return // retention took it, or it cannot be read: there is nothing to tell it under
	}
	// One that a person brought back begins anew.
	id := t.ids.span("notification", e.ID, strconv.FormatInt(e.FirstAttemptAt.UnixMilli(), 10))
	in := t.ids.inRun(&run)
	if c.Try != store.NoTry {
		t.ofTry(in.under(id), at, c)
		return
	}
	s := span{
		at: in, id: id, name: "notify " + e.Kind, from: e.CreatedAt.Time, to: at,
		attrs: append(t.entryAttrs(e), attrEntryState.String(string(e.State)), attrEntryTries.Int(e.Attempts)),
	}
	if e.Retried && !e.FirstAttemptAt.IsZero() {
		s.from = e.FirstAttemptAt.Time
	}
	switch e.State {
	case ci.OutboxDead:
		s.fail(faultDead, "given up; the entry says why")
	case ci.OutboxSkipped:
		s.attrs = append(s.attrs, attrEntryReason.String(e.LastError))
	}
	t.emit(s)
}

// ofTry is one attempt. What a receiver wrote in its answer is left out.
func (t *Tracer) ofTry(in place, at time.Time, c *store.EntryChange) {
	e, status := &c.Entry, c.Result.Status
	s := span{
		at: in, id: t.ids.span("attempt", e.ID, strconv.Itoa(e.Attempts)), name: "send " + e.Kind, kind: trace.SpanKindClient,
		from: e.AttemptedAt.Time, to: at, attrs: append(t.entryAttrs(e), attrEntryTry.Int(e.Attempts)),
	}
	if host := t.hostOf(e); host != "" {
		s.attrs = append(s.attrs, semconv.ServerAddress(host))
	}
	if status > 0 {
		s.attrs = append(s.attrs, semconv.HTTPResponseStatusCode(status))
	}
	if e.Attempts > 1 {
		s.attrs = append(s.attrs, semconv.HTTPRequestResendCount(e.Attempts-1))
	}
	failed := c.Result.State == ci.OutboxPending || c.Result.State == ci.OutboxDead
	switch {
	case c.Try == store.TryLost:
		s.to = s.from
		s.fail(faultUnknown, "docket ended before the answer was on record, so it is sent again")
	case failed && status > 0:
		s.fail(strconv.Itoa(status), "the receiver answered "+strconv.Itoa(status))
	case failed:
		s.fail(faultUnanswered, c.Result.Error)
	}
	t.emit(s)
}

func (t *Tracer) entryAttrs(e *ci.OutboxEntry) []attribute.KeyValue {
	return texts(attrEntry.String(e.ID), attrEntryKind.String(e.Kind), attrEntryEvent.String(e.Event),
		attrIntegration.String(e.Integration), semconv.CICDPipelineRunID(e.Run))
}

// hostOf returns the host that is told, "" where that is a secret's: the rest
// of a receiver's address may be one too.
func (t *Tracer) hostOf(e *ci.OutboxEntry) string {
	address := e.Target
	if ci.IsStatus(e.Kind) {
		in := t.config().Integration(e.Integration)
		if in == nil {
			return ""
		}
		address = in.APIURL
	}
	u, err := url.Parse(address)
	if err != nil || e.Kind == ci.OutboxSlack {
		return ""
	}
	return u.Hostname()
}
