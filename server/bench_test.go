package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"docket/server"
	"docket/server/github"
	"docket/store"
	"docket/store/ci"
)

// benchPush makes signed deliveries of one real push payload, each a push of
// its own: other commits, another time, another id.
type benchPush struct {
	payload []byte
	before  []byte
	after   []byte
	n       atomic.Int64
}

func mustBenchPush(b *testing.B) *benchPush {
	b.Helper()
	dir := os.Getenv("DOCKET_PAYLOADS")
	if dir == "" {
		b.Skip("DOCKET_PAYLOADS is not set: it names the folder of real payloads that this benchmark needs")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "push/branch.json"))
	if err != nil {
		b.Fatal(err)
	}
	e, err := github.Parse("push", raw)
	if err != nil || e.Commit == "" || e.Before == "" {
		b.Fatalf("parse: %+v, %v", e, err)
	}
	return &benchPush{payload: raw, before: []byte(e.Before), after: []byte(e.Commit)}
}

func (p *benchPush) repository(b *testing.B) string {
	e, err := github.Parse("push", p.payload)
	if err != nil {
		b.Fatal(err)
	}
	return e.Repository.FullName
}

func (p *benchPush) request(b *testing.B, url string) *http.Request {
	n := uint64(p.n.Add(1))
	commit := func(n uint64) []byte { return fmt.Appendf(nil, "%040x", n*0x9E3779B97F4A7C15|1) }
	body := bytes.ReplaceAll(p.payload, p.after, commit(n))
	body = bytes.ReplaceAll(body, p.before, commit(n-1))
	req, err := http.NewRequest("POST", url+"/hooks/github", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	t := 0x1f0_0000_0000_0000 + n*9973
	req.Header.Set("X-GitHub-Delivery", fmt.Sprintf("%08x-%04x-1%03x-9c24-%012x", uint32(t), uint16(t>>32), uint16(t>>48)&0xfff, n))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-Hub-Signature-256", sign(hookSecret, string(body)))
	return req
}

// unitRate is the benchmarks' unit: 4 KiB appends, each with fdatasync, that
// one writer makes in a second on the same disk.
func unitRate(b *testing.B, dir string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "unit"))
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page, n, start := make([]byte, 4096), 0, time.Now()
	for time.Since(start) < 500*time.Millisecond {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

// bareCommit is the median time of a bbolt commit of one 1 KiB value.
func bareCommit(b *testing.B, dir string) time.Duration {
	b.Helper()
	path := filepath.Join(dir, "bare.db")
	defer os.Remove(path)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var times []time.Duration
	for i := range 500 {
		start := time.Now()
		err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Appendf(nil, "%08d", i), make([]byte, 1024))
		})
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// servedGCPercent is what `docket serve` sets.
const servedGCPercent = 400

// BenchmarkHook reports deliveries over HTTP, signature and parse included,
// with the load generator in the same process: their rate as a multiple of
// the disk's own, and for one sender the median as a multiple of a bare
// commit's.
func BenchmarkHook(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	p := mustBenchPush(b)
	repository := p.repository(b)
	for _, senders := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("senders=%d", senders), func(b *testing.B) {
			dir := b.TempDir()
			st, err := store.Open(filepath.Join(dir, "docket.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			cfg := mustConfig(func(c *ci.Config) {
				c.Projects[0].Repository = repository
				c.Projects[0].On = ci.On{Push: &ci.OnPush{}}
				c.Integrations[0].Token = ci.NewSecret("token", "t")
			})
			s := server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			srv := server.NewHTTPServer(s.Handler())
			go srv.Serve(ln)
			defer srv.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
			defer client.CloseIdleConnections()

			unit, bare := unitRate(b, dir), bareCommit(b, dir)
			before := cpuTime()
			b.ResetTimer()
			times := sendAll(b, client, p, "http://"+ln.Addr().String(), senders)
			b.StopTimer()
			cpu := cpuTime() - before
			rate := float64(b.N) / b.Elapsed().Seconds()
			unit = (unit + unitRate(b, dir)) / 2
			slices.Sort(times)
			b.ReportMetric(rate/unit, "units")
			b.ReportMetric(unit, "unit/s")
			b.ReportMetric(rate, "deliveries/s")
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/delivery")
			b.ReportMetric(float64(times[len(times)/2])/float64(bare), "p50/bare-commit")
		})
	}
}

