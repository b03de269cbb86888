package tracer

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of docket's own, where the conventions have none.
const (
	attrReceipt      = attribute.Key("docket.receipt")
	attrIntegration  = attribute.Key("docket.integration")
	attrEvent        = attribute.Key("docket.event")
	attrOutcome      = attribute.Key("docket.outcome")
	attrState        = attribute.Key("docket.run.state")
	attrCause        = attribute.Key("docket.run.cause")
	attrAttempt      = attribute.Key("docket.run.attempt")
	attrReason       = attribute.Key("docket.run.reason")
	attrSupersededBy = attribute.Key("docket.run.superseded_by")
	attrDeploy       = attribute.Key("docket.run.deploying")
	attrEntry        = attribute.Key("docket.notification.id")
	attrEntryKind    = attribute.Key("docket.notification.kind")
	attrEntryEvent   = attribute.Key("docket.notification.event")
	attrEntryState   = attribute.Key("docket.notification.state")
	attrEntryTry     = attribute.Key("docket.notification.attempt")
	attrEntryTries   = attribute.Key("docket.notification.attempts")
	attrEntryReason  = attribute.Key("docket.notification.reason")
)

// maxText bounds an attribute's text, in characters.
const maxText = 1024

// newSDK returns the OpenTelemetry tracer whose spans come to t. Its limits and
// its sampling are docket's own, and not the environment's; its resource has
// what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say.
func (t *Tracer) newSDK(version string) trace.Tracer {
	res, err := resource.New(context.Background(), resource.WithAttributes(
		semconv.ServiceName("docket"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(t.ids.store),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		t.log.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be taken in full; write KEY=VALUE,KEY=VALUE", keyError, err)
	}
	provider := sdk.NewTracerProvider(sdk.WithResource(res), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(given{}),
		sdk.WithSpanProcessor(ended{t}), sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxText, AttributeCountLimit: 64, EventCountLimit: 1, LinkCountLimit: 4,
			AttributePerEventCountLimit: 1, AttributePerLinkCountLimit: 1,
		}))
	return provider.Tracer("docket", trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
}

// ended hands spans on once they have ended.
type ended struct{ t *Tracer }

func (ended) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (e ended) OnEnd(s sdk.ReadOnlySpan) {
	select {
	case e.t.spans <- s:
	default:
		e.t.dropped.full.Add(1)
	}
}

func (ended) Shutdown(context.Context) error   { return nil }
func (ended) ForceFlush(context.Context) error { return nil }

// span is all of a span, made after the fact.
type span struct {
	at       place
	id       trace.SpanID
	name     string
	kind     trace.SpanKind // default internal
	from, to time.Time
	attrs    []attribute.KeyValue
	links    []trace.SpanContext
	fault    string // an error's class, see fail; "" for none
	says     string // of the error, for people
}

// fail makes the span one of an error. The class is one of few words.
func (s *span) fail(class, says string) { s.fault, s.says = class, says }

// emit makes a span of the trace if that is sampled.
func (t *Tracer) emit(s span) {
	if !t.sampled(s.at.trace) {
		return
	}
	ctx := context.WithValue(context.Background(), chosenKey{}, chosen{s.at.trace, s.id})
	if s.at.parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, s.at.context())
	}
	if s.to.Before(s.from) { // clocks are set, and records have milliseconds
		s.to = s.from
	}
	if s.fault != "" {
		s.attrs = append(s.attrs, semconv.ErrorTypeKey.String(s.fault))
	}
	links := make([]trace.Link, len(s.links))
	for i, l := range s.links {
		links[i] = trace.Link{SpanContext: l}
	}
	_, made := t.sdk.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attrs...), trace.WithLinks(links...))
	if s.fault != "" {
		made.SetStatus(codes.Error, s.says)
	}
	made.End(trace.WithTimestamp(s.to))
}

// texts are attributes whose text is known.
func texts(pairs ...attribute.KeyValue) []attribute.KeyValue {
	kept := pairs[:0]
	for _, p := range pairs {
		if p.Value.AsString() != "" {
			kept = append(kept, p)
		}
	}
	return kept
}
