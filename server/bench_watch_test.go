package server_test

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	watchers     = 256 // as many strangers as may have a stream
	watchersEach = 32  // from one address
	watchBlock   = 200 // deliveries
	watchPairs   = 5   // of blocks, one without and one with watchers
)

// watch follows a public page from an address of its own until stop is called.
func watch(b *testing.B, url, page, from string) (stop func()) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(b.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", page)
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, status); err != nil || !strings.HasSuffix(string(status), " 200") {
		b.Fatalf("%s from %s: %q, %v", page, from, status, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(io.Discard, c) })
	return func() { c.Close(); wg.Wait() }
}

// BenchmarkHookBesideWatchers reports what it costs deliveries that every stream
// which strangers may have shows a page that each of them changes: the median
// and the 99th percentile of those, sent one at a time with a pause, in
// milliseconds and as a multiple of without.
func BenchmarkHookBesideWatchers(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	p := mustBenchPush(b)
	_, s, url, client := mustPublicServer(b, p)
	fill(b, s.Handler(), p, 100)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	block := func(n int) (times []time.Duration) {
		for i := range n {
			defer watch(b, url, "/projects/api", fmt.Sprintf("127.0.0.%d", 2+i/watchersEach))()
		}
		for range watchBlock {
			<-pause.C
			times = append(times, sendSome(b, client, p, url, 1)...)
		}
		return times
	}
	var with, without []time.Duration
	for b.Loop() {
		for range watchPairs {
			without, with = append(without, block(0)...), append(with, block(watchers)...)
		}
	}
	for name, q := range map[string]float64{"p50": .5, "p99": .99} {
		b.ReportMetric(quantile(with, q)/quantile(without, q), name+"-ratio")
		b.ReportMetric(quantile(with, q)/1e6, name+"-ms")
	}
}
