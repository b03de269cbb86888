package store_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// mustVersion1 unpacks a file of schema version 1.
func mustVersion1(t *testing.T) string {
	t.Helper()
	return mustVersion(t, 1)
}

// mustVersion unpacks a file of a schema version: mustFullFile's, as the
// docket of that version wrote it.
func mustVersion(t *testing.T, version int) string {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("testdata/schema-%d.db.gz", version))
	mustNil(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	mustNil(t, err)
	b, err := io.ReadAll(r)
	mustNil(t, err)
	path := dbPath(t)
	mustNil(t, os.WriteFile(path, b, 0o600))
	return path
}

// contents is what a store says of all that it holds.
func contents(t *testing.T, s *store.Store) string {
	t.Helper()
	var b strings.Builder
	say := func(what any, err error) {
		t.Helper()
		mustNil(t, err)
		text, err := json.Marshal(what)
		mustNil(t, err)
		fmt.Fprintf(&b, "%s\n", text)
	}
	all := store.Page{Limit: store.MaxLimit}
	runs, _, err := s.Runs(store.RunFilter{}, all)
	say(runs, err)
	for _, r := range runs {
		list, _, err := s.EntriesOf(r.ID, 100)
		say(list, err)
		spec, err := s.Spec(r.Spec)
		say(spec, err)
	}
	for _, f := range []store.RunFilter{{Branch: "main"}, {State: ci.Succeeded}, {Ref: store.KindPull}, {Ref: store.KindBranch}} {
		list, _, err := s.Runs(f, all)
		say(list, err)
	}
	receipts, _, err := s.Receipts("", all)
	say(receipts, err)
	for _, r := range receipts {
		_, body, err := s.ReceiptBody(r.ReceiptID())
		say(string(body), err)
	}
	entries, _, err := s.Entries("", all)
	say(entries, err)
	decisions, _, err := s.Decisions("", all)
	say(decisions, err)
	tokens, err := s.Tokens()
	say(tokens, err)
	pins, err := s.Pins()
	say(pins, err)
	holds, err := s.Holds(newClock().now())
	say(holds, err)
	heads, err := s.Heads("api")
	say(heads, err)
	due, next, err := s.DueEntries(newClock().now(), 100)
	say(due, err)
	say(next, nil)
	return b.String()
}

// mustReadOnly verifies a file, whatever its schema, and says what it holds.
func mustReadOnly(t *testing.T, path string) string {
	t.Helper()
	broken, err := store.VerifyFile(t.Context(), path)
	mustNil(t, err)
	if len(broken) > 0 {
		t.Fatalf("%s: %q", path, broken)
	}
	s, err := store.Open(path, store.Options{ReadOnly: true})
	mustNil(t, err)
	defer s.Close()
	return contents(t, s)
}

func mustSame(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// beside lists what lies in a store's folder.
func beside(t *testing.T, path string) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	mustNil(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Ensure that a file that an older docket wrote says the same afterwards, is
// whole, takes new records that no old one is overwritten by, and is kept.
func TestOpen_BringsAnOlderFileForward(t *testing.T) {
	for version := 1; version < store.SchemaVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) { bringForward(t, version) })
	}
}

func bringForward(t *testing.T, version int) {
	path := mustVersion(t, version)
	second := fmt.Sprintf("docket.db.schema-%d", version)
	mustNil(t, os.Chmod(path, 0o640))
	old := mustRead(t, path)
	want := mustReadOnly(t, path)
	mustSame(t, "before", beside(t, path), "docket.db")
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustSame(t, "after", contents(t, s), want)
	mustSame(t, "beside", beside(t, path), "docket.db "+second)
	mustSame(t, "kept", s.Kept(), filepath.Join(filepath.Dir(path), second))
	if !bytes.Equal(mustRead(t, s.Kept()), old) {
		t.Error("the old file was changed")
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	r := mustPush(t, s, "new", 2, 7)
	if r.Number != 5 {
		t.Errorf("the next run of api is %s", r.ID)
	}
	storetest.MustClose(t, s)
	s = storetest.MustOpenAt(t, path, store.Options{})
	if s.Kept() != "" {
		t.Errorf("brought forward again: %s", s.Kept())
	}
	mustSame(t, "kept", mustReadOnly(t, filepath.Join(filepath.Dir(path), second)), want)
}

// version1 writes what a file holds as schema version 1 did, one bucket for
// each table, leaving some out.
func version1(t *testing.T, path string, without ...string) string {
	t.Helper()
	to := dbPath(t)
	db, err := bolt.Open(to, 0o600, nil)
	mustNil(t, err)
	defer db.Close()
	surgery(t, path, func(from *bolt.Tx) error {
		return db.Update(func(tx *bolt.Tx) error {
			for _, name := range strings.Fields(`meta receipts bodies identities digests runs states refs deletions forks specs requests
				scopes outbox due dead lanes holds decisions run_decisions tokens pins users sessions user_sessions login_links
				run_entries kinds slots groups checks recoveries gaps heads`) {
				if strings.Contains(strings.Join(without, " "), name) {
					continue
				}
				b, err := tx.CreateBucket([]byte(name))
				mustNil(t, err)
				table := store.TableOf(from, name)
				mustNil(t, b.SetSequence(table.Sequence()))
				mustNil(t, table.ForEach(func(k, v []byte) error {
					if name == "meta" && bytes.HasPrefix(k, []byte("first ")) {
						return nil
					}
					return b.Put(k, v)
				}))
			}
			return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint64(nil, 1))
		})
	})
	return to
}

