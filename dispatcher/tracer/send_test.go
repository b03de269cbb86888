package tracer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"docket/dispatcher/tracer"
	"docket/store/ci"
)

// request is a request by hand that makes one span.
func request(n int) ci.Handled {
	now := time.Now()
	return ci.Handled{Method: "POST", Route: "/x", Status: 201, Run: fmt.Sprintf("api-%d", n), First: true, Began: now, Ended: now}
}

// hang takes requests and does not answer until release is called.
func hang(t *testing.T, h *house) (release func()) {
	gone := make(chan struct{})
	var open atomic.Bool
	release = func() {
		if open.CompareAndSwap(false, true) {
			close(gone)
		}
	}
	h.coll.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if open.Load() {
			return false
		}
		io.Copy(io.Discard, r.Body)
		select {
		case <-gone:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	})
	t.Cleanup(release)
	return release
}

// Ensure that a collector that is away for a while gets everything once, and
// that the log says so when it begins and when it is over.
func TestCollectorThatComesBack(t *testing.T) {
	h := newHouse(t, nil)
	var asked atomic.Int64
	h.coll.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 4 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	for n := range 100 {
		h.tracer.Handled(request(n))
	}
	s := h.waitStats("all spans", func(s tracer.Stats) bool { return s.Exported == 100 })
	if s.Failures != 4 || s.Problem != "" || s.LastExport.IsZero() || len(h.coll.Spans()) != 100 {
		t.Errorf("%+v, %d arrived", s, len(h.coll.Spans()))
	}
	if log := h.log.String(); strings.Count(log, "spans cannot be sent") != 1 || strings.Count(log, "spans are sent again") != 1 {
		t.Errorf("the log:\n%s", log)
	}
}

// Ensure that nobody waits for a collector that hangs, that what does not fit
// is dropped and counted, and that the rest arrives when it answers again.
func TestCollectorThatHangs(t *testing.T) {
	h := newHouse(t, func(_ *house, o *tracer.Options) { o.Timeout = 50 * time.Millisecond })
	release := hang(t, h)
	const n = 20_000
	began := time.Now()
	for i := range n {
		h.tracer.Handled(request(i))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("telling took %s", took)
	}
	h.waitStats("a time-out", func(s tracer.Stats) bool { return s.Problem == "the collector did not answer in time" })
	release()
	s := h.waitStats("the rest", func(s tracer.Stats) bool {
		return s.Exported+s.Dropped["full"]+s.Dropped["busy"]+s.Dropped["refused"] == n
	})
	if s.Exported < 4096 || s.Dropped["full"]+s.Dropped["busy"] == 0 || s.Dropped["refused"] != 0 {
		t.Errorf("%+v", s)
	}
	ids := map[string]bool{} // one whose answer came too late came again
	for _, span := range h.coll.Spans() {
		ids[span.ID] = true
	}
	if uint64(len(ids)) != s.Exported {
		t.Errorf("%d arrived, %d are counted", len(ids), s.Exported)
	}
}

// Ensure that a shutdown sends what is left, and waits for no collector longer
// than it may.
func TestShutdown(t *testing.T) {
	t.Run("a good collector", func(t *testing.T) {
		h := newHouse(t, func(_ *house, o *tracer.Options) { o.Linger = time.Hour })
		for n := range 1000 {
			h.tracer.Handled(request(n))
		}
		h.stop()
		if n := len(h.coll.Spans()); n != 1000 {
			t.Errorf("%d spans arrived", n)
		}
	})
	t.Run("one that hangs", func(t *testing.T) {
		h := newHouse(t, nil)
		hang(t, h)
		for n := range 1000 {
			h.tracer.Handled(request(n))
		}
		if took := h.stop(); took > tracer.FlushTime+2*time.Second {
			t.Errorf("it took %s", took)
		}
		if s := h.tracer.Stats(); s.Dropped["shutdown"] != 1000 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("one that is down", func(t *testing.T) {
		srv := httptest.NewServer(nil)
		srv.Close()
		h := newHouse(t, func(h *house, o *tracer.Options) {
			o.Retry = time.Hour
			h.cfg.Traces.Endpoint = srv.URL + "/v1/traces"
		})
		h.tracer.Handled(request(1))
		h.waitStats("a failure", func(s tracer.Stats) bool { return strings.HasPrefix(s.Problem, "the collector cannot be reached: ") })
		if took := h.stop(); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Ensure that what a collector refuses for good is not sent again, that what
// it took in part is counted so, and that no answer brings a header into the
// log.
func TestRefusals(t *testing.T) {
	for status, says := range map[int]string{
		400: "the collector answered 400 Bad Request", 401: "the collector answered 401 Unauthorized; check traces.headers",
		404: "the collector answered 404 Not Found; check the path of traces.endpoint", 307: "the collector answered 307 Temporary Redirect",
	} {
		h := newHouse(t, nil)
		h.coll.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", h.coll.URL+"/v1/traces?"+r.Header.Get("X-Key"))
			w.WriteHeader(status)
			fmt.Fprint(w, r.Header)
			return true
		})
		h.tracer.Handled(request(1))
		s := h.waitStats("a refusal", func(s tracer.Stats) bool { return s.Dropped["refused"] == 1 })
		if n, header := h.coll.Requests(); s.Problem != says || n != 1 || header.Get("X-Key") != "otlp-marker" {
			t.Errorf("%d: %+v after %d requests with %v", status, s, n, header)
		}
		if log := h.log.String(); !strings.Contains(log, says) || strings.Contains(log, "otlp-marker") {
			t.Errorf("the log:\n%s", log)
		}
	}
	h := newHouse(t, func(_ *house, o *tracer.Options) { o.Linger = 50 * time.Millisecond })
	h.coll.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		partial := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "two are too old")
		partial = protowire.AppendVarint(protowire.AppendTag(partial, 1, protowire.VarintType), 2)
		w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial))
		return true
	})
	for n := range 5 {
		h.tracer.Handled(request(n))
	}
	h.stop()
	// Of each request two are refused, or the only one: how they share requests is chance.
	if s := h.tracer.Stats(); s.Exported+s.Dropped["refused"] != 5 || s.Dropped["refused"] < 2 {
		t.Errorf("%+v", s)
	}
}

// Ensure that a share of 0 keeps nothing, and that one of a half and one of a
// tenth keep the same traces as far as the smaller one goes.
func TestSampling(t *testing.T) {
	h := newHouse(t, nil)
	shares := map[float64]map[string]bool{0: {}, .1: {}, .5: {}, 1: {}}
	const n = 2000
	for share, kept := range shares {
		h.mu.Lock()
		traces := *h.cfg.Traces
		traces.Sample = share
		h.cfg.Traces = &traces
		h.mu.Unlock()
		for i := range n {
			r := ci.Run{ID: fmt.Sprintf("api-%d", i), Cause: ci.Cause{Kind: ci.CauseRequest}}
			if id := h.tracer.RunTrace(&r); id != "" {
				kept[id] = true
			}
		}
	}
	if len(shares[0]) != 0 || len(shares[1]) != n || len(shares[.5]) < 850 || len(shares[.5]) > 1150 || len(shares[.1]) < 120 || len(shares[.1]) > 280 {
		t.Errorf("kept %d, %d, %d and %d of %d", len(shares[0]), len(shares[.1]), len(shares[.5]), len(shares[1]), n)
	}
	for id := range shares[.1] {
		if !shares[.5][id] {
			t.Error("a tenth keeps a trace that a half does not")
		}
	}
}
