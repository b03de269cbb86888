package tracer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"docket/store/ci"
)

const (
	defaultTimeout = 10 * time.Second // of one request
	maxAnswer      = 64 << 10         // how much of an answer is read, in bytes
)

// client speaks OTLP over HTTP in binary protobuf. The library's own client
// brings gRPC along, which makes the program a fifth larger, and takes its
// address and headers from the environment too.
type client struct {
	http    *http.Client
	version string
	timeout time.Duration
}

func newClient(base *http.Client, version string) *client {
	var transport http.RoundTripper
	if base != nil {
		transport = base.Transport
	}
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	return &client{version: version, timeout: defaultTimeout, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// refusal is an answer other than 2xx, or a fault on the way to one. Its text
// is docket's own: an answer may repeat what it was asked with, headers too.
type refusal struct {
	says  string
	final bool          // another try would meet the same
	wait  time.Duration // what the collector asked for; 0: it did not
}

func (r *refusal) Error() string { return r.says }

// Probe sends an empty request, which a collector takes like any other. It
// returns nil, or one sentence about what is wrong.
func Probe(ctx context.Context, cfg *ci.Traces, version string) error {
	c := newClient(nil, version)
	defer c.close()
	return upload{c, cfg, new(int64)}.UploadTraces(ctx, nil)
}

// upload is an otlptrace.Client for one request.
type upload struct {
	c        *client
	cfg      *ci.Traces
	rejected *int64 // how many spans of it the collector took and dropped
}

var _ otlptrace.Client = upload{}

func (upload) Start(context.Context) error { return nil }
func (upload) Stop(context.Context) error  { return nil }

// UploadTraces implements otlptrace.Client. TracesData has the wire form of
// OTLP's request, whose own type comes with gRPC.
func (u upload) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return &refusal{says: "spans cannot be encoded: " + err.Error(), final: true}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(body)
	if err = errors.Join(err, w.Close()); err != nil {
		return &refusal{says: "spans cannot be packed: " + err.Error(), final: true}
	}
	ctx, cancel := context.WithTimeout(ctx, u.c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.cfg.Endpoint, &packed)
	if err != nil {
		return &refusal{says: "the endpoint is not an address", final: true}
	}
	req.Header.Set("User-Agent", "docket/"+u.c.version)
	for name, value := range u.cfg.Headers {
		req.Header.Set(name, value.Reveal())
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := u.c.http.Do(req)
	if err != nil {
		return unreached(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		*u.rejected = rejectedIn(answer)
		return nil
	}
	return refused(resp)
}

// refused judges an answer as OTLP does: only these statuses are for a moment.
func refused(resp *http.Response) error {
	r := &refusal{says: fmt.Sprintf("the collector answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)), final: true}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		r.final = false
		if d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil && d > 0 {
			r.wait = d
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		r.says += "; check traces.headers"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		r.says += "; check the path of traces.endpoint"
	}
	return r
}

func unreached(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var ne net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return &refusal{says: "the collector did not answer in time"}
	}
	return &refusal{says: "the collector cannot be reached: " + err.Error()}
}

// rejectedIn reads from an answer how many spans the collector dropped:
// ExportTraceServiceResponse.partial_success.rejected_spans.
func rejectedIn(answer []byte) int64 {
	partial, _ := fieldOne(answer, protowire.BytesType)
	_, n := fieldOne(partial, protowire.VarintType)
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// fieldOne returns the first field numbered 1 of a message, if it has a type.
func fieldOne(b []byte, want protowire.Type) (bytes []byte, number uint64) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, 0
		}
		b = b[n:]
		if num == 1 && typ == want {
			if want == protowire.BytesType {
				bytes, _ = protowire.ConsumeBytes(b)
			} else {
				number, _ = protowire.ConsumeVarint(b)
			}
			return bytes, number
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return nil, 0
		}
		b = b[n:]
	}
	return nil, 0
}
