package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"docket/server/gitea"
	"docket/store/ci"
)

// mustSigned checks a delivery's signature on its own, over exactly the bytes.
func mustSigned(t *testing.T, secret string, r *http.Request) []byte {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Hub-Signature-256") != want {
		t.Errorf("signature %q, want %q", r.Header.Get("X-Hub-Signature-256"), want)
	}
	return body
}

// Ensure that a payload is signed with the first secret and delivered to the
// first listener that serves hooks, and that the reply decides the exit code.
func TestHookSend(t *testing.T) {
	payload := "{\"ref\": \"refs/heads/main\", \"m\": \"fix … 😊\"}\r\n"
	status := http.StatusAccepted
	var seen []*http.Request
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body := mustSigned(t, "first", r); string(body) != payload {
			t.Errorf("delivered %q", body)
		}
		seen = append(seen, r)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"outcome":"accepted"}`)
	}))
	defer receiver.Close()
	address := strings.TrimPrefix(receiver.URL, "http://")

	w := newWorld(t)
	file := w.write("push.json", payload)
	w.write("one", "first\n")
	w.write("two", "second\n")
	_, port, _ := strings.Cut(address, ":")
	config := w.write("docket.yaml", fmt.Sprintf(`data_dir: d
listen:
  - {address: '127.0.0.1:1', serve: [api]}
  - {address: '0.0.0.0:%s', serve: [hooks]}
integrations:
  - {name: gh, webhook_secrets: [{file: one}, {file: two}]}
`, port))
	out := w.must("hook", "send", "-c", config, "--event", "push", file)
	if out != "202 Accepted\n{\n  \"outcome\": \"accepted\"\n}\n" {
		t.Errorf("printed %q", out)
	}
	guid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if r := seen[0]; r.URL.Path != "/hooks/gh" || r.Header.Get("X-GitHub-Event") != "push" ||
		r.Header.Get("Content-Type") != "application/json" || !guid.MatchString(r.Header.Get("X-GitHub-Delivery")) {
		t.Errorf("got %s %v", r.URL, r.Header)
	}

	w.stdin = payload
	w.must("hook", "send", "-c", config, "--event", "push", "--delivery", "d/1?", "--integration", "gh", "-")
	w.must("hook", "send", "-c", config, "--event", "push", "--url", receiver.URL+"/elsewhere", "-")
	if seen[1].Header.Get("X-GitHub-Delivery") != "d/1?" || seen[2].URL.Path != "/elsewhere" {
		t.Errorf("got %v and %s", seen[1].Header, seen[2].URL)
	}

	status = http.StatusForbidden
	r := w.run("hook", "send", "-c", config, "--event", "push", file)
	if r.code != exitFailed || !strings.HasPrefix(r.out, "403 Forbidden\n") || !strings.Contains(r.err, "was refused with 403 Forbidden; the reply says why") {
		t.Errorf("got %+v", r)
	}
}

// Ensure that a delivery to a Gitea's integration looks like Gitea's: with the
// same words under each name, and its bare signature.
func TestHookSend_AsGitea(t *testing.T) {
	payload := `{"ref":"refs/heads/main"}`
	var seen http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mustSigned(t, "first", r)
		seen = r.Header
	}))
	defer receiver.Close()
	w := newWorld(t)
	file := w.write("push.json", payload)
	w.write("one", "first\n")
	config := w.write("docket.yaml", `data_dir: d
integrations:
  - {name: tea, provider: gitea, api_url: 'https://git.example.org/api/v1/', webhook_secrets: [{file: one}]}
`)
	w.must("hook", "send", "-c", config, "--event", "push", "--delivery", "d-1", "--url", receiver.URL, file)
	for name, want := range map[string]string{
		"X-Gitea-Event": "push", "X-Gitea-Delivery": "d-1", "X-GitHub-Event": "push", "X-GitHub-Delivery": "d-1",
		"X-Gitea-Signature": strings.TrimPrefix(seen.Get("X-Hub-Signature-256"), "sha256="),
	} {
		if got := seen.Get(name); got != want || want == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if secret, err := gitea.Verify([]ci.Secret{ci.NewSecret("one", "first")}, seen, []byte(payload)); err != nil || secret != "one" {
		t.Errorf("the signature: %q, %v", secret, err)
	}
}

// Ensure that what stands in the way of a delivery is said.
func TestHookSendTrouble(t *testing.T) {
	w := newWorld(t)
	file := w.write("push.json", "{}")
	w.write("s", "k\n")
	integration := "integrations:\n  - {name: a, webhook_secrets: [{file: s}]}\n"
	for what, c := range map[string]struct {
		config, args, want string
		code               int
	}{
		"several integrations": {integration + "  - {name: b, webhook_secrets: [{file: s}]}\n", file, "choose with --integration one of a, b", exitUsage},
		"an unknown one":       {integration, "--integration x " + file, `has no integration "x"; it has a`, exitFailed},
		"none":                 {"", file, "has no integration; add one", exitFailed},
		"no file":              {integration, w.path("none"), "none does not exist; create it", exitFailed},
		"no listener":          {integration + "listen: [{address: ':1', serve: [ui]}]\n", file, "no listener serves hooks; add one", exitFailed},
		"any port":             {integration + "listen: [{address: ':0'}]\n", file, "takes any free port; name its address with --url", exitFailed},
		"no server":            {integration + "listen: [{address: '127.0.0.1:1'}]\n", file, "start the server with `docket serve`", exitFailed},
		"a bad url":            {integration, "--url ftp://x " + file, `--url "ftp://x" must begin with`, exitUsage},
	} {
		config := w.write("docket.yaml", "data_dir: d\n"+c.config)
		r := w.run(append([]string{"hook", "send", "-c", config, "--event", "push"}, strings.Fields(c.args)...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: got %+v, want %q", what, r, c.want)
		}
	}
}

// Ensure that an IPv6 listener on every address is reached on this machine.
func TestHookURL(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:80": "http://127.0.0.1:80/hooks/a", "[::]:80": "http://127.0.0.1:80/hooks/a", ":80": "http://127.0.0.1:80/hooks/a",
		"[::1]:80": "http://[::1]:80/hooks/a", "ci.example:80": "http://ci.example:80/hooks/a",
	} {
		got, err := hookURL(&ci.Config{Listen: []ci.Listen{{Address: address}}}, "a")
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", address, got, err, want)
		}
	}
}

// Ensure that GUIDs carry their time where version 1 has it (RFC 9562, appendix A.1).
func TestGUIDCarriesItsTime(t *testing.T) {
	at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	a, b := newGUID(at), newGUID(at)
	if !strings.HasPrefix(a, "c232ab00-9414-11ec-") || a == b {
		t.Errorf("got %s and %s", a, b)
	}
}
