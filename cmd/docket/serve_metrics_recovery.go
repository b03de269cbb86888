package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"docket/scheduler"
	"docket/store"
	"docket/store/ci"
)

// recoveryCollector shows what comparing with providers did in this process's
// life, and what is missing now.
type recoveryCollector struct {
	stats  func() map[string]scheduler.RecoveryCounts
	store  *store.Store
	config func() *ci.Config
}

// recoveryDescs are the metrics of recovery, made anew for each look: they
// are few and compare by what they say.
type recoveryDescs struct{ rounds, deliveries, started, missed, heads, compared *prometheus.Desc }

func newRecoveryDescs() recoveryDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("docket_recovery_"+name, help, labels, nil)
	}
	return recoveryDescs{
		rounds:     desc("rounds_total", "Comparisons with the provider by outcome: whole, or failed where they could not be made in full.", "integration", "outcome"),
		deliveries: desc("deliveries_total", "Deliveries that had not arrived by what came of them: asked, arrived or gave_up.", "integration", "outcome"),
		started:    desc("started_total", "Runs that were started for heads that no delivery told of.", "integration"),
		missed:     desc("missed", "Deliveries without a receipt by state: waiting, or gave_up where they are not asked for any more.", "integration", "state"),
		heads:      desc("heads", "Heads that no run is known of.", "project"),
		compared:   desc("compared_timestamp_seconds", "When deliveries and heads were last compared in full, by what.", "integration", "what"),
	}
}

// Describe implements prometheus.Collector.
func (recoveryCollector) Describe(ch chan<- *prometheus.Desc) {
	d := newRecoveryDescs()
	for _, one := range []*prometheus.Desc{d.rounds, d.deliveries, d.started, d.missed, d.heads, d.compared} {
		ch <- one
	}
}

// Collect implements prometheus.Collector.
func (c recoveryCollector) Collect(ch chan<- prometheus.Metric) {
	d := newRecoveryDescs()
	count := func(desc *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	for name, n := range c.stats() {
		count(d.rounds, n.Rounds-n.Failed, name, "whole")
		count(d.rounds, n.Failed, name, "failed")
		count(d.deliveries, n.Asked, name, "asked")
		count(d.deliveries, n.Arrived, name, "arrived")
		count(d.deliveries, n.GaveUp, name, "gave_up")
		count(d.started, n.Started, name)
	}
	if err := c.collectStore(ch, &d); err != nil {
		ch <- prometheus.NewInvalidMetric(d.missed, errors.New(ci.MessageOf(err)))
	}
}

func (c recoveryCollector) collectStore(ch chan<- prometheus.Metric, d *recoveryDescs) error {
	gauge := func(desc *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
	}
	cfg := c.config()
	for i := range cfg.Integrations {
		in := &cfg.Integrations[i]
		if ok, _ := in.Recovers(); !ok {
			continue
		}
		waiting, gaveUp, err := c.store.MissedCounts(in.Name)
		if err != nil {
			return err
		}
		gauge(d.missed, float64(waiting), in.Name, "waiting")
		gauge(d.missed, float64(gaveUp), in.Name, "gave_up")
		r, err := c.store.Recovery(in.Name)
		if err != nil {
			return err
		}
		for what, at := range map[string]ci.Time{"deliveries": r.DeliveriesAt, "heads": r.HeadsAt} {
			if !at.IsZero() {
				gauge(d.compared, float64(at.Unix()), in.Name, what)
			}
		}
	}
	for i := range cfg.Projects {
		p := &cfg.Projects[i]
		if _, ok, err := c.store.HeadsBase(p.Name); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		heads, err := c.store.MissedHeads(p.Name)
		if err != nil {
			return err
		}
		gauge(d.heads, float64(len(heads)), p.Name)
	}
	return nil
}
