package main

import (
	"slices"
	"testing"
)

// Ensure that what cannot be kept as asked is said where it stands.
func TestRetentionAndBackupFaults(t *testing.T) {
	for text, want := range map[string][]string{
		"retention: {runs: 200h, bodies: 100h, logs: 1h}\n": nil,
		"retention: {bodies: 720h}\n":                       nil,
		"retention: {runs: 100h}\n":                         {"1:19: retention: runs must be from 168h to 876000h"},
		"retention: {bodies: 1m}\n":                         {"1:21: retention: bodies must be from 1h to 876000h"},
		"retention: {runs: 200h, logs: 300h}\n":             {"1:31: retention: logs are kept for 200h at most, as long as runs are; shorten it, or remove the key"},
		"backup: {every: 1h}\n":                             {"1:9: backup has no dir; add one, as in `dir: /var/backups/docket`"},
		"backup: {dir: b, keep: 0}\n":                       {"1:24: backup: keep must be a whole number from 1 to 1000, in plain digits"},
		"backup: {dir: b, every: 1s}\n":                     {"1:25: backup: every must be from 1m to 720h"},
	} {
		if got := faultsOf(t, text+faultyBase+oneStep); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
