package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store/ci"
)

// Ensure that the endpoint is taken as others take it, and what is left out
// has its default.
func TestTraces(t *testing.T) {
	for text, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c.example.org/": "https://c.example.org/v1/traces",
		"https://c.example.org/otlp": "https://c.example.org/otlp/v1/traces", "https://c.example.org/x/v1/traces/": "https://c.example.org/x/v1/traces",
	} {
		cfg := mustParse(t, "data_dir: /d\ntraces: {endpoint: \""+text+"\"}\n", nil)
		if d := cmp.Diff(&ci.Traces{Endpoint: want, Sample: 1}, cfg.Traces); d != "" {
			t.Error(d)
		}
	}
	cfg := mustParse(t, "data_dir: /d\ntraces:\n  endpoint: http://c\n  headers: {x-key: {file: /k}}\n  sample: .25\n", map[string]string{"/k": "Basic a b\n"})
	if h := cfg.Traces.Headers["X-Key"]; h.Reveal() != "Basic a b" || cfg.Traces.Sample != .25 {
		t.Errorf("%+v", cfg.Traces)
	}
	if cfg := mustParse(t, "data_dir: /d\n", nil); cfg.Traces != nil {
		t.Errorf("traces that nobody asked for: %+v", cfg.Traces)
	}
}

func TestFaultsOfTraces(t *testing.T) {
	with := func(s string) string { return "data_dir: /d\ntraces: {endpoint: \"http://c\", " + s + "}\n" }
	at := func(s string) string { return "data_dir: /d\ntraces: {endpoint: \"" + s + "\"}\n" }
	runFaultCases(t, map[string]faultCase{
		"no endpoint":           {"data_dir: /d\ntraces: {}\n", []string{"2:9: traces has no endpoint; add one, as in `endpoint: https://collector.example.org:4318`"}},
		"an address alone":      {"data_dir: /d\ntraces: http://c\n", []string{"2:9: traces must be a mapping of keys to values, but this is text"}},
		"an unknown key":        {with("sampel: 1"), []string{`2:32: traces has no key "sampel" (did you mean "sample"?); the keys are endpoint, headers, sample`}},
		"no scheme":             {at("collector:4318"), []string{`2:20: traces: endpoint: "collector:4318" must begin with http:// or https://`}},
		"a key in the query":    {at("http://c/?key=1"), []string{"2:20: traces: endpoint must end with its path; remove what follows"}},
		"a password":            {at("http://a:b@c/"), []string{`2:20: traces: endpoint: "http://***@c/" holds credentials`}},
		"the port of gRPC":      {at("http://c:4317"), []string{"2:20: traces: the port 4317 is OTLP over gRPC, and docket speaks it over HTTP; "}},
		"a sample of 2":         {with("sample: 2"), []string{"2:40: traces: sample must be a number from 0 to 1, as in 0.1"}},
		"a sample below 0":      {with("sample: -0.5"), []string{"2:40: traces: sample must be a number from 0 to 1"}},
		"a sample of none":      {with("sample: .nan"), []string{"2:40: traces: sample must be a number from 0 to 1"}},
		"a sample in words":     {with("sample: all"), []string{"2:40: traces: sample must be a number from 0 to 1"}},
		"a literal header":      {with("headers: {X-Key: hunter2}"), []string{"2:49: traces: headers: X-Key is written here as it is; put the secret into a file"}},
		"a header of two lines": {with("headers: {X-Key: {file: /app.pem}}"), []string{"2:56: traces: headers: X-Key: the secret from /app.pem holds a byte that no header has"}},
		"a blank in a name":     {with(`headers: {"X Key": {file: /s}}`), []string{`2:42: traces: headers: "X Key" cannot be the name of a header; use letters`}},
		"docket's own header":   {with("headers: {content-type: {file: /s}}"), []string{"2:42: traces: headers: Content-Type is docket's own to say; remove it"}},
		"one header twice":      {with("headers: {x-a: {file: /s}, X-A: {file: /s}}"), []string{`2:59: the header "X-A" is given twice, first in line 2; each needs a name of its own`}},
		"headers as a list":     {with("headers: [a]"), []string{"2:41: traces: headers must be a mapping of keys to values, but this is a list"}},
	})
}
