package storetest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// recorder is a test whose failures are looked at instead of counted.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Ensure that closing a store for a test finds what is broken in its file.
func TestMustClose_FindsWhatIsBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docket.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(t.Context(), store.Acceptance{
		Delivery: ci.Delivery{Integration: "github", ID: "d-1", Event: ci.EventPush, Body: []byte("{}")}, Reason: "ignored",
	}); err != nil {
		t.Fatal(err)
	}
	whole := &recorder{TB: t}
	storetest.MustClose(whole, s)
	storetest.MustClose(whole, s)
	if len(whole.failures) != 0 {
		t.Fatalf("a whole store fails: %q", whole.failures)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte("index")).Cursor()
		c.Seek([]byte("Rgithub")) // the receipt's identity
		return c.Delete()
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	broken := &recorder{TB: t}
	storetest.MustClose(broken, s)
	if len(broken.failures) != 1 || !strings.Contains(broken.failures[0], "github/-/d-1") {
		t.Fatalf("%q", broken.failures)
	}
}
