package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/store/ci"
	"docket/web"
)

// BackupStatus says how the backups go that docket makes by itself.
type BackupStatus struct {
	Last   time.Time // when the newest was made, zero for none
	Failed string    // why the last try failed, one sentence; "" after a success
}

// registerBackups shows in the metrics when the last backup was made.
func registerBackups(r *prometheus.Registry, status func() BackupStatus) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "docket_backup_last_success_timestamp_seconds",
			Help: "When the newest backup was made that docket makes by itself; 0 for none.",
		}, func() float64 {
			if at := status().Last; !at.IsZero() {
				return float64(at.UnixMilli()) / 1000
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "docket_backup_failing",
			Help: "Whether the last try of a backup failed: 1 or 0.",
		}, func() float64 {
			if status().Failed != "" {
				return 1
			}
			return 0
		}))
}

// setupBackups is what the setup page says of the backups.
func (s *Server) setupBackups(v *visit) *web.SetupBackups {
	if v.who == nil {
		return nil
	}
	b := &web.SetupBackups{}
	if cfg := s.config().Backup; cfg != nil {
		b.Dir, b.Every, b.Keep = cfg.Dir, cfg.Every, cfg.Keep
	}
	if s.backups != nil {
		st := s.backups()
		b.Failed = st.Failed
		if !st.Last.IsZero() {
			b.Last = ci.At(st.Last)
		}
	}
	return b
}
