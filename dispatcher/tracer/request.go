package tracer

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"docket/store/ci"
)

// ofHandled makes the spans of a request: the first that a delivery or a run
// is known by is the root of its trace, later ones lie under that.
func (t *Tracer) ofHandled(h *ci.Handled) {
	root := t.ids.ofReceipt(h.Receipt)
	if h.Receipt == "" {
		root = t.ids.ofRequest(h.Run)
	}
	s := span{
		at: root.under(trace.SpanID{}), id: root.parent, name: h.Method + " " + h.Route, kind: trace.SpanKindServer, from: h.Began, to: h.Ended,
		attrs: texts(semconv.HTTPRequestMethodKey.String(h.Method), semconv.HTTPRoute(h.Route), attrReceipt.String(h.Receipt),
			semconv.CICDPipelineRunID(h.Run), attrIntegration.String(h.Integration), attrEvent.String(h.Event), attrOutcome.String(h.Outcome)),
	}
	s.attrs = append(s.attrs, semconv.HTTPResponseStatusCode(h.Status))
	if !h.First {
		s.at = root
		rand.Read(s.id[:]) // crypto/rand never fails
	}
	if h.Status >= http.StatusInternalServerError {
		s.fail("unavailable", "it was not put on record, and nothing was promised")
	}
	if caller := callerOf(h.Traceparent); caller.IsValid() {
		s.links = append(s.links, caller)
	}
	t.emit(s)
	from := h.Began
	for _, part := range []struct {
		name string
		to   time.Time
	}{{"verify", h.Verified}, {"judge", h.Judged}, {"commit", h.Committed}} {
		if part.to.IsZero() {
			continue
		}
		p := span{at: root.under(s.id), name: part.name, from: from, to: part.to}
		p.id = t.ids.span(s.id.String(), part.name)
		if part.name == "commit" && s.fault != "" {
			p.fail(s.fault, s.says)
		}
		t.emit(p)
		from = part.to
	}
}

// callerOf reads a traceparent as the W3C has it; invalid where it is none.
func callerOf(s string) trace.SpanContext {
	if s == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s})
	return trace.SpanContextFromContext(ctx)
}
