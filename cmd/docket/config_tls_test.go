package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/store/ci"
)

// Ensure that a listener's TLS is read as it is written.
func TestTLSOfAListener(t *testing.T) {
	cert, key := newPair(t, "ci.example.org", 1)
	cfg := mustParse(t, `data_dir: /d
listen:
  - {address: ":443", tls: {cert: tls.crt, key: /k/tls.key}}
  - {address: ":8443", tls: {acme: {domains: [CI.example.org, b.example.org], email: a@example.org, directory: "https://ca.example.org/dir"}}}
  - {address: ":80", redirect: true}
`, map[string]string{"/etc/docket/tls.crt": cert, "/k/tls.key": key})
	want := []ci.Listen{
		{Address: ":443", TLS: &ci.TLS{Cert: "/etc/docket/tls.crt", Key: "/k/tls.key"}},
		{Address: ":8443", TLS: &ci.TLS{ACME: &ci.ACME{
			Domains: []string{"ci.example.org", "b.example.org"}, Email: "a@example.org", Directory: "https://ca.example.org/dir",
		}}},
		{Address: ":80", Redirect: true},
	}
	if d := cmp.Diff(want, cfg.Listen); d != "" {
		t.Error(d)
	}
}

// Ensure that what TLS cannot be made of is told.
func TestTLSFaults(t *testing.T) {
	for entry, want := range map[string]string{
		`tls: {}`: "tls needs exactly one of cert and acme",
		`tls: {cert: /s, acme: {domains: [a.b]}}`:       "tls needs exactly one of cert and acme",
		`tls: {cert: /s}`:                               "listen: tls has no key; add one",
		`tls: {cert: /s, key: /no}`:                     "listen: tls: key: the file /no does not exist",
		`tls: {cert: /s, key: /s}`:                      "/s and /s are no certificate and its private key",
		`tls: {cert: "", key: /s}`:                      "listen: tls: cert is empty",
		`tls: {acme: {domains: []}}`:                    "domains is empty",
		`tls: {acme: {}}`:                               "listen: tls: acme has no domains",
		`tls: {acme: {domains: ["*.example.org"]}}`:     "is a wildcard",
		`tls: {acme: {domains: [192.0.2.1]}}`:           "is not a full host name",
		`tls: {acme: {domains: [localhost]}}`:           "is not a full host name",
		`tls: {key: /s, acme: {domains: [a.b]}}`:        "acme makes its own key",
		`tls: {acme: {domains: [a.b]}}, redirect: true`: "redirect is for a plain listener",
		`redirect: true`:                                "redirect has nowhere to go",
	} {
		list := faultsOf(t, "data_dir: /d\nlisten:\n  - {address: ':1', "+entry+"}\n")
		if len(list) != 1 || !strings.Contains(list[0], want) {
			t.Errorf("%s: %q", entry, list)
		}
	}
}
