package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/dispatcher/tracer/collectortest"
	"docket/store/ci"
)

const (
	hookSpan    = "POST /hooks/{integration}"
	requestSpan = "POST /api/v1/projects/{project}/runs"
)

// tracing sends spans to a collector, with a secret header.
func tracing(c *collectortest.Collector, sample float64) func(d *daemon) {
	return func(d *daemon) {
		mustWrite(d.t, filepath.Join(d.dir, "otlp.key"), "Bearer "+otlpKey+"\n")
		d.config["traces"] = obj{"endpoint": c.URL, "headers": obj{"Authorization": obj{"file": "otlp.key"}}, "sample": sample}
	}
}

const otlpKey = "otlp-marker-31f0aa52"

// byID indexes spans by trace and id. No span may be there twice.
func byID(t *testing.T, spans []collectortest.Span) map[string]collectortest.Span {
	t.Helper()
	m := map[string]collectortest.Span{}
	for _, s := range spans {
		if was, twice := m[s.Trace+s.ID]; twice {
			t.Errorf("two spans with one id: %s and %s", was.Name, s.Name)
		}
		m[s.Trace+s.ID] = s
	}
	return m
}

// mustOne returns the only span of a name.
func mustOne(t *testing.T, spans []collectortest.Span, name string) collectortest.Span {
	t.Helper()
	list := collectortest.Named(spans, name)
	if len(list) != 1 {
		t.Fatalf("%d spans %q", len(list), name)
	}
	return list[0]
}

func has(spans []collectortest.Span, name string) bool {
	return len(collectortest.Named(spans, name)) > 0
}

