package forge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/dispatcher/forge"
	"docket/store/ci"
)

// Ensure that no answers keep docket listing for ever: neither pages that lead
// back to where it was, nor pages without an end.
func TestAListingEnds(t *testing.T) {
	var asked atomic.Int64
	var next func(n int64) string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, r.Host, r.URL.Path, next(n)))
		body := `[{"name": "b", "commit": {"sha": "` + commit + `"}, "id": 1, "config": {"url": "https://other.example.org/"}}]`
		if strings.HasSuffix(r.URL.Path, "/deliveries") {
			body = fmt.Sprintf(`[{"id": %d, "guid": "g", "delivered_at": %q}]`, n, time.Now().Format(time.RFC3339))
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	r := newRig(t)
	r.useToken("t")
	r.config.Integrations[0].APIURL = srv.URL + "/"
	back := func(int64) string { return "page=2" }
	for what, tc := range map[string]struct {
		next  func(n int64) string
		ask   func() error
		calls int64 // at most
	}{
		"heads that lead back": {back, func() error { _, err := r.Heads(t.Context(), r.project()); return err }, 2},
		"hooks that lead back": {back, func() error { _, err := r.Hook(t.Context(), r.project(), "https://ci.example.org"); return err }, 2},
		"heads without end": {
			func(n int64) string { return "page=" + strconv.FormatInt(n+1, 10) },
			func() error { _, err := r.Heads(t.Context(), r.project()); return err }, 2001,
		},
		"deliveries in a circle": {
			func(n int64) string { return "cursor=" + []string{"a", "b"}[n%2] },
			func() error {
				_, err := r.Deliveries(t.Context(), "github", forge.Hook{ID: 1, Repository: "acme/api"}, time.Time{}, 0)
				return err
			}, 2000,
		},
	} {
		asked.Store(0)
		next = tc.next
		if err := tc.ask(); ci.CodeOf(err) != ci.CodeUnavailable || !strings.Contains(ci.MessageOf(err), "does not end") {
			t.Errorf("%s: %v", what, err)
		}
		if n := asked.Load(); n == 0 || n > tc.calls {
			t.Errorf("%s: %d calls, want at most %d", what, n, tc.calls)
		}
	}
}
