package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"docket/store/ci"
)

// Ensure that every bad delivery gets its own status and a problem+json, and
// that nothing of it is stored.
func TestRefusedDeliveries(t *testing.T) {
	const broken = `{"ref": ` // its only fault may be seen after the signature
	withHeader := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	without := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Del(name) }
	}
	twice := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Add(name, value) }
	}
	signed := func(body string) func(*http.Request) {
		return func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			r.GetBody = nil
			r.Header.Set("X-Hub-Signature-256", sign(hookSecret, body))
		}
	}
	unsigned := func(body string) func(*http.Request) {
		return func(r *http.Request) {
			signed(body)(r)
			r.Header.Set("X-Hub-Signature-256", sign("wrong", body))
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }

	tests := map[string][]struct {
		reason string // of the metric
		status int
		change []func(*http.Request)
	}{
		"an unknown integration": {
			{"integration", 404, []func(*http.Request){func(r *http.Request) { r.URL.Path = "/hooks/other" }}},
			{"integration", 404, []func(*http.Request){func(r *http.Request) { r.URL.Path = "/hooks/github/more" }}},
		},
		"an unknown integration comes before a wrong method": {
			{"integration", 404, []func(*http.Request){func(r *http.Request) { r.URL.Path = "/hooks/other"; r.Method = http.MethodGet }}},
		},
		"a method other than POST": {
			{"method", 405, []func(*http.Request){func(r *http.Request) { r.Method = http.MethodGet }}},
			{"method", 405, []func(*http.Request){func(r *http.Request) { r.Method = http.MethodPut }}},
			{"method", 405, []func(*http.Request){func(r *http.Request) { r.Method = "BREW" }}},
		},
		"a wrong method comes before a wrong content type": {
			{"method", 405, []func(*http.Request){func(r *http.Request) { r.Method = http.MethodPut }, without("Content-Type")}},
		},
		"a content type that is neither JSON nor a form": {
			{"content_type", 415, []func(*http.Request){without("Content-Type")}},
			{"content_type", 415, []func(*http.Request){withHeader("Content-Type", "text/plain")}},
			{"content_type", 415, []func(*http.Request){withHeader("Content-Encoding", "gzip")}},
		},
		"a content type comes before the size": {
			{"content_type", 415, []func(*http.Request){withHeader("Content-Type", "text/plain"), signed(strings.Repeat("x", 1<<20+1))}},
		},
		"a body over the limit, announced": {
			{"size", 413, []func(*http.Request){signed(`"` + strings.Repeat("x", 1<<20-1) + `"`)}},
		},
		"a body over the limit, in chunks": {
			{"size", 413, []func(*http.Request){signed(`"` + strings.Repeat("x", 1<<20-1) + `"`), func(r *http.Request) { r.ContentLength = -1 }}},
		},
		"the size comes before the signature": {
			{"size", 413, []func(*http.Request){unsigned(strings.Repeat("x", 1<<20+1))}},
		},
		"no signature, or one that does not hold": {
			{"signature", 401, []func(*http.Request){without("X-Hub-Signature-256")}},
			{"signature", 401, []func(*http.Request){withHeader("X-Hub-Signature-256", "sha256=abc")}},
			{"signature", 401, []func(*http.Request){withHeader("X-Hub-Signature-256", sign("wrong", mainPush()))}},
			{"signature", 401, []func(*http.Request){twice("X-Hub-Signature-256", sign(hookSecret, mainPush()))}},
			{"signature", 401, []func(*http.Request){without("X-Hub-Signature-256"), withHeader("X-Hub-Signature", "sha1=355e155fc3d10c4e5f2c6086a01281d2e947d932")}},
		},
		"the signature comes before the headers": {
			{"signature", 401, []func(*http.Request){withHeader("X-Hub-Signature-256", "sha256="), without("X-GitHub-Event")}},
			{"signature", 401, []func(*http.Request){withHeader("X-Hub-Signature-256", "sha256="), without("X-GitHub-Delivery")}},
		},
		"a body is not decoded before its signature holds": {
			{"signature", 401, []func(*http.Request){unsigned(broken)}},
			{"signature", 401, []func(*http.Request){form, unsigned("payload=%zz")}},
			{"signature", 401, []func(*http.Request){unsigned("\xff")}},
		},
		"no event": {
			{"header", 400, []func(*http.Request){without("X-GitHub-Event")}},
			{"header", 400, []func(*http.Request){withHeader("X-GitHub-Event", "")}},
			{"header", 400, []func(*http.Request){twice("X-GitHub-Event", "push")}},
			{"header", 400, []func(*http.Request){withHeader("X-GitHub-Event", "pu\u00dfh")}},
		},
		"no delivery id, or one that cannot be an id": {
			{"header", 400, []func(*http.Request){without("X-GitHub-Delivery")}},
			{"header", 400, []func(*http.Request){withHeader("X-GitHub-Delivery", "")}},
			{"header", 400, []func(*http.Request){withHeader("X-GitHub-Delivery", strings.Repeat("d", 201))}},
			{"header", 400, []func(*http.Request){twice("X-GitHub-Delivery", "d-2")}},
		},
		"the headers come before the JSON": {
			{"header", 400, []func(*http.Request){signed(broken), without("X-GitHub-Event")}},
		},
		"a body that is not JSON": {
			{"json", 400, []func(*http.Request){signed(broken)}},
			{"json", 400, []func(*http.Request){signed("")}},
			{"json", 400, []func(*http.Request){signed(mainPush() + "x")}},
			{"json", 400, []func(*http.Request){signed("{\"ref\":\"\xff\"}")}},
			{"json", 400, []func(*http.Request){form, signed(mainPush())}},
			{"json", 400, []func(*http.Request){form, signed("payload=")}},
			{"json", 400, []func(*http.Request){form, signed("payload={}&payload={}")}},
			{"json", 400, []func(*http.Request){signed("payload=%7B%7D")}},
			{"json", 400, []func(*http.Request){signed(`{"repository":{"id":-7,"full_name":"acme/api"}}`)}},
			{"json", 400, []func(*http.Request){signed(`{"repository":{"id":1.5,"full_name":"acme/api"}}`)}},
		},
		"an installation of nobody": {
			{"installation", 403, []func(*http.Request){signed(strings.Replace(mainPush(), `"ref"`, `"installation":{"id":12345},"ref"`, 1))}},
		},
		"a repository of no project": {
			{"repository", 403, []func(*http.Request){signed(strings.Replace(mainPush(), "acme/api", "acme/other", 1))}},
			{"repository", 403, []func(*http.Request){signed(strings.Replace(mainPush(), "acme/api", "acme/ap\u0131", 1))}},
		},
	}
	for name, rows := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for i, row := range rows {
				req := r.delivery(r.url, "push", "d-1", mainPush())
				for _, change := range row.change {
					change(req)
				}
				a := r.do(req)
				p := wantProblem(t, a, row.status)
				if row.status == 405 && a.header.Get("Allow") != "POST" {
					t.Errorf("row %d: Allow is %q", i, a.header.Get("Allow"))
				}
				if a.header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("row %d: no nosniff", i)
				}
				if got := r.receipts(); len(got) != 0 {
					t.Fatalf("row %d: a receipt was stored: %+v", i, got)
				}
				list := mustDecode[struct {
					Refusals []struct {
						Reason, Detail string
						Status         int
					}
				}](t, r.call(ci.Viewer, "GET", "/refusals?limit=1", "")).Refusals
				if len(list) != 1 || list[0].Reason != row.reason || list[0].Status != row.status || list[0].Detail != p.Detail {
					t.Errorf("row %d: the list of refusals says %+v, want %s", i, list, row.reason)
				}
			}
			metrics := r.do(mustRequest(t, "GET", r.url+"/metrics", "")).body
			if want := []byte(`reason="` + rows[0].reason + `"} `); !bytes.Contains(metrics, want) {
				t.Errorf("the metrics do not have %s", want)
			}
			if strings.Contains(r.log.String(), "head_commit") {
				t.Error("the log has a body")
			}
			// Whatever was refused, its id is still free.
			if a := r.deliver("push", "d-1", mainPush()); a.status != 202 {
				t.Errorf("the good delivery afterwards: %v", a)
			}
		})
	}
}

