package server_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
)

const (
	slowPairs = 40  // of blocks, one without and one with slow readers
	slowBlock = 150 // deliveries
	slowOnes  = 10  // readers of each kind, and one of a backup
	slowFirst = 20  // deliveries before a block that do not count: a backup begins with a copy
)

// readSlowly takes 1 KiB of an answer a second until stop is called.
func readSlowly(tb testing.TB, url, request string) (stop func()) {
	c := askSlowly(tb, url, request)
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := io.CopyN(io.Discard, c, 1<<10); err != nil {
					return
				}
			case <-end:
				return
			}
		}
	})
	return func() { close(end); c.Close(); wg.Wait() }
}

// ratios are a measure of blocks with slow readers over that of the blocks
// beside them without.
type ratios []float64

func (r ratios) quantile(q float64) float64 {
	slices.Sort(r)
	return r[int(math.Round(q*float64(len(r)-1)))]
}

func quantile(times []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[int(q*float64(len(sorted)-1))])
}

// mustPublicServer serves a store of its own, whose first project is public and
// takes the push, until the benchmark ends.
func mustPublicServer(b *testing.B, p *benchPush) (st *store.Store, s *server.Server, url string, client *http.Client) {
	b.Helper()
	st, err := store.Open(filepath.Join(b.TempDir(), "docket.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	cfg := mustConfig(func(c *ci.Config) {
		c.Projects[0].Repository, c.Projects[0].Public = p.repository(b), true
		c.Projects[0].On = ci.On{Push: &ci.OnPush{}}
	})
	s = server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }, Log: slog.New(slog.DiscardHandler)})
	srv := server.NewHTTPServer(s.Handler())
	url, done := mustServe(b, srv)
	client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	b.Cleanup(func() {
		client.CloseIdleConnections()
		srv.Close()
		<-done
		st.Close()
	})
	return st, s, url, client
}

// BenchmarkHookBesideSlowReaders reports what readers at 1 KiB a second on a
// backup, on a followed log and on a page's live stream do to deliveries: the
// median and the 99th percentile with them as a multiple of without. Blocks with
// and without take turns, and their order does too, so that what else the
// machine does falls on both. Beside the ratios over all deliveries stand the
// quartiles of the ratios of one block to its neighbour, which say how far to
// trust them; so does what two blocks without differ by.
func BenchmarkHookBesideSlowReaders(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	p := mustBenchPush(b)
	st, s, url, client := mustPublicServer(b, p)
	fill(b, s.Handler(), p, 1000) // so that a backup is not over at once
	run := mustTalk(b, st)
	requests := []string{"GET /api/v1/runs/" + run + "/logs?follow=1", "GET /runs/" + run + "\r\nAccept: text/event-stream"}
	block := func(slow bool) []time.Duration {
		if slow {
			defer readSlowly(b, url, "POST /api/v1/backup")()
			for range slowOnes {
				for _, request := range requests {
					defer readSlowly(b, url, request)()
				}
			}
		}
		return sendSome(b, client, p, url, slowFirst+slowBlock)[slowFirst:]
	}
	block(false)
	var with, without, first, second []time.Duration
	var p50, p99 ratios
	for b.Loop() {
		for i := range slowPairs {
			var pair [2][]time.Duration
			for j := range pair {
				k := (i + j) % 2
				pair[k] = block(k == 1)
			}
			without, with = append(without, pair[0]...), append(with, pair[1]...)
			p50 = append(p50, quantile(pair[1], .5)/quantile(pair[0], .5))
			p99 = append(p99, quantile(pair[1], .99)/quantile(pair[0], .99))
			if i%4 < 2 {
				first = append(first, pair[0]...)
			} else {
				second = append(second, pair[0]...)
			}
		}
	}
	b.ReportMetric(quantile(with, .5)/quantile(without, .5), "p50-ratio")
	b.ReportMetric(quantile(with, .99)/quantile(without, .99), "p99-ratio")
	b.ReportMetric(quantile(first, .99)/quantile(second, .99), "p99-ratio-of-nothing")
	for name, q := range map[string]float64{"q1": .25, "q3": .75} {
		b.ReportMetric(p50.quantile(q), "p50-ratio-"+name)
		b.ReportMetric(p99.quantile(q), "p99-ratio-"+name)
	}
	b.ReportMetric(quantile(without, .99)/1e6, "p99-ms-without")
}

// mustTalk claims a run and gives it a log of 16 MiB.
func mustTalk(b *testing.B, st *store.Store) (run string) {
	b.Helper()
	scopes, err := st.Scopes(10)
	for _, sc := range scopes {
		err = errors.Join(err, st.Supersede(b.Context(), sc, nil))
	}
	if err != nil {
		b.Fatal(err)
	}
	r, ok, err := st.Claim(b.Context(), "boot", 10)
	if err != nil || !ok {
		b.Fatalf("claim: %t %v", ok, err)
	}
	w, err := st.Logs().Create(r.ID, r.Attempt)
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Append(0, time.Now(), bytes.Repeat([]byte(slowLine), 16<<20/len(slowLine)), false); err != nil {
		b.Fatal(err)
	}
	return r.ID
}