// sendAll sends b.N deliveries over several connections and returns what each took.
func sendAll(b *testing.B, client *http.Client, p *benchPush, url string, senders int) []time.Duration {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	times := make([][]time.Duration, senders)
	for i := range senders {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				took, ok := sendOne(b, client, p, url)
				if !ok {
					return
				}
				times[i] = append(times[i], took)
			}
		})
	}
	wg.Wait()
	return slices.Concat(times...)
}

// sendSome sends n deliveries one after the other.
func sendSome(b *testing.B, client *http.Client, p *benchPush, url string, n int) (times []time.Duration) {
	b.Helper()
	for range n {
		took, ok := sendOne(b, client, p, url)
		if !ok {
			b.FailNow()
		}
		times = append(times, took)
	}
	return times
}

func sendOne(b *testing.B, client *http.Client, p *benchPush, url string) (took time.Duration, ok bool) {
	req := p.request(b, url)
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return 0, false
	}
	reply, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	took = time.Since(start)
	if resp.StatusCode != http.StatusAccepted || !bytes.Contains(reply, []byte(`"accepted"`)) {
		b.Errorf("%s: %s", resp.Status, reply)
		return took, false
	}
	return took, true
}

// BenchmarkHookWithoutStore is the same load on a server that reads, verifies
// and parses, and keeps nothing: what no store, however fast, could exceed.
func BenchmarkHookWithoutStore(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	p := mustBenchPush(b)
	secrets := []ci.Secret{ci.NewSecret("first", hookSecret)}
	for _, senders := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("senders=%d", senders), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			srv := server.NewHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					_, err = github.Verify(secrets, r.Header, body)
				}
				if err == nil {
					_, err = github.Parse("push", body)
				}
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				w.WriteHeader(http.StatusAccepted)
				io.WriteString(w, `{"outcome":"accepted"}`)
			}))
			go srv.Serve(ln)
			defer srv.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
			defer client.CloseIdleConnections()
			unit := unitRate(b, b.TempDir())
			before := cpuTime()
			b.ResetTimer()
			sendAll(b, client, p, "http://"+ln.Addr().String(), senders)
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate/unit, "units")
			b.ReportMetric(unit, "unit/s")
			b.ReportMetric(rate, "deliveries/s")
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/delivery")
		})
	}
}

// BenchmarkVerifyAndParse is what a delivery costs without HTTP and store.
func BenchmarkVerifyAndParse(b *testing.B) {
	p := mustBenchPush(b)
	secrets := []ci.Secret{ci.NewSecret("first", hookSecret)}
	header := p.request(b, "http://localhost").Header
	header.Set("X-Hub-Signature-256", sign(hookSecret, string(p.payload)))
	for b.Loop() {
		if _, err := github.Verify(secrets, header, p.payload); err != nil {
			b.Fatal(err)
		}
		if _, err := github.Parse("push", p.payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPage is what a page costs to make, over few runs and over many:
// it must not depend on how many there are.
func BenchmarkPage(b *testing.B) {
	p := mustBenchPush(b)
	many := 100_000
	if n, err := strconv.Atoi(os.Getenv("DOCKET_BENCH_RUNS")); err == nil {
		many = n
	}
	for _, runs := range []int{1_000, many} {
		st, err := store.Open(filepath.Join(b.TempDir(), "docket.db"), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { st.Close() })
		cfg := mustConfig(func(c *ci.Config) {
			c.Projects[0].Repository, c.Projects[0].Public = p.repository(b), true
			c.Projects[0].On = ci.On{Push: &ci.OnPush{}}
		})
		s := server.New(server.Options{Store: st, Config: func() *ci.Config { return cfg }})
		handler := s.Handler()
		fill(b, handler, p, runs)
		for _, path := range []string{"/projects/" + cfg.Projects[0].Name, "/runs/" + cfg.Projects[0].Name + "-7"} {
			b.Run(fmt.Sprintf("runs=%d%s", runs, path), func(b *testing.B) {
				for b.Loop() {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
					if w.Code != http.StatusOK {
						b.Fatalf("%d: %s", w.Code, w.Body)
					}
				}
			})
		}
	}
}

// fill delivers pushes, many at once, through the handler.
func fill(b *testing.B, handler http.Handler, p *benchPush, n int) {
	b.Helper()
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range 128 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, p.request(b, ""))
				if w.Code != http.StatusAccepted {
					b.Errorf("%d: %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	wg.Wait()
}