// Ensure that a file from before there were users and some indexes is whole
// as it is, and gets what it lacks.
func TestOpen_AnOlderFileGetsWhatItLacks(t *testing.T) {
	path := mustFullFile(t)
	want := mustReadOnly(t, path)
	path = version1(t, path, "run_entries", "kinds", "users", "sessions", "user_sessions", "login_links", "slots", "gaps")
	broken, err := store.VerifyFile(t.Context(), path)
	mustNil(t, err)
	if len(broken) > 0 {
		t.Fatalf("before: %q", broken)
	}
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustSame(t, "after", contents(t, s), want)
	mustAddUser(t, s, "mona", ci.Admin)
	if !signedIn(t, s, mustSignIn(t, s, "mona")) {
		t.Fatal("not signed in")
	}
}

// Ensure that a migration that fails, or is killed, at any point leaves the
// old file in its place as it was, and that the next one succeeds and keeps
// one copy of it.
func TestOpen_AMigrationThatStops(t *testing.T) {
	for _, point := range []string{store.FailBeforeBackup, store.FailBeforeReplace} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", point, killed), func(t *testing.T) {
				path := mustVersion1(t)
				old := mustRead(t, path)
				want := mustReadOnly(t, path)
				left := filepath.Join(t.TempDir(), "docket.db")
				_, err := store.Open(path, store.Options{Failpoint: func(p string) error {
					if p != point {
						return nil
					}
					mustNil(t, os.Remove(filepath.Dir(left)))
					mustNil(t, os.CopyFS(filepath.Dir(left), os.DirFS(filepath.Dir(path))))
					return errors.New("no room")
				}})
				mustCode(t, err, ci.CodeUnavailable, path, "schema version 1", "was left as it is", "room")
				if killed {
					path = left
				} else if strings.Contains(beside(t, path), "migrating") {
					t.Errorf("left behind: %s", beside(t, path))
				}
				if !bytes.Equal(mustRead(t, path), old) {
					t.Fatal("the file was changed")
				}
				mustSame(t, "as it was", mustReadOnly(t, path), want)
				s := storetest.MustOpenAt(t, path, store.Options{})
				mustSame(t, "at last", contents(t, s), want)
				kept := "docket.db.schema-1"
				if killed && point == store.FailBeforeReplace {
					kept += " docket.db.schema-1-2" // a copied folder has no links
				}
				mustSame(t, "beside", beside(t, path), "docket.db "+kept)
			})
		}
	}
}

// Ensure that a half-written file of an earlier attempt is no hindrance, and
// that what has the old file's second name already stays.
func TestOpen_AMigrationOverwritesNothing(t *testing.T) {
	path := mustVersion1(t)
	mustNil(t, os.WriteFile(path+".migrating", []byte("half"), 0o600))
	mustNil(t, os.WriteFile(path+".schema-1", []byte("mine"), 0o600))
	s := storetest.MustOpenAt(t, path, store.Options{})
	mustSame(t, "kept", s.Kept(), path+".schema-1-2")
	mustSame(t, "mine", string(mustRead(t, path+".schema-1")), "mine")
	mustSame(t, "beside", beside(t, path), "docket.db docket.db.schema-1 docket.db.schema-1-2")
}
