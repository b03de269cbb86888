package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// metricNames returns the metrics of docket that expressions name.
func metricNames(exprs []string) (names []string) {
	for _, e := range exprs {
		for _, name := range regexp.MustCompile(`\bdocket_[a-z_]+`).FindAllString(e, -1) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func alertExprs(t *testing.T) (exprs []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(mustRead(t, "../../packaging/prometheus/alerts.yaml")), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("the rule %+v is not whole", r)
			}
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
}

func dashboardExprs(t *testing.T) (exprs []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(mustRead(t, "../../packaging/grafana/dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

// Ensure that what the example alerts and the dashboard name is in the metrics
// of a docket that has done something, and that each of docket's metrics keeps
// to Prometheus' conventions.
func TestMetricsOfARunningDocket(t *testing.T) {
	t.Parallel()
	r := newAppRig(t, nil)
	commit := r.repo.commit("refs/heads/main")
	r.hub.SetBranch("acme/api", "main", commit)
	r.deliver("push", r.repo.push("refs/heads/main", "", commit))
	r.waitCheck(commit, "success", 1)
	if a := r.call("POST", "/api/v1/recover", "", obj{}); a.status != http.StatusOK {
		t.Fatalf("recover: %v", a)
	}
	resp, err := http.Post("http://"+r.addresses[0]+"/hooks/github", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	text := string(r.call("GET", "/metrics", "", nil).body)

	series := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if name := regexp.MustCompile(`^docket_[a-z_]+`).FindString(line); name != "" {
			series[name] = true
		}
	}
	exprs := append(alertExprs(t), dashboardExprs(t)...)
	if names := metricNames(exprs); len(names) < 20 {
		t.Errorf("only %q are named", names)
	} else {
		for _, name := range names {
			if !series[name] {
				t.Errorf("%s is named, and is not in the metrics", name)
			}
		}
	}
	help := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# (HELP|TYPE) (docket_[a-z_]+) (.*)$`).FindAllStringSubmatch(text, -1) {
		name, rest := m[2], m[3]
		if m[1] == "HELP" {
			help[name] = strings.HasSuffix(rest, ".")
			continue
		}
		if !help[name] {
			t.Errorf("%s has no help that is a sentence", name)
		}
		if total := strings.HasSuffix(name, "_total"); total != (rest == "counter") {
			t.Errorf("%s is a %s", name, rest)
		}
		for _, unit := range []string{"_ms", "_milliseconds", "_minutes", "_kb", "_mb", "_percent"} {
			if strings.HasSuffix(name, unit) {
				t.Errorf("%s is not in a base unit", name)
			}
		}
	}
	for _, want := range []string{
		`docket_runs_ended_total{project="api",state="succeeded"} 1`, `docket_run_duration_seconds_count{state="succeeded"} 1`,
		"docket_queue_oldest_age_seconds 0", "docket_outbox_oldest_age_seconds ", `docket_refusals_total{integration="github",reason="signature"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
