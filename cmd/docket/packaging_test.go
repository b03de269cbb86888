package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
		t.Skip("systemd-analyze is not there")
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
	if least := int((cfg.ShutdownGrace + httpGrace).Seconds()); err != nil || stop <= least {
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

// Ensure that everything that goes into the package is there or is built.
func TestPackageHasItsFiles(t *testing.T) {
	sources := regexp.MustCompile(`(?m)(?:src|postinstall|preremove|postremove): (\S+)`).FindAllStringSubmatch(mustRead(t, "../../packaging/nfpm.yaml"), -1)
	if len(sources) < 12 {
		t.Fatalf("only %d files were found in nfpm.yaml", len(sources))
	}
	for _, m := range sources {
		if strings.HasPrefix(m[1], ".build/") {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("nfpm.yaml packs %s: %v", m[1], err)
		}
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
