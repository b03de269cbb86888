package main

import (
	"context"
	"net/url"

	"docket/dispatcher/tracer"
	"docket/server"
)

// lookAtTraces sends the collector an empty request, as spans are sent.
func (d *doctor) lookAtTraces(ctx context.Context) []finding {
	cfg := d.cfg.Traces
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return []finding{wrong("correct traces.endpoint", "%s is not an address", cfg.Endpoint)}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := tracer.Probe(ctx, cfg, buildInfo().Version); err != nil {
		return []finding{wrong("correct traces, or see to the collector; docket works on without", "%s takes no spans: %s", u.Host, err)}
	}
	list := []finding{fine("%s takes spans", u.Host)}
	if u.Scheme == "http" && len(cfg.Headers) > 0 && !loopback(u.Hostname()) {
		list = append(list, warning("use https", "the headers of traces go to %s over plain http, where anyone between can read them", u.Host))
	}
	return list
}

// droppedSpans tells of spans that a running server could not send.
func droppedSpans(t *server.TraceState) (list []finding) {
	if t == nil {
		return nil
	}
	if t.Problem != "" {
		list = append(list, warning("see to the collector", "spans are not sent: %s", t.Problem))
	}
	var lost uint64
	for _, n := range t.Dropped {
		lost += n
	}
	if lost > 0 {
		list = append(list, warning("", "%d spans were dropped since the server started; docket_trace_dropped_total says why", lost))
	}
	return list
}
