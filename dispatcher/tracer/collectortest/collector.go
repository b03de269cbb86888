// Package collectortest is a collector for tests: it takes spans by OTLP over
// HTTP as a real one does, and keeps them.
package collectortest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it arrived. Ids are hex, "" for none.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Kind              string // SERVER and so on
	Start, End        time.Time
	Attrs             map[string]string // values as text
	Failed            bool
	Says              string // of the status
	Links             []string
	Resource          map[string]string
}

// Collector is a collector on a port of this machine.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	requests int
	header   http.Header // of the newest request
	answer   func(w http.ResponseWriter, r *http.Request) bool
	changed  chan struct{}
}

// New starts a collector, which ends with the test.
func New(tb testing.TB) *Collector {
	c := &Collector{changed: make(chan struct{})}
	srv := httptest.NewServer(c)
	tb.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

// Answer lets f answer requests; where it returns false the collector does. Nil
// ends that.
func (c *Collector) Answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests++
	c.header = r.Header.Clone()
	answer := c.answer
	c.tell()
	c.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	spans, err := decode(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, spans...)
	c.tell()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Spans returns what has arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Requests returns how many came, and the headers of the newest.
func (c *Collector) Requests() (int, http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests, c.header
}

// Wait waits until ok holds for what has arrived, for up to 30 s.
func (c *Collector) Wait(tb testing.TB, what string, ok func([]Span) bool) []Span {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c.mu.Lock()
		spans, changed := slices.Clone(c.spans), c.changed
		c.mu.Unlock()
		if ok(spans) {
			return spans
		}
		select {
		case <-changed:
		case <-ctx.Done():
			for _, s := range spans {
				tb.Logf("%s %s under %s: %s %v %s", s.Trace, s.ID, s.Parent, s.Name, s.Attrs, s.Says)
			}
			tb.Fatalf("the collector has not got: %s", what)
		}
	}
}

// Named returns the spans of a name.
func Named(spans []Span, name string) (list []Span) {
	for _, s := range spans {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// decode reads an ExportTraceServiceRequest: its field 1 is resource_spans.
func decode(r *http.Request) ([]Span, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s with %q is not OTLP", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var list []Span
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num != 1 || typ != protowire.BytesType {
			return nil, fmt.Errorf("field %d of type %d", num, typ)
		}
		one, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return nil, protowire.ParseError(m)
		}
		b = b[n+m:]
		var rs tracepb.ResourceSpans
		if err := proto.Unmarshal(one, &rs); err != nil {
			return nil, err
		}
		for _, scope := range rs.ScopeSpans {
			for _, s := range scope.Spans {
				list = append(list, spanOf(s, rs.GetResource().GetAttributes()))
			}
		}
	}
	return list, nil
}

func spanOf(s *tracepb.Span, resource []*commonpb.KeyValue) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Name: s.Name, Kind: s.Kind.String()[len("SPAN_KIND_"):], Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Attrs: attrs(s.Attributes), Resource: attrs(resource), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Says: s.GetStatus().GetMessage(),
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(l.TraceId)+"/"+hex.EncodeToString(l.SpanId))
	}
	return out
}

func attrs(list []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			m[kv.Key] = fmt.Sprint(v.BoolValue)
		default:
			m[kv.Key] = fmt.Sprint(v)
		}
	}
	return m
}
