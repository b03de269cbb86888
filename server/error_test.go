package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"docket/store/ci"
)

func TestErrors(t *testing.T) {
	cause := errors.New("secret-cause")
	tests := map[string]struct {
		err    error
		status int
		detail string
	}{
		"malformed":           {ci.Errorf(ci.CodeMalformed, "m"), 400, "m"},
		"unauthenticated":     {ci.Errorf(ci.CodeUnauthenticated, "m"), 401, "m"},
		"forbidden":           {ci.Errorf(ci.CodeForbidden, "m"), 403, "m"},
		"not found":           {ci.Errorf(ci.CodeNotFound, "m"), 404, "m"},
		"method not allowed":  {ci.Errorf(ci.CodeMethodNotAllowed, "m"), 405, "m"},
		"conflict":            {ci.Errorf(ci.CodeConflict, "m"), 409, "m"},
		"too large":           {ci.Errorf(ci.CodeTooLarge, "m"), 413, "m"},
		"unsupported":         {ci.Errorf(ci.CodeUnsupportedMedia, "m"), 415, "m"},
		"invalid":             {ci.Errorf(ci.CodeInvalid, "m"), 422, "m"},
		"too many":            {ci.Errorf(ci.CodeTooMany, "m"), 429, "m"},
		"unavailable":         {ci.Errorf(ci.CodeUnavailable, "m"), 503, "m"},
		"internal":            {ci.Wrap(ci.CodeInternal, cause, "m"), 500, "m"},
		"a wrapped one":       {fmt.Errorf("x: %w", ci.Wrap(ci.CodeConflict, cause, "m")), 409, "m"},
		"any other error":     {cause, 500, "docket met a fault of its own; the server's log has the cause"},
		"echo's, wrapped":     {fmt.Errorf("x: %w", echo.NewHTTPError(http.StatusRequestEntityTooLarge, "too much")), 413, "too much"},
		"echo's, wrapped 404": {fmt.Errorf("x: %w", echo.ErrNotFound), 404, "there is nothing at /; the API is under /api/v1"},
		"echo's teapot":       {echo.NewHTTPError(http.StatusTeapot, "short"), 500, "docket met a fault of its own; the server's log has the cause"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			url := r.mustListen(r.server.HandlerThat(tt.err, nil))
			a := r.do(mustRequest(t, "GET", url+"/", ""))
			if p := wantProblem(t, a, tt.status); p.Detail != tt.detail || p.Title != http.StatusText(tt.status) {
				t.Errorf("problem %+v", p)
			}
			if tt.status >= 500 != strings.Contains(r.log.String(), "request failed") {
				t.Errorf("the log: %s", r.log)
			}
			if strings.Contains(string(a.body), "secret-cause") {
				t.Errorf("the cause reached the client: %s", a.body)
			}
			if (a.header.Get("Retry-After") != "") != (tt.status == 503) {
				t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
			}
		})
	}
}

// Ensure that a panic is a 500 with its stack in the log, and the server goes on.
func TestPanic(t *testing.T) {
	r := newRig(t)
	url := r.mustListen(r.server.HandlerThat(nil, "boom"))
	for range 2 {
		wantProblem(t, r.do(mustRequest(t, "GET", url+"/", "")), 500)
	}
	if log := r.log.String(); !strings.Contains(log, "panic: boom") || !strings.Contains(log, "export_test.go") {
		t.Errorf("the log: %s", log)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/nothing", "/api/v1", "/api/v1/nothing", "/api/v2/runs", "/hooks", "/hooks/"} {
		wantProblem(t, r.do(mustRequest(t, "GET", r.url+path, "")), 404)
	}
	a := r.call(ci.Admin, "DELETE", "/runs", "")
	wantProblem(t, a, 405)
	if !strings.Contains(a.header.Get("Allow"), "GET") {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}
}

// Ensure that what no header can promise is not believed.
func TestNothingIsTakenFromForwardingHeaders(t *testing.T) {
	r := newRig(t)
	req := r.delivery(r.url, "push", "d-1", "{}")
	req.Header.Del("X-Hub-Signature-256")
	for _, h := range []string{"X-Forwarded-For", "X-Real-Ip", "X-Request-Id"} {
		req.Header.Set(h, "203.0.113.9")
	}
	a := r.do(req)
	if a.header.Get("X-Request-Id") != "" || strings.Contains(r.log.String(), "203.0.113.9") {
		t.Errorf("a header was believed: %v %s", a.header, r.log)
	}
	res, err := r.client.Head(r.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 200 || len(b) != 0 {
		t.Errorf("HEAD: %d %s", res.StatusCode, b)
	}
}
