package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"docket/store"
)

// BenchmarkSize reports how much of the file a delivery takes that started a
// run which was told of: whole, and once its body was removed.
func BenchmarkSize(b *testing.B) {
	const n = 5000
	p := &pushes{body: benchPayload(b)}
	for range b.N {
		path := filepath.Join(b.TempDir(), "docket.db")
		s, err := store.Open(path, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for done := 0; done < n; done += 100 {
			var list []store.Acceptance
			for range 100 {
				list = append(list, p.next())
			}
			if err := s.Seed(list); err != nil {
				b.Fatal(err)
			}
		}
		size := func() float64 {
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			c, err := store.Compact(context.Background(), path, store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if s, err = store.Open(path, store.Options{}); err != nil {
				b.Fatal(err)
			}
			return float64(c.After) / n
		}
		st, err := s.Stats()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.FileBytes)/n, "B/delivery")
		b.ReportMetric(size(), "B/delivery-compacted")
		for removed := 1; removed > 0; {
			if removed, err = s.PruneBodies(context.Background(), time.Now().Add(-time.Nanosecond), 200); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(size(), "B/delivery-without-body")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