// Ensure that a body that is announced too large is refused before it is sent.
func TestTooLargeIsRefusedUnread(t *testing.T) {
	r := newRig(t)
	req := r.delivery(r.url, "push", "d-1", "")
	pr, pw := io.Pipe() // nobody ever writes
	defer pw.Close()
	req.Body, req.ContentLength, req.GetBody = pr, 1<<40, nil
	wantProblem(t, r.do(req), 413)
	if !strings.Contains(r.log.String(), "bytes=1099511627776") {
		t.Errorf("the log does not have the size: %s", r.log)
	}
}

// Ensure that the list of refusals is bounded and newest first.
func TestRefusalsAreBounded(t *testing.T) {
	r := newRig(t)
	for range 130 {
		req := r.delivery(r.url, "push", "d-1", "{}")
		req.Header.Del("X-Hub-Signature-256")
		wantProblem(t, r.do(req), 401)
	}
	wantProblem(t, r.do(mustRequest(t, "POST", r.url+"/hooks/other", "{}")), 404)
	list := mustDecode[struct{ Refusals []struct{ Reason string } }](t, r.call(ci.Viewer, "GET", "/refusals?limit=200", "")).Refusals
	if len(list) != 100 || list[0].Reason != "integration" || list[99].Reason != "signature" {
		t.Errorf("%d refusals, the first %+v", len(list), list[0])
	}
}
