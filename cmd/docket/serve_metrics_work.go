package main

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"docket/store"
	"docket/store/ci"
)

// workMetrics are what commits tell: how long they take, how much shares one,
// and which runs came to their end.
type workMetrics struct {
	commit, batch prometheus.Histogram
	ended         *prometheus.CounterVec
	ran           *prometheus.HistogramVec
}

func newWorkMetrics() *workMetrics {
	return &workMetrics{
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "docket_store_commit_duration_seconds",
			Help:    "Time of a commit to the store, from its first change to the end of its sync.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "docket_store_commit_changes",
			Help:    "How many changes shared a commit.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_runs_ended_total",
			Help: "Runs that came to their end since docket started, by project and final state.",
		}, []string{"project", "state"}),
		ran: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "docket_run_duration_seconds",
			Help:    "Time that runs ran for, by final state; those that never began are left out.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
		}, []string{"state"}),
	}
}

// committed counts a commit; see store.Options.
func (m *workMetrics) committed(c store.Commit) {
	m.commit.Observe(c.Took.Seconds())
	m.batch.Observe(float64(c.Batch))
	for _, e := range c.Ended {
		m.ended.WithLabelValues(e.Project, string(e.State)).Inc()
		if e.Ran > 0 {
			m.ran.WithLabelValues(string(e.State)).Observe(e.Ran.Seconds())
		}
	}
}

// register puts them, and what d is in, into a registry.
func (m *workMetrics) register(r *prometheus.Registry, d *appliance) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	r.MustRegister(m.commit, m.batch, m.ended, m.ran)
	gauge("docket_scheduler_last_scan_timestamp_seconds", "When the scheduler's last scan ended; 0 before the first.", func() float64 {
		return seconds(d.sched.LastScan())
	})
	gauge("docket_disk_free_bytes", "Bytes free on the disk of data_dir; NaN where they cannot be read.", func() float64 {
		return freeBytes(d.current.Load())
	})
	gauge("docket_disk_required_bytes", "limits.free_space: with less free no run starts.", func() float64 {
		return float64(d.current.Load().Limits.FreeSpace)
	})
	gauge("docket_config_last_reload_successful", "Whether the configuration was good when it was last read: 1 or 0.", func() float64 {
		if d.refused.Load() {
			return 0
		}
		return 1
	})
	gauge("docket_run_slots", "limits.concurrent_runs: how many runs may run at the same time.", func() float64 {
		return float64(d.current.Load().Limits.ConcurrentRuns)
	})
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func freeBytes(cfg *ci.Config) float64 {
	var st unix.Statfs_t
	if err := unix.Statfs(cfg.DataDir, &st); err != nil {
		return math.NaN()
	}
	return float64(st.Bavail) * float64(st.Bsize)
}
