//go:build torture

package main

import "testing"

// Ensure that each of many backups that are taken under load restores to a
// whole store. TORTURE_BACKUPS says how many.
func TestTortureBackups(t *testing.T) {
	backupsUnderLoad(t, tortureNumber(t, "TORTURE_BACKUPS", 100))
}
