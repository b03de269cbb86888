package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"docket/dispatcher"
)

// sentCollector shows what the dispatcher did in this process's life.
type sentCollector struct {
	stats func() map[string]dispatcher.Counts
}

func attemptsDesc() *prometheus.Desc {
	return prometheus.NewDesc("docket_notification_attempts_total",
		"Attempts to send a notification by what came of them: sent, retried, dead or skipped.",
		[]string{"kind", "outcome"}, nil)
}

// Describe implements prometheus.Collector.
func (c sentCollector) Describe(ch chan<- *prometheus.Desc) { ch <- attemptsDesc() }

// Collect implements prometheus.Collector.
func (c sentCollector) Collect(ch chan<- prometheus.Metric) {
	for kind, n := range c.stats() {
		for outcome, count := range map[string]uint64{"sent": n.Sent, "retried": n.Retried, "dead": n.Dead, "skipped": n.Skipped} {
			ch <- prometheus.MustNewConstMetric(attemptsDesc(), prometheus.CounterValue, float64(count), kind, outcome)
		}
	}
}
