package main

import "github.com/prometheus/client_golang/prometheus"

// connectionCollector shows how many connections listeners have.
type connectionCollector []*listener

func connectionsDesc() *prometheus.Desc {
	return prometheus.NewDesc("docket_connections", "Open connections by listener.", []string{"address"}, nil)
}

func shutDesc() *prometheus.Desc {
	return prometheus.NewDesc("docket_connections_shut_total", "Silent connections that were shut to make room for others, by listener.", []string{"address"}, nil)
}

// Describe implements prometheus.Collector.
func (c connectionCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- connectionsDesc()
	ch <- shutDesc()
}

// Collect implements prometheus.Collector.
func (c connectionCollector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c {
		l.mu.Lock()
		open, shut := len(l.conns), l.shut
		l.mu.Unlock()
		ch <- prometheus.MustNewConstMetric(connectionsDesc(), prometheus.GaugeValue, float64(open), l.address)
		ch <- prometheus.MustNewConstMetric(shutDesc(), prometheus.CounterValue, float64(shut), l.address)
	}
}
