package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"docket/store/ci"
)

// Ensure that a server without file descriptors goes on for those who are
// connected, says what is the matter, and heals by itself.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "acme/api", 7)
	d := newDaemon(t, nil, func(d *daemon) { d.troubled = true; d.addProject("api", repo, nil) })
	commit := repo.commit("refs/heads/main")
	d.start()
	kept := mustDial(t, d.addresses[0])
	if status, _ := kept.get(t, "/readyz"); status != http.StatusOK {
		t.Fatalf("%d", status)
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: uint64(len(fds) + 4), Max: before.Max}
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &low, nil); err != nil {
		t.Fatal(err)
	}
	var crowd []*wire
	for range 40 {
		crowd = append(crowd, mustDial(t, d.addresses[0]))
	}
	var why string
	eventually(t, "it says that no descriptors are left", func() bool {
		var status int
		status, why = kept.get(t, "/readyz")
		return status == http.StatusServiceUnavailable
	})
	mustContain(t, "the reason", why, "can open no more files", "LimitNOFILE")
	if status, body := kept.deliver(t, "d-1", repo.push("refs/heads/main", "", commit)); status != http.StatusAccepted {
		t.Fatalf("a delivery over an open connection: %d %s", status, body)
	}
	for _, c := range crowd {
		c.conn.Close()
	}
	d.waitReadiness(http.StatusOK)
	if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	d.waitRun("api-1", ci.Succeeded) // it was not started to fail
	d.mustDeliver(http.StatusAccepted, "d-2", repo.push("refs/heads/other", "", repo.commit("refs/heads/other")))
	d.waitRun("api-2", ci.Succeeded)
}

// wire is one connection that stays open.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
}

func mustDial(t *testing.T, address string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &wire{c, bufio.NewReader(c)}
}

func (w *wire) do(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	if err := req.Write(w.conn); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(w.in, req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}

func (w *wire) get(t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://docket"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.do(t, req)
}

func (w *wire) deliver(t *testing.T, id string, payload []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://docket/hooks/github", strings.NewReader(string(payload)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", ci.EventPush)
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-Hub-Signature-256", sign(ci.NewSecret("", hookSecret), payload))
	return w.do(t, req)
}
