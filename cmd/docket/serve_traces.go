package main

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"docket/dispatcher/tracer"
	"docket/server"
	"docket/store"
)

// changed is the tracer's ear at the store, which has to be opened with it;
// nil where there are no traces.
func (d *appliance) changed() func([]store.Change) {
	d.tracer = nil
	if d.config.Traces == nil {
		return nil
	}
	return func(c []store.Change) { d.tracer.Changed(c) } // nothing is committed before startTraces
}

// startTraces makes the tracer over the opened store, if there are traces.
func (d *appliance) startTraces() {
	if d.config.Traces != nil {
		d.tracer = tracer.New(tracer.Options{Store: d.store, Config: d.current.Load, Log: d.log, Version: buildInfo().Version})
	}
}

// runTraces sends spans until end is called, which waits for the last ones for
// a bounded time.
func (d *appliance) runTraces(ctx context.Context) (end func()) {
	if d.tracer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var sending sync.WaitGroup
	sending.Go(func() { d.tracer.Run(ctx) })
	return func() {
		cancel()
		sending.Wait()
	}
}

// traces is what the server tells and shows; nil where there are none.
func (d *appliance) traces() *server.Traces {
	t := d.tracer
	if t == nil {
		return nil
	}
	return &server.Traces{
		Handled: t.Handled, Run: t.RunTrace, Receipt: t.ReceiptTrace,
		State: func() server.TraceState {
			s := t.Stats()
			return server.TraceState{Exported: s.Exported, Dropped: s.Dropped, Problem: s.Problem}
		},
	}
}

func (d *appliance) registerTraces(r *prometheus.Registry) {
	if d.tracer != nil {
		r.MustRegister(traceCollector{d.tracer.Stats})
	}
}

// traceCollector shows how sending spans goes.
type traceCollector struct {
	stats func() tracer.Stats
}

// traceDescs are the metrics of traces, made anew for each look: they are few
// and compare by what they say.
type traceDescs struct{ exported, dropped, failures, failing, last *prometheus.Desc }

func newTraceDescs() traceDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("docket_trace_"+name, help, labels, nil)
	}
	return traceDescs{
		exported: desc("spans_exported_total", "Spans that the collector took."),
		dropped:  desc("dropped_total", "Spans that the collector will not get by reason: full (too many waited), refused (also after the last try), shutdown; and busy, commits and requests that no spans were made of.", "reason"),
		failures: desc("export_failures_total", "Requests that the collector did not take, each try counted."),
		failing:  desc("export_failing", "Whether the last request to the collector failed: 1 or 0."),
		last:     desc("last_export_timestamp_seconds", "When the collector last took spans, in seconds since 1970; 0 for never."),
	}
}

// Describe implements prometheus.Collector.
func (traceCollector) Describe(ch chan<- *prometheus.Desc) {
	d := newTraceDescs()
	for _, one := range []*prometheus.Desc{d.exported, d.dropped, d.failures, d.failing, d.last} {
		ch <- one
	}
}

// Collect implements prometheus.Collector.
func (c traceCollector) Collect(ch chan<- prometheus.Metric) {
	d, s := newTraceDescs(), c.stats()
	failing := 0.0
	if s.Problem != "" {
		failing = 1
	}
	ch <- prometheus.MustNewConstMetric(d.exported, prometheus.CounterValue, float64(s.Exported))
	for reason, n := range s.Dropped {
		ch <- prometheus.MustNewConstMetric(d.dropped, prometheus.CounterValue, float64(n), reason)
	}
	ch <- prometheus.MustNewConstMetric(d.failures, prometheus.CounterValue, float64(s.Failures))
	ch <- prometheus.MustNewConstMetric(d.failing, prometheus.GaugeValue, failing)
	ch <- prometheus.MustNewConstMetric(d.last, prometheus.GaugeValue, seconds(s.LastExport))
}
