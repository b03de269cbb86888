package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/server"
	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that readiness says every reason, and that asking often writes
// seldom.
func TestReady(t *testing.T) {
	var commits atomic.Int32
	st := storetest.MustOpenAt(t, filepath.Join(t.TempDir(), "docket.db"), store.Options{Failpoint: func(point string) error {
		if point == store.FailBeforeCommit {
			commits.Add(1)
		}
		return nil
	}})
	r := newRigOver(t, st)
	now := time.Unix(1700000000, 0)
	var reasons []string
	s := server.New(server.Options{
		Store: st, Config: r.config, Now: func() time.Time { return now }, Ready: func() []string { return reasons },
	})
	url := r.mustListen(s.Handler())
	before := commits.Load()
	for range 20 {
		if a := r.do(mustRequest(t, "GET", url+"/readyz", "")); a.status != 200 {
			t.Fatal(a)
		}
	}
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d probes in one second", n)
	}
	now = now.Add(time.Second)
	reasons = []string{"the disk has 3 MB left", "the last scan is 40 s old"}
	a := r.do(mustRequest(t, "GET", url+"/readyz", ""))
	if p := wantProblem(t, a, 503); len(p.Reasons) != 2 || !strings.Contains(p.Detail, "40 s old") || a.header.Get("Retry-After") == "" {
		t.Errorf("answer %v", a)
	}
	if n := commits.Load() - before; n != 2 {
		t.Errorf("%d probes in two seconds", n)
	}
	if a := r.do(mustRequest(t, "GET", url+"/healthz", "")); a.status != 200 {
		t.Errorf("alive: %v", a)
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t)
	r.deliver("push", "d-1", mainPush())
	r.deliver("push", "d-1", mainPush())
	r.deliver("made_up_by_somebody", "d-2", `{}`)
	body := string(r.do(mustRequest(t, "GET", r.url+"/metrics", "")).body)
	for _, want := range []string{
		`docket_deliveries_total{event="push",integration="github",outcome="accepted"} 1`,
		`docket_deliveries_total{event="push",integration="github",outcome="duplicate"} 1`,
		`docket_deliveries_total{event="other",integration="github",outcome="ignored"} 1`,
		`docket_http_request_duration_seconds_count{code="202",route="/hooks/:integration"} 2`,
		`docket_runs{state="queued"} 1`,
		`docket_outbox{state="pending"} `,
		`docket_store_bytes `,
		`docket_build_info{version="test"} 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestBackupAndVerify(t *testing.T) {
	r := newRig(t)
	r.deliver("push", "d-1", mainPush())
	for _, url := range []string{r.url, r.admin} {
		req := mustRequest(t, "POST", url+"/api/v1/backup", "")
		if url == r.url {
			req.Header.Set("Authorization", "Bearer "+adminToken)
		}
		a := r.do(req)
		if a.status != 200 || a.header.Get("Content-Type") != "application/octet-stream" {
			t.Fatalf("backup: %d %v", a.status, a.header)
		}
		file := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(file, a.body, 0o600); err != nil {
			t.Fatal(err)
		}
		st := storetest.MustOpenAt(t, file, store.Options{})
		if _, err := st.Receipt(ci.NewReceiptID("github", 0, "d-1")); err != nil {
			t.Errorf("the copy lacks the receipt: %v", err)
		}
	}
	if a := r.call(ci.Admin, "POST", "/verify", ""); a.status != 200 || strings.TrimSpace(string(a.body)) != `{"broken":[]}` {
		t.Errorf("verify: %v", a)
	}
}

func TestReload(t *testing.T) {
	r := newRig(t)
	wantProblem(t, r.call(ci.Admin, "POST", "/reload", ""), 409)
	var broken error
	s := server.New(server.Options{Store: r.store, Config: r.config, Reload: func(context.Context) error { return broken }})
	url := r.mustListen(s.AdminHandler())
	if a := r.do(mustRequest(t, "POST", url+"/api/v1/reload", "")); a.status != 200 {
		t.Errorf("reload: %v", a)
	}
	broken = ci.Wrap(ci.CodeInvalid, errors.New("x"), "docket.yaml:3:1: unknown key")
	if p := wantProblem(t, r.do(mustRequest(t, "POST", url+"/api/v1/reload", "")), 422); p.Detail != "docket.yaml:3:1: unknown key" {
		t.Errorf("a broken one: %+v", p)
	}
}
