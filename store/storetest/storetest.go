// Package storetest opens stores for tests.
package storetest

import (
	"context"
	"path/filepath"
	"testing"

	"docket/store"
)

// MustOpen opens a store in a directory of the test's own. When the test
// ends, the store is verified: whatever the test did, nothing may be broken.
func MustOpen(tb testing.TB) *store.Store {
	tb.Helper()
	return MustOpenAt(tb, filepath.Join(tb.TempDir(), "docket.db"), store.Options{})
}

// MustOpenAt opens the store in a file, with options.
func MustOpenAt(tb testing.TB, path string, o store.Options) *store.Store {
	tb.Helper()
	s, err := store.Open(path, o)
	if err != nil {
		tb.Fatalf("open store: %v", err)
	}
	tb.Cleanup(func() { MustClose(tb, s) })
	return s
}

// MustClose closes a store and verifies its file. Closing twice is fine.
func MustClose(tb testing.TB, s *store.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("close store: %v", err)
	}
	broken, err := store.VerifyFile(context.Background(), s.Path())
	if err != nil {
		tb.Errorf("verify store: %v", err)
	}
	for _, line := range broken {
		tb.Errorf("store: %s", line)
	}
}
