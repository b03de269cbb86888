package tracer

import (
	"context"
	"crypto/sha256"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"docket/store/ci"
)

// Kinds of things that have ids of their own.
const (
	kindReceipt = "receipt"
	kindRequest = "request"
	kindRun     = "run"
)

// identity makes the ids of traces and spans out of what they are about. They
// are the same in every life of the process, so that what one of them began
// and another ended is one trace, and nothing has to be stored for it. Two
// stores have different ones: a run's number is given in each.
type identity struct {
	store string // see store.Instance
}

func (n identity) hash(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("docket trace\x00" + n.store))
	for _, p := range parts { // none of them can hold a NUL
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

func (n identity) trace(kind, id string) trace.TraceID {
	sum := n.hash("trace", kind, id)
	return trace.TraceID(sum[:16])
}

func (n identity) span(parts ...string) trace.SpanID {
	sum := n.hash(append([]string{"span"}, parts...)...)
	return trace.SpanID(sum[:8])
}

// place is where spans belong.
type place struct {
	trace  trace.TraceID
	parent trace.SpanID // zero: a root
}

func (p place) under(parent trace.SpanID) place { return place{p.trace, parent} }

func (p place) context() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.trace, SpanID: p.parent, TraceFlags: trace.FlagsSampled})
}

// ofReceipt is where what a delivery led to belongs.
func (n identity) ofReceipt(id string) place {
	return place{n.trace(kindReceipt, id), n.span(kindReceipt, id)}
}

// ofRun is where the span of a run belongs: into the trace of the delivery or
// the request that started it, else into one of its own.
func (n identity) ofRun(r *ci.Run) place {
	switch r.Cause.Kind {
	case ci.CauseDelivery:
		return n.ofReceipt(r.Cause.Receipt)
	case ci.CauseRequest:
		return n.ofRequest(r.ID)
	}
	return place{trace: n.trace(kindRun, r.ID)}
}

func (n identity) ofRequest(run string) place {
	return place{n.trace(kindRun, run), n.span(kindRequest, run)}
}

// inRun is where the parts of a run belong.
func (n identity) inRun(r *ci.Run) place { return n.ofRun(r).under(n.span(kindRun, r.ID)) }

// chosen are the ids of the next span, which given hands to the SDK.
type chosen struct {
	trace trace.TraceID
	span  trace.SpanID
}

type chosenKey struct{}

// given is an IDGenerator of ids that were chosen before.
type given struct{}

var _ sdk.IDGenerator = given{}

func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c, _ := ctx.Value(chosenKey{}).(chosen)
	return c.trace, c.span
}

func (g given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}
