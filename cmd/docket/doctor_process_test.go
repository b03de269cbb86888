package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"docket/store/ci"
)

// newQuietReceiver counts what is sent to it.
func newQuietReceiver(t *testing.T, sent *int) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *sent++ }))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Ensure that at a running docket the doctor sees a wrong secret, what is
// paused, and whether public_url leads to it; and that it says what it sees of
// the store once that is stopped.
func TestDoctorAtARunningDocket(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Docket-Instance", "another")
	}))
	t.Cleanup(other.Close)
	var d *daemon
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := http.Get("http://" + d.addresses[0] + "/healthz")
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		resp.Body.Close()
		w.Header().Set("Docket-Instance", resp.Header.Get("Docket-Instance"))
	}))
	t.Cleanup(front.Close)
	d = newDaemon(t, nil, func(d *daemon) {
		d.addProject("api", repo, nil)
		d.config["public_url"] = front.URL
	})
	d.start()
	d.mustDeliver(http.StatusAccepted, "d-1", repo.push("refs/heads/main", "", repo.commit("refs/heads/main")))
	d.waitRun("api-1", ci.Succeeded)
	req, err := http.NewRequest("POST", "http://"+d.addresses[0]+"/hooks/github", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"push"}, "X-Github-Delivery": {"d-2"},
		"X-Hub-Signature-256": {"sha256=" + strings.Repeat("0", 64)},
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("a wrong signature: %d", resp.StatusCode)
	}
	d.output("runs", "pause")
	res := d.output("doctor", "-o", "json")
	found := findingsOf(t, res.out)
	mustFind(t, found, "server", stateOK, "it runs")
	mustFind(t, found, "server", stateWrong, "1 delivery of github was refused", "webhook_secrets")
	mustFind(t, found, "server", stateWarning, "docket runs resume")
	mustFind(t, found, "server", stateOK, "the last delivery of github came at")
	mustFind(t, found, "public_url", stateOK, "it is this docket")
	if res.code != exitFailed {
		t.Errorf("exit code %d", res.code)
	}

	d.config["public_url"] = other.URL
	d.configure()
	mustFind(t, findingsOf(t, d.output("doctor", "-o", "json").out), "public_url", stateWrong, "answered by another docket")
	u, _ := url.Parse(other.URL)
	d.config["public_url"] = "https://" + u.Host
	d.configure()
	mustFind(t, findingsOf(t, d.output("doctor", "-o", "json").out), "public_url", stateWrong, "cannot be reached")

	d.stop()
	found = findingsOf(t, d.output("doctor", "-o", "json").out)
	mustFind(t, found, "server", stateWarning, "no server runs")
	mustFind(t, found, "server", stateOK, "the store opens")
	mustFind(t, found, "server", stateOK, "the last delivery of github came at")
}