// Ensure that a delivery, the run that docket was killed in, its second attempt
// and the last status are one whole trace, made by two processes that share
// nothing but the store; and that no secret and nothing of the payload is in it.
func TestTraceGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	hub, told, repo, c := newFakeGitHub(t), newReceiver(t), newRepository(t, "acme/api", 7), collectortest.New(t)
	d := newDaemon(t, hub, func(d *daemon) {
		tracing(c, 1)(d)
		d.environ = append(d.environ, "OTEL_SERVICE_NAME=ci", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test",
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=always_off")
		d.addProject("api", repo, obj{"on_interrupt": "requeue", "notify": told.notify(ci.RunFinished)}, waitStep("test"), step("build", "cat name"))
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	payload := repo.push("refs/heads/main", "", commit)
	d.mustDeliver(http.StatusAccepted, "d-1", payload)
	d.waitStarted("test", "api-1")
	c.Wait(t, "the delivery", func(s []collectortest.Span) bool { return has(s, hookSpan) && has(s, "queue") })
	before := time.Now()
	d.kill()
	d.open("all")
	d.start()
	hub.waitFor(t, commit, "api-1", "success", "succeeded")
	last := func(spans []collectortest.Span) bool {
		for _, s := range collectortest.Named(spans, "notify github.status") {
			if s.Attrs["docket.notification.event"] == "success" {
				return has(spans, "RUN api") && has(spans, "notify webhook")
			}
		}
		return false
	}
	spans := c.Wait(t, "the last status", last)

	hook, run := mustOne(t, spans, hookSpan), mustOne(t, spans, "RUN api")
	known := byID(t, spans)
	for _, s := range spans {
		if s.Trace != hook.Trace {
			t.Errorf("%s is of another trace", s.Name)
		}
		if _, ok := known[s.Trace+s.Parent]; !ok && s.ID != hook.ID {
			t.Errorf("%s lies under a span that is not there", s.Name)
		}
		if s.End.Before(s.Start) {
			t.Errorf("%s ends before it begins", s.Name)
		}
		for key, value := range s.Attrs {
			for _, secret := range []string{hookSecret, notifySecret, statusToken, adminToken, otlpKey, "octocat", "commit 1 of"} {
				if strings.Contains(value+s.Says, secret) {
					t.Errorf("%s has %q in %s", s.Name, secret, key)
				}
			}
		}
	}
	if hook.Parent != "" || run.Parent != hook.ID || !hook.End.Before(before) || !run.End.After(before) {
		t.Errorf("the delivery is %+v, the run %+v", hook, run)
	}
	for _, name := range []string{"verify", "judge", "commit"} {
		if s := mustOne(t, spans, name); s.Parent != hook.ID {
			t.Errorf("%s lies under %s", name, s.Parent)
		}
	}
	for name, n := range map[string]int{"queue": 2, "checkout": 2, "step test": 2, "step build": 1, "recover": 1, "send webhook": 1} {
		if list := collectortest.Named(spans, name); len(list) != n {
			t.Errorf("%d spans %q, want %d", len(list), name, n)
		}
	}
	for i, s := range collectortest.Named(spans, "step test") {
		if s.Parent != run.ID || s.Failed != (i == 0) || s.Attrs["docket.run.attempt"] != fmt.Sprint(i+1) {
			t.Errorf("attempt %d of a step: %+v", i+1, s)
		}
	}
	for key, want := range map[string]string{
		"cicd.pipeline.name": "api", "cicd.pipeline.run.id": "api-1", "cicd.pipeline.result": "success", "cicd.pipeline.action.name": "RUN",
		"cicd.pipeline.run.url.full": "http://docket.test/runs/api-1", "vcs.provider.name": "github", "vcs.owner.name": "acme", "vcs.repository.name": "api",
		"vcs.ref.head.name": "main", "vcs.ref.head.type": "branch", "vcs.ref.head.revision": commit, "docket.receipt": "github/-/d-1",
	} {
		if run.Attrs[key] != want {
			t.Errorf("the run's %s is %q, want %q", key, run.Attrs[key], want)
		}
	}
	if run.Resource["service.name"] != "ci" || run.Resource["deployment.environment.name"] != "test" || run.Kind != "SERVER" {
		t.Errorf("the resource is %v", run.Resource)
	}
	a := d.call("GET", "/api/v1/receipts/github/-/d-1", "", nil)
	if !strings.Contains(string(a.body), `"trace_id":"`+hook.Trace+`"`) || !strings.Contains(string(d.call("GET", "/api/v1/runs/api-1", "", nil).body), hook.Trace) {
		t.Errorf("the trace's id is not shown: %v", a)
	}
}

// Ensure that a request by hand begins a trace that names its caller's, that a
// rerun has one of its own, linked to that, and that a share of traces is a
// share of whole traces, the same ones that the API shows.
func TestTracesOfRequestsAreSampledWhole(t *testing.T) {
	t.Parallel()
	repo, c := newRepository(t, "acme/api", 7), collectortest.New(t)
	d := newDaemon(t, nil, func(d *daemon) {
		tracing(c, .5)(d)
		d.addProject("api", repo, nil)
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	const n = 24
	shown := map[string]string{} // trace -> run
	for i := range n {
		d.mustStart("api", fmt.Sprintf("K%d", i), obj{"commit": commit})
	}
	for i := range n {
		id := fmt.Sprintf("api-%d", i+1)
		if run := d.waitRun(id, ci.Succeeded); run.TraceID != "" {
			shown[run.TraceID] = id
		}
	}
	if len(shown) < 2 || len(shown) > n-2 {
		t.Fatalf("%d of %d traces are kept at a share of a half", len(shown), n)
	}
	spans := c.Wait(t, "every kept run", func(s []collectortest.Span) bool { return len(collectortest.Named(s, "RUN api")) >= len(shown) })
	d.stop()
	spans = c.Spans()
	for _, name := range []string{requestSpan, "judge", "commit", "RUN api", "queue", "checkout", "step work"} {
		list := collectortest.Named(spans, name)
		if len(list) != len(shown) {
			t.Errorf("%d spans %q for %d traces", len(list), name, len(shown))
		}
		for _, s := range list {
			if run, ok := shown[s.Trace]; !ok || s.Attrs["cicd.pipeline.run.id"] != run && name != "judge" && name != "commit" {
				t.Errorf("%s of %q is in the trace of %q", name, s.Attrs["cicd.pipeline.run.id"], run)
			}
		}
	}
	byID(t, spans)
}

// Ensure that a caller's traceparent becomes a link, and that no sender of a
// webhook has a say.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	repo, c := newRepository(t, "acme/api", 7), collectortest.New(t)
	d := newDaemon(t, nil, func(d *daemon) {
		tracing(c, 1)(d)
		d.addProject("api", repo, nil)
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736/00f067aa0ba902b7"
	post := func(key, traceparent string) {
		t.Helper()
		req, err := http.NewRequest("POST", "http://"+d.addresses[0]+"/api/v1/projects/api/runs", strings.NewReader(`{"commit": "`+commit+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer " + adminToken}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}, "Traceparent": {traceparent}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			b, _ := io.ReadAll(resp.Body)
			t.Fatalf("%d %s", resp.StatusCode, b)
		}
	}
	post("K1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	post("K1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") // asked again
	post("K2", "00-zz")
	d.waitRun("api-1", ci.Succeeded)
	d.waitRun("api-2", ci.Succeeded)
	if a := d.call("POST", "/api/v1/runs/api-1/rerun", "K3", obj{}); a.status != http.StatusCreated {
		t.Fatalf("rerun: %v", a)
	}
	d.waitRun("api-3", ci.Succeeded)
	spans := c.Wait(t, "three runs", func(s []collectortest.Span) bool {
		return len(collectortest.Named(s, "RUN api")) == 3 && len(collectortest.Named(s, requestSpan)) == 3
	})
	runs := map[string]collectortest.Span{}
	for _, s := range collectortest.Named(spans, "RUN api") {
		runs[s.Attrs["cicd.pipeline.run.id"]] = s
	}
	for _, s := range collectortest.Named(spans, requestSpan) {
		first := runs["api-1"].Parent == s.ID || runs["api-2"].Parent == s.ID
		linked := s.Attrs["cicd.pipeline.run.id"] == "api-1"
		if first != (s.Parent == "") || linked != (len(s.Links) == 1 && s.Links[0] == theirs) {
			t.Errorf("a request is %+v", s)
		}
	}
	again := runs["api-3"]
	if again.Parent != "" || again.Trace == runs["api-1"].Trace || len(again.Links) != 1 || again.Links[0] != runs["api-1"].Trace+"/"+runs["api-1"].ID {
		t.Errorf("the rerun is %+v", again)
	}
}

// Ensure that a collector that takes requests and never answers keeps neither
// work nor a shutdown waiting, and that one that repeats what it was sent does
// not bring a secret into the log.
func TestBadCollectors(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]func(gone <-chan struct{}) func(http.ResponseWriter, *http.Request) bool{
		"hangs": func(gone <-chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(_ http.ResponseWriter, r *http.Request) bool {
				io.Copy(io.Discard, r.Body)
				select {
				case <-gone:
				case <-r.Context().Done():
				}
				return true
			}
		},
		"refuses and repeats": func(<-chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("X-Seen", r.Header.Get("Authorization"))
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprintf(w, "bad credentials: %v", r.Header)
				return true
			}
		},
		"redirects": func(<-chan struct{}) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, "http://127.0.0.1:1/"+otlpKey, http.StatusTemporaryRedirect)
				return true
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			hub, repo, c := newFakeGitHub(t), newRepository(t, "acme/api", 7), collectortest.New(t)
			gone := make(chan struct{})
			defer close(gone)
			c.Answer(answer(gone))
			d := newDaemon(t, hub, func(d *daemon) {
				tracing(c, 1)(d)
				d.config["log"] = obj{"level": "debug"}
				d.addProject("api", repo, nil)
			})
			commit := repo.commit("refs/heads/main")
			d.start()
			d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", commit))
			hub.waitFor(t, commit, "api-1", "success", "succeeded")
			eventually(t, "the collector is asked", func() bool { n, _ := c.Requests(); return n > 0 })
			if _, h := c.Requests(); h.Get("Authorization") != "Bearer "+otlpKey {
				t.Errorf("the header is %q", h.Get("Authorization"))
			}
			if what != "hangs" {
				eventually(t, "the metrics say that spans were refused", func() bool {
					text := string(d.call("GET", "/metrics", "", nil).body)
					return strings.Contains(text, "docket_trace_export_failing 1") && !strings.Contains(text, `docket_trace_dropped_total{reason="refused"} 0`)
				})
				found := findingsOf(t, d.output("doctor", "-o", "json").out)
				mustFind(t, found, "traces", stateWrong, "takes no spans: the collector answered")
				mustFind(t, found, "server", stateWarning, "spans are not sent: the collector answered")
				mustFind(t, found, "server", stateWarning, "spans were dropped")
			}
			began := time.Now()
			d.stop()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("the shutdown took %s", took)
			}
			if log := d.logText(); strings.Contains(log, otlpKey) {
				t.Errorf("the log has the secret:\n%s", log)
			}
		})
	}
}

// Ensure that a collector that is there is told of, and that traces end at a
// reload without them and go on, elsewhere, after one with them.
func TestTracesAndReload(t *testing.T) {
	t.Parallel()
	repo, one, two := newRepository(t, "acme/api", 7), collectortest.New(t), collectortest.New(t)
	d := newDaemon(t, nil, func(d *daemon) {
		tracing(one, 1)(d)
		d.addProject("api", repo, nil)
	})
	commit := repo.commit("refs/heads/main")
	d.start()
	mustFind(t, findingsOf(t, d.output("doctor", "-o", "json").out), "traces", stateOK, "takes spans")
	run := func(n int) {
		t.Helper()
		d.mustStart("api", fmt.Sprintf("K%d", n), obj{"commit": commit})
		d.waitRun(fmt.Sprintf("api-%d", n), ci.Succeeded)
	}
	ran := func(n int) func([]collectortest.Span) bool {
		return func(list []collectortest.Span) bool {
			for _, s := range collectortest.Named(list, "RUN api") {
				if s.Attrs["cicd.pipeline.run.id"] == fmt.Sprintf("api-%d", n) {
					return true
				}
			}
			return false
		}
	}
	run(1)
	one.Wait(t, "the first run", ran(1))
	traces := d.config["traces"]
	delete(d.config, "traces")
	d.configure()
	if a := d.call("POST", apiPrefix+"/reload", "", obj{}); a.status/100 != 2 {
		t.Fatalf("reload: %v", a)
	}
	run(2)
	d.config["traces"] = traces
	traces.(obj)["endpoint"] = two.URL
	d.configure()
	if a := d.call("POST", apiPrefix+"/reload", "", obj{}); a.status/100 != 2 {
		t.Fatalf("reload: %v", a)
	}
	run(3)
	two.Wait(t, "the third run", ran(3))
	if ran(2)(one.Spans()) || ran(3)(one.Spans()) || ran(2)(two.Spans()) {
		t.Error("spans went where they should not")
	}
	if !strings.Contains(string(d.call("GET", "/metrics", "", nil).body), "docket_trace_export_failing 0") {
		t.Error("the metrics do not say that spans arrive")
	}
}
