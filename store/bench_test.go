package store_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"docket/store"
	"docket/store/ci"
)

// fsyncRate is the unit of the store's benchmarks: how many 4 KiB appends,
// each with fdatasync, one writer makes in a second on the same disk.
func fsyncRate(tb testing.TB, dir string, for_ time.Duration) float64 {
	tb.Helper()
	f, err := os.Create(filepath.Join(dir, "unit"))
	if err != nil {
		tb.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	n := 0
	start := time.Now()
	for time.Since(start) < for_ {
		if _, err := f.Write(page); err != nil {
			tb.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

// guid makes version-1 UUIDs as GitHub sends them: time first in value, not
// in text.
type guids struct{ ticks atomic.Uint64 }

func (g *guids) next() string {
	t := 0x1f0_0000_0000_0000 + g.ticks.Add(9973)
	var b [16]byte
	binary.BigEndian.PutUint32(b[0:], uint32(t))
	binary.BigEndian.PutUint16(b[4:], uint16(t>>32))
	binary.BigEndian.PutUint16(b[6:], uint16(t>>48)&0x0fff|0x1000)
	rand.Read(b[8:])
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

var benchSpec = ci.Spec{
	Version: 1, CloneURL: "https://github.com/acme/api.git", Timeout: ci.Duration(30 * time.Minute), Report: true,
	Steps: []ci.Step{{Name: "test", Run: "make test"}, {Name: "deploy", Run: "./deploy.sh", Deploy: true}},
}

// pushes makes acceptances of one real push payload, each with its own
// delivery id, commits, time and digest.
type pushes struct {
	body []byte
	ids  guids
	n    atomic.Int64
}

func (p *pushes) next() store.Acceptance {
	n := p.n.Add(1)
	commit := fmt.Sprintf("%040x", uint64(n)*0x9E3779B97F4A7C15|1)
	before := fmt.Sprintf("%040x", uint64(n-1)*0x9E3779B97F4A7C15|1)
	body := append([]byte(nil), p.body...)
	body = append(body, fmt.Sprintf("\n%d", n)...)
	id := p.ids.next()
	e := ci.Event{
		Kind: "push", Actor: "octocat", Repository: ci.Repository{ID: 186853002, FullName: "acme/api"},
		Ref: "refs/heads/main", Branch: "main", Commit: commit, Before: before, Message: "A message of the usual length",
		PushedAt: 1_700_000_000 + n/50,
	}
	return store.Acceptance{
		Delivery: ci.Delivery{
			Integration: "github", Installation: 12345, ID: id, Event: "push", Secret: "github.secret", Body: body,
			ReceivedAt: time.Now(), Header: map[string]string{"User-Agent": "GitHub-Hookshot/044aadd", "Content-Type": "application/json", "X-GitHub-Hook-ID": "292430182"},
		},
		Event: e, Projects: []string{"api"},
		Drafts: []ci.Draft{{
			Project: "api", Integration: "github", State: ci.Queued, Spec: benchSpec, Context: "docket/api", Supersede: ci.SupersedePending,
			Scope:  "api push 186853002 refs/heads/main",
			Cause:  ci.Cause{Kind: ci.CauseDelivery, Receipt: "github/12345/" + id, Event: "push", Actor: "octocat"},
			Source: ci.Source{Repository: "acme/api", RepositoryID: 186853002, Ref: "refs/heads/main", Branch: "main", Commit: commit, Before: before},
			Title:  "A message of the usual length",
		}},
	}
}

func benchPayload(tb testing.TB) []byte {
	tb.Helper()
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		tb.Skip("DOCKET_PAYLOADS is not set: it names the folder of real payloads that this benchmark needs")
	}
	b, err := os.ReadFile(filepath.Join(dir, "push/branch.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// BenchmarkAccept reports store.Accept of a real push as a multiple of the
// disk's own rate, which is measured before and after in the same run.
func BenchmarkAccept(b *testing.B) {
	body := benchPayload(b)
	for _, writers := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			dir := b.TempDir()
			s, err := store.Open(filepath.Join(dir, "docket.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			p := &pushes{body: body}
			unit := fsyncRate(b, dir, 500*time.Millisecond)
			before, wrote := s.Commits()
			b.ResetTimer()
			used := cpuTime()
			acceptAll(b, s, p, writers, b.N)
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-us/accept")
			commits, pages := s.Commits()
			b.ReportMetric(float64(pages-wrote)/float64(commits-before), "pages/commit")
			b.ReportMetric(float64(b.N)/float64(commits-before), "accepts/commit")
			rate := float64(b.N) / b.Elapsed().Seconds()
			unit = (unit + fsyncRate(b, dir, 500*time.Millisecond)) / 2
			b.ReportMetric(rate/unit, "units")
			b.ReportMetric(unit, "unit/s")
			b.ReportMetric(rate, "accepts/s")
		})
	}
}

func acceptAll(tb testing.TB, s *store.Store, p *pushes, writers, n int) {
	tb.Helper()
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range writers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := s.Accept(context.Background(), p.next()); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// benchRuns is how large BenchmarkFullStore makes its store.
func benchRuns(tb testing.TB) int {
	tb.Helper()
	text := os.Getenv("DOCKET_BENCH_RUNS")
	if text == "" {
		tb.Skip("DOCKET_BENCH_RUNS is not set: it says how many runs the full store shall hold, as in 1000000")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		tb.Fatalf("DOCKET_BENCH_RUNS=%s: want a number from 1000", text)
	}
	return n
}

// BenchmarkFullStore reports what a long history costs: the rates of Accept
// in a full store and after most of it was pruned, each as a share of an
// empty store's, measured in turn; and how long opening, the first pages and
// the first claim take. It measures for fixed times and is to run once
// (-benchtime 1x).
func BenchmarkFullStore(b *testing.B) {
	body, total := benchPayload(b), benchRuns(b)
	dir := b.TempDir()
	full := filepath.Join(dir, "full.db")
	p := &pushes{body: body}
	seed(b, full, p, total)
	openTimes(b, full, "full")
	compare(b, dir, full, p, "full")

	s := mustOpenBench(b, full)
	removed := 0
	start := time.Now()
	var longest time.Duration
	for cut := time.Now().Add(time.Hour); removed < total/10*9; {
		began := time.Now()
		pr, err := s.Prune(context.Background(), cut, 500)
		if err != nil {
			b.Fatal(err)
		}
		if pr.None() {
			b.Fatalf("nothing left to prune after %d", removed)
		}
		removed += len(pr.Runs)
		longest = max(longest, time.Since(began))
	}
	b.Logf("pruned %d runs in %s, 500 at a time: the longest write took %s", removed, time.Since(start).Round(time.Second), longest.Round(time.Millisecond))
	s.Close()
	openTimes(b, full, "pruned")
	compare(b, dir, full, p, "pruned")
}

func mustOpenBench(b *testing.B, path string) *store.Store {
	b.Helper()
	s, err := store.Open(path, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func seed(b *testing.B, path string, p *pushes, total int) {
	b.Helper()
	s := mustOpenBench(b, path)
	defer s.Close()
	start := time.Now()
	for done := 0; done < total; done += 1000 {
		list := make([]store.Acceptance, 1000)
		for i := range list {
			list[i] = p.next()
		}
		if err := s.Seed(list); err != nil {
			b.Fatal(err)
		}
	}
	st, err := s.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("seeded %d runs in %s: %.2f GB", total, time.Since(start).Round(time.Second), float64(st.FileBytes)/1e9)
}

// openTimes reports opening, the first page of a listing and the first claim.
func openTimes(b *testing.B, path, what string) {
	b.Helper()
	start := time.Now()
	s := mustOpenBench(b, path)
	opened := time.Now()
	if _, _, err := s.Runs(store.RunFilter{}, store.Page{}); err != nil {
		b.Fatal(err)
	}
	paged := time.Now()
	for _, f := range []store.RunFilter{{State: ci.Succeeded}, {Project: "api", Branch: "main"}, {State: ci.Failed}} {
		if _, _, err := s.Runs(f, store.Page{}); err != nil {
			b.Fatal(err)
		}
	}
	filtered := time.Now()
	if _, _, err := s.Entries("", store.Page{}); err != nil {
		b.Fatal(err)
	}
	if _, _, err := s.Entries(ci.OutboxDead, store.Page{}); err != nil {
		b.Fatal(err)
	}
	if _, _, err := s.Decisions("", store.Page{}); err != nil { // there are next to none
		b.Fatal(err)
	}
	rare := time.Now()
	if _, _, err := s.Claim(context.Background(), "bench", 1); err != nil {
		b.Fatal(err)
	}
	claimed := time.Now()
	s.Close()
	b.Logf("%s: open %s, first page %s, three filtered pages %s, pages of notifications and decisions %s, first claim %s", what,
		opened.Sub(start), paged.Sub(opened), filtered.Sub(paged), rare.Sub(filtered), claimed.Sub(rare))
	b.ReportMetric(opened.Sub(start).Seconds(), what+"-open-s")
}

// compare measures Accept in a store and in an empty one, in turn, three
// times each, and reports the median of the ratios.
func compare(b *testing.B, dir, path string, p *pushes, what string) {
	b.Helper()
	for _, writers := range []int{1, 8, 32, 128} {
		var ratios []float64
		for round := range 3 {
			empty := filepath.Join(dir, fmt.Sprintf("empty-%s-%d-%d.db", what, writers, round))
			var rates [2]float64
			for i, at := range []string{empty, path} {
				s := mustOpenBench(b, at)
				rates[i] = acceptFor(b, s, p, writers, 2*time.Second)
				s.Close()
			}
			os.Remove(empty)
			ratios = append(ratios, rates[1]/rates[0])
		}
		slices.Sort(ratios)
		b.Logf("%s, %d writers: %.2f of an empty store's rate (%.2f to %.2f)", what, writers, ratios[1], ratios[0], ratios[2])
		b.ReportMetric(ratios[1], fmt.Sprintf("%s-%d", what, writers))
	}
}

func acceptFor(tb testing.TB, s *store.Store, p *pushes, writers int, for_ time.Duration) float64 {
	tb.Helper()
	var wg sync.WaitGroup
	var n atomic.Int64
	start := time.Now()
	for range writers {
		wg.Go(func() {
			for time.Since(start) < for_ {
				if _, err := s.Accept(context.Background(), p.next()); err != nil {
					tb.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(start).Seconds()
}

// cpuTime is how much processor time this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
