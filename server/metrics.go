package server

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"docket/store"
	"docket/store/ci"
)

// metrics are what the handlers count.
type metrics struct {
	deliveries *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	requests   *prometheus.HistogramVec
	limited    prometheus.Counter
	streams    *prometheus.GaugeVec
	handler    http.Handler

	streamsRefused *prometheus.CounterVec
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// newMetrics registers a server's metrics. Two servers cannot share a registry.
func newMetrics(r *prometheus.Registry, st *store.Store, version string, now func() time.Time) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_deliveries_total",
			Help: "Verified deliveries by what became of them: accepted, ignored, duplicate or failed (not committed).",
		}, []string{"integration", "event", "outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_refusals_total",
			Help: "Deliveries that were refused, by the check that they did not pass. Nothing of them is stored.",
		}, []string{"integration", "reason"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "docket_http_request_duration_seconds",
			Help:    "Time to answer a request, by route and status; followed logs are left out.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route", "code"}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "docket_requests_limited_total",
			Help: "Requests without a valid token or signature that were answered 429, as too many from their address had failed.",
		}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "docket_streams",
			Help: "Streams of pages and logs that are open, by reader: open (not signed in) or signed_in.",
		}, []string{"reader"}),
		streamsRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_streams_refused_total",
			Help: "Streams that were refused, by reader and by the bound that was reached: reader (of one address, user or token) or all.",
		}, []string{"reader", "bound"}),
		handler: promhttp.HandlerFor(r, promhttp.HandlerOpts{}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "docket_build_info", Help: "Always 1; the label says which version runs.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	r.MustRegister(m.deliveries, m.refusals, m.requests, m.limited, m.streams, m.streamsRefused, build, newStoreCollector(st, now))
	return m
}

// delivery counts one verified delivery. Event kinds are the sender's words,
// so only known ones become a label.
func (m *metrics) delivery(integration, kind, outcome string) {
	if _, known := slices.BinarySearch(eventLabels(), kind); !known {
		kind = "other"
	}
	m.deliveries.WithLabelValues(integration, kind, outcome).Inc()
}

// eventLabels is a sorted list of the event kinds that providers often send.
func eventLabels() []string {
	return []string{
		"check_run", "check_suite", "create", "delete", "fork", "installation", "installation_repositories",
		"issue_comment", "issues", "merge_group", "package", "ping", "pull_request", "pull_request_approved",
		"pull_request_comment", "pull_request_rejected", "pull_request_review", "push", "release", "repository",
		"repository_dispatch", "schedule", "status", "wiki", "workflow_dispatch", "workflow_run",
	}
}

// GET /metrics
func (s *Server) serveMetrics(c echo.Context) error {
	s.metrics.handler.ServeHTTP(c.Response(), c.Request())
	return nil
}

// storeCollector reads the store's counts when somebody asks for metrics.
type storeCollector struct {
	store               *store.Store
	runs, outbox, bytes *prometheus.Desc
	paused              *prometheus.Desc
	free                *prometheus.Desc
	queued, pending     *prometheus.Desc
	now                 func() time.Time
}

func newStoreCollector(st *store.Store, now func() time.Time) *storeCollector {
	return &storeCollector{
		store:   st,
		now:     now,
		runs:    prometheus.NewDesc("docket_runs", "Runs that have not ended, by state.", []string{"state"}, nil),
		outbox:  prometheus.NewDesc("docket_outbox", "Outbox entries that were not sent, by state.", []string{"state"}, nil),
		bytes:   prometheus.NewDesc("docket_store_bytes", "Size of the store's file.", nil, nil),
		free:    prometheus.NewDesc("docket_store_free_bytes", "Bytes of the store's file that are free to be filled again; docket compact gives them back.", nil, nil),
		queued:  prometheus.NewDesc("docket_queue_oldest_age_seconds", "Age of the oldest queued run; 0 for none.", nil, nil),
		pending: prometheus.NewDesc("docket_outbox_oldest_age_seconds", "Age of the oldest outbox entry that is still to be sent; 0 for none.", nil, nil),
		paused:  prometheus.NewDesc("docket_paused", "Whether runs or the outbox wait for an operator to resume them: 1 or 0.", []string{"what"}, nil),
	}
}

func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.runs
	ch <- c.outbox
	ch <- c.bytes
	for _, d := range []*prometheus.Desc{c.paused, c.free, c.queued, c.pending} {
		ch <- d
	}
}

func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	st, err := c.store.Stats()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.bytes, errors.New(ci.MessageOf(err)))
		return
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(c.runs, st.Preparing, string(ci.Preparing))
	gauge(c.runs, st.Held, string(ci.Held))
	gauge(c.runs, st.Queued, string(ci.Queued))
	gauge(c.runs, st.Running, string(ci.Running))
	gauge(c.outbox, st.OutboxPending, string(ci.OutboxPending))
	gauge(c.outbox, st.OutboxDead, string(ci.OutboxDead))
	ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(st.FileBytes))
	ch <- prometheus.MustNewConstMetric(c.free, prometheus.GaugeValue, float64(st.FreeBytes))
	for desc, since := range map[*prometheus.Desc]time.Time{c.queued: st.OldestQueued, c.pending: st.OldestPending} {
		age := 0.0
		if !since.IsZero() {
			age = max(0, c.now().Sub(since).Seconds())
		}
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, age)
	}
	paused, err := c.store.Pauses()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.paused, errors.New(ci.MessageOf(err)))
		return
	}
	for _, w := range ci.Works {
		n := 0
		if paused.Of(w) != nil {
			n = 1
		}
		gauge(c.paused, n, string(w))
	}
}
