package main

import "github.com/prometheus/client_golang/prometheus"

// certificateCollector shows the certificates of listeners.
type certificateCollector []*listener

func expiryDesc() *prometheus.Desc {
	return prometheus.NewDesc("docket_certificate_expiry_timestamp_seconds",
		"When the certificate in force expires, in seconds since 1970, by listener and host.", []string{"address", "name"}, nil)
}

func brokenDesc() *prometheus.Desc {
	return prometheus.NewDesc("docket_certificate_broken",
		"Whether the certificate that should be in force cannot be had or used, so that the one before is: 1 or 0.", []string{"address", "name"}, nil)
}

// Describe implements prometheus.Collector.
func (c certificateCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- expiryDesc()
	ch <- brokenDesc()
}

// Collect implements prometheus.Collector.
func (c certificateCollector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c {
		if l.secure == nil {
			continue
		}
		for _, s := range l.secure.certificates() {
			broken := 0.0
			if s.broken {
				broken = 1
			}
			ch <- prometheus.MustNewConstMetric(brokenDesc(), prometheus.GaugeValue, broken, l.address, s.name)
			if !s.expires.IsZero() {
				ch <- prometheus.MustNewConstMetric(expiryDesc(), prometheus.GaugeValue, float64(s.expires.Unix()), l.address, s.name)
			}
		}
	}
}
