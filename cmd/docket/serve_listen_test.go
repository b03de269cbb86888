package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Ensure that nobody but its owner can reach the admin socket at any moment,
// also in a data directory that others may look into.
func TestTheAdminSocketIsNeverOpenToOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, socketFile)
	done, seen := make(chan struct{}), make(chan os.FileMode, 1)
	go func() {
		defer close(seen)
		for {
			select {
			case <-done:
				return
			default:
			}
			// The kernel's own call: what this looks for lasts some microseconds.
			var st syscall.Stat_t
			if syscall.Lstat(path, &st) == nil && st.Mode&0o077 != 0 {
				seen <- os.FileMode(st.Mode & 0o777)
				return
			}
		}
	}()
	for range 300 { // each replaces the one before
		ln, err := listenSocket(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
			t.Fatalf("the socket: %v, %v", info, err)
		}
		c, err := dialSocket(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	if mode, ok := <-seen; ok {
		t.Errorf("for a moment it had mode %04o", mode)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside it lies %v, %v", left, err)
	}
}
