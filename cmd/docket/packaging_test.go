package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"docket/dispatcher/tracer"
)

// unit returns the settings of a unit of systemd.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for line := range strings.Lines(mustRead(t, "../../packaging/systemd/"+name)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			settings[key] = value
		}
	}
	return settings
}

// Ensure that systemd takes the units as they are.
func TestUnitsVerify(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not there: install the package systemd to have the units checked")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"docket.service", "docket.socket"} {
		text := strings.ReplaceAll(mustRead(t, "../../packaging/systemd/"+name), "/usr/bin/docket", exe)
		mustWrite(t, filepath.Join(dir, name), text)
	}
	out, err := exec.Command(program, "verify", "--man=no", filepath.Join(dir, "docket.service"), filepath.Join(dir, "docket.socket")).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// Ensure that the units agree with what docket does by itself: where it
// listens, and how long it takes to end.
func TestUnitsAgreeWithDocket(t *testing.T) {
	socket, service := unit(t, "docket.socket"), unit(t, "docket.service")
	if socket["ListenStream"] != defaultAddress {
		t.Errorf("docket.socket listens on %s, docket on %s", socket["ListenStream"], defaultAddress)
	}
	start, _ := starterOf("github")
	mustContain(t, "what docket init writes", initConfig(start, true), "- address: "+socket["ListenStream"], "data_dir: /var/lib/docket")
	cfg := mustParse(t, "data_dir: /d\n", nil)
	stop, err := strconv.Atoi(strings.TrimSuffix(service["TimeoutStopSec"], "s"))
	if least := int((cfg.ShutdownGrace + httpGrace + tracer.FlushTime).Seconds()); err != nil || stop <= least {
		t.Errorf("TimeoutStopSec is %s, and docket takes up to %d s", service["TimeoutStopSec"], least)
	}
	for key, want := range map[string]string{
		"Type": "notify", "KillMode": "mixed", "StateDirectory": "docket", "Requires": "docket.socket", "OOMPolicy": "continue",
		"ConditionPathExists": systemConfig, "NoNewPrivileges": "yes", "ProtectSystem": "strict", "PrivateTmp": "yes",
	} {
		if service[key] != want {
			t.Errorf("docket.service has %s=%s, want %s", key, service[key], want)
		}
	}
}

// Ensure that what stands under packaging is in the Debian package, or is there
// to build and to test it.
func TestPackageHasItsFiles(t *testing.T) {
	build := mustRead(t, "../../packaging/nfpm.yaml") + mustRead(t, "../../packaging/deb/build")
	err := filepath.WalkDir("../../packaging", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "../../")
		switch {
		case err != nil || d.IsDir() || filepath.Dir(name) == "packaging/deb":
		case slices.Contains(strings.Fields("Containerfile nfpm.yaml licences.go vulncheck vulnerabilities"), d.Name()) || strings.Contains(name, "test"):
		case !strings.Contains(build, " "+name+"\n") && !strings.Contains(build, " "+name+" "):
			t.Errorf("packaging/nfpm.yaml does not pack %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that each command has a manual page.
func TestManualPages(t *testing.T) {
	w := newWorld(t)
	w.must("man", w.dir)
	for page, text := range map[string]string{"docket.1": "Exit codes", "docket-runs-start.1": "--branch", "docket-serve.1": "SIGUSR2"} {
		mustContain(t, page, strings.ReplaceAll(mustRead(t, w.path(page)), `\-`, "-"), text)
	}
	if r := w.run("man", w.path("nowhere")); r.code != exitFailed || !strings.Contains(r.err, "name a directory that exists") {
		t.Errorf("a directory that is not there: %+v", r)
	}
}

// Ensure that a secret can be a credential of the service manager, and that
// each way to get none is told apart.
func TestCredential(t *testing.T) {
	config := func(name string) string {
		return "data_dir: /d\nadmin_token: {credential: " + name + "}\n"
	}
	files := secretFiles(map[string]string{"/run/credentials/docket.service/admin": "dkt_x\n"})
	service := func(string) string { return "/run/credentials/docket.service" }
	cfg, err := parseConfig("docket.yaml", config("admin"), service, files)
	if err != nil || cfg.AdminToken.Reveal() != "dkt_x" || cfg.AdminToken.Name != "credential admin" {
		t.Fatalf("%+v %v", cfg, err)
	}
	for name, tt := range map[string]struct {
		credential string
		getenv     func(string) string
		want       string
	}{
		"no service":     {"admin", noEnv, "2:27: docket.yaml: admin_token: there are no credentials"},
		"none like that": {"other", service, "LoadCredential=other:PATH"},
		"a path":         {"../admin", service, `no credential can be named "../admin"`},
		"an empty name":  {"''", service, "is empty"},
	} {
		_, err := parseConfig("docket.yaml", config(tt.credential), tt.getenv, files)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Ensure that the examples of proxies let a delivery of any allowed size
// through, stream, keep no connection to docket, and say who the client is.
func TestProxyExamples(t *testing.T) {
	mustContain(t, "the Caddyfile", mustRead(t, "../../packaging/caddy/Caddyfile"),
		"max_size 25MiB", "reverse_proxy "+defaultAddress, "flush_interval -1", "keepalive off")
	mustContain(t, "docket.conf", mustRead(t, "../../packaging/nginx/docket.conf"),
		"client_max_body_size 25m;", "proxy_pass http://"+defaultAddress+";", "proxy_buffering off;", "proxy_set_header Connection close;",
		"proxy_next_upstream off;", "proxy_set_header X-Forwarded-For $remote_addr;")
}

// Ensure that the container is not root's, has a process 1 that reaps, and
// starts what there is.
func TestContainerfile(t *testing.T) {
	text := mustRead(t, "../../packaging/Containerfile")
	mustContain(t, "the Containerfile", text, "\nUSER 10001:10001\n", `ENTRYPOINT ["/usr/bin/tini", "--", "/usr/bin/docket"]`,
		`CMD ["serve", "-c", "`+systemConfig+`"]`, "/healthz", ".build/dist/docket-linux-${ARCH}")
	if strings.Index(text, "\nUSER ") > strings.Index(text, "\nENTRYPOINT ") {
		t.Error("the user is set after the entry point")
	}
}

// Ensure that trusted proxies are networks that somebody meant.
func TestTrustedProxies(t *testing.T) {
	cfg := mustParse(t, "data_dir: /d\ntrusted_proxies: [10.0.0.0/8, 192.0.2.7, 'fd00::/8']\n", nil)
	if got := fmt.Sprint(cfg.TrustedProxies); got != "[10.0.0.0/8 192.0.2.7/32 fd00::/8]" {
		t.Errorf("trusted proxies %s", got)
	}
	for text, want := range map[string]string{
		"[]":                      "is an empty list",
		"[example.org]":           `2:19: trusted_proxies: "example.org" is no network`,
		"[10.1.0.0/8]":            "write 10.0.0.0/8",
		"[0.0.0.0/0]":             "0.0.0.0/0 is everybody",
		"[10.0.0.1, 10.0.0.1/32]": "twice",
		"10.0.0.0/8":              "trusted_proxies",
	} {
		_, err := parseConfig("docket.yaml", "data_dir: /d\ntrusted_proxies: "+text+"\n", noEnv, secretFiles(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
