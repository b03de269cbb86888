package store_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// Ensure that a second opening ends within its time with a sentence that says
// which file is held and what to do.
func TestOpen_SecondProcessIsToldWhatHoldsTheFile(t *testing.T) {
	s := storetest.MustOpen(t)
	start := time.Now()
	_, err := store.Open(s.Path(), store.Options{LockTimeout: 150 * time.Millisecond})
	mustCode(t, err, ci.CodeUnavailable, s.Path(), "in use by another docket process", "stop")
	if d := time.Since(start); d > 2*time.Second {
		t.Fatalf("it took %v to say so", d)
	}
	mustPush(t, s, "after", 0, 1)
}

func TestOpen_RefusesWhatCannotBeAStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-file")
	mustNil(t, os.WriteFile(file, []byte("x"), 0o600))
	empty := filepath.Join(dir, "empty")
	mustNil(t, os.WriteFile(empty, nil, 0o600))
	for what, tc := range map[string]struct {
		path string
		o    store.Options
		code ci.Code
		says string
	}{
		"a folder that is missing":        {filepath.Join(dir, "no", "docket.db"), store.Options{}, ci.CodeUnavailable, "create it"},
		"a folder that is a file":         {filepath.Join(file, "docket.db"), store.Options{}, ci.CodeUnavailable, "cannot be reached"},
		"a folder in the file's place":    {dir, store.Options{}, ci.CodeUnavailable, "is a directory"},
		"a missing file, only to be read": {filepath.Join(dir, "none.db"), store.Options{ReadOnly: true}, ci.CodeNotFound, "no store"},
		"an empty file, only to be read":  {empty, store.Options{ReadOnly: true}, ci.CodeUnavailable, "empty"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := store.Open(tc.path, tc.o)
			if tc.code == ci.CodeUnavailable && strings.Contains(tc.says, "create") {
				mustCode(t, err, tc.code, tc.says, filepath.Dir(tc.path))
				return
			}
			mustCode(t, err, tc.code, tc.says, tc.path)
			if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
				t.Fatal("a file was made")
			}
		})
	}
}

// Ensure that a damaged file is an error that names it: never a panic, and
// the file is left byte for byte as it was found.
func TestOpen_DamagedFileIsNamedAndLeftAlone(t *testing.T) {
	const page = 4096
	good := mustRead(t, mustFile(t, 120))
	good = good[:lastUsed(good)*page] // the rest is room to grow
	if len(good) < 40*page {
		t.Fatalf("the file has only %d bytes", len(good))
	}
	zero := func(b []byte, at int) []byte { clear(b[at*page : (at+1)*page]); return b }
	rows := map[string]func(b []byte) []byte{
		"a bad magic in both metas": func(b []byte) []byte { b[16] ^= 0xff; b[page+16] ^= 0xff; return b },
		"both metas zero":           func(b []byte) []byte { return zero(zero(b, 0), 1) },
		"both metas noise": func(b []byte) []byte {
			for i := range 2 * page {
				b[i] = byte(i*7 + 3)
			}
			return b
		},
		"cut at 60 %":            func(b []byte) []byte { return b[:lastUsed(b)*page*6/10] },
		"cut in the first page":  func(b []byte) []byte { return b[:100] },
		"cut after the metas":    func(b []byte) []byte { return b[:2*page] },
		"cut by its last byte":   func(b []byte) []byte { return b[:lastUsed(b)*page-1] },
		"another program's text": func([]byte) []byte { return bytes.Repeat([]byte("not a database\n"), 9000) },
	}
	root := int(binary.LittleEndian.Uint64(newestMeta(good)[16:]))
	rows["the root page zero"] = func(b []byte) []byte { return zero(b, root) }
	rows["the root page noise"] = func(b []byte) []byte {
		for i := range page {
			b[root*page+i] = byte(i*13 + 5)
		}
		return b
	}
	for what, damage := range rows {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %v", what, readOnly), func(t *testing.T) {
				bad := damage(bytes.Clone(good))
				path := dbPath(t)
				mustNil(t, os.WriteFile(path, bad, 0o600))
				s, err := store.Open(path, store.Options{ReadOnly: readOnly, LockTimeout: time.Second})
				if err == nil {
					s.Close()
					t.Fatal("it opened")
				}
				mustCode(t, err, ci.CodeUnavailable, path, "damaged", "backup")
				if !bytes.Equal(mustRead(t, path), bad) {
					t.Fatal("the file was changed")
				}
			})
		}
	}
}

// Ensure that each page of the file that is lost is either noticed when the
// store is opened or belonged to nothing: no panic, and never a store that
// looks whole and is not.
func TestOpen_AnyLostPageIsNoticed(t *testing.T) {
	const page = 4096
	path := mustFile(t, 20)
	good := mustRead(t, path)
	good = good[:lastUsed(good)*page] // the rest is room to grow
	whole := readAll(t, path)
	noticed := 0
	for at := 2; at < lastUsed(good); at++ {
		bad := bytes.Clone(good)
		clear(bad[at*page : (at+1)*page])
		path := dbPath(t)
		mustNil(t, os.WriteFile(path, bad, 0o600))
		s, err := store.Open(path, store.Options{})
		if err != nil {
			mustCode(t, err, ci.CodeUnavailable, path)
			noticed++
			if !bytes.Equal(mustRead(t, path), bad) {
				t.Fatalf("page %d: the file was changed", at)
			}
			continue
		}
		mustNil(t, s.Close())
		if got := readAll(t, path); got != whole {
			t.Fatalf("page %d is lost, and nobody noticed", at)
		}
	}
	if noticed < 10 {
		t.Fatalf("only %d lost pages were noticed", noticed)
	}
}

// readAll digests all that bbolt reads from a file.
func readAll(t *testing.T, path string) string {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	mustNil(t, err)
	defer db.Close()
	var b strings.Builder
	mustNil(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			return bucket.ForEach(func(k, v []byte) error {
				fmt.Fprintf(&b, "%s %x %x\n", name, k, v)
				return nil
			})
		})
	}))
	return b.String()
}

// newestMeta returns the meta page's content that is in force.
func newestMeta(b []byte) []byte {
	const page, header = 4096, 16
	m0, m1 := b[header:page], b[page+header:2*page]
	if binary.LittleEndian.Uint64(m1[48:]) > binary.LittleEndian.Uint64(m0[48:]) {
		return m1
	}
	return m0
}

// lastUsed is the number of pages that the file's meta page speaks of.
func lastUsed(b []byte) int { return int(binary.LittleEndian.Uint64(newestMeta(b)[40:])) }

// Ensure that what a crash can do to the file does no harm.
func TestOpen_RecoversWhatACrashLeaves(t *testing.T) {
	const page = 4096
	path := mustFile(t, 50)
	good := mustRead(t, path)
	older := 0
	if binary.LittleEndian.Uint64(good[16+48:]) > binary.LittleEndian.Uint64(good[page+16+48:]) {
		older = 1
	}
	for what, damage := range map[string]func(b []byte) []byte{
		"the older meta page is lost": func(b []byte) []byte { clear(b[older*page : (older+1)*page]); return b },
		"the newer meta page is lost": func(b []byte) []byte { clear(b[(1-older)*page : (2-older)*page]); return b },
		"garbage at the end": func(b []byte) []byte {
			return append(b, bytes.Repeat([]byte{0xde, 0xad}, 5000)...)
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := dbPath(t)
			mustNil(t, os.WriteFile(path, damage(bytes.Clone(good)), 0o600))
			s := storetest.MustOpenAt(t, path, store.Options{})
			// The last commit, which goes with its meta page, is closing's own.
			const n = 50
			list, _, err := s.Runs(store.RunFilter{}, store.Page{Limit: 200})
			mustNil(t, err)
			if len(list) != n {
				t.Fatalf("%d runs, want %d", len(list), n)
			}
			mustPush(t, s, "goes-on", 60, 61)
		})
	}
}

func TestOpen_RefusesANewerSchema(t *testing.T) {
	path := mustFile(t, 1)
	surgery(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint64(nil, store.SchemaVersion+1))
	})
	before := mustRead(t, path)
	for _, readOnly := range []bool{false, true} {
		_, err := store.Open(path, store.Options{ReadOnly: readOnly})
		mustCode(t, err, ci.CodeUnavailable, path, fmt.Sprint("schema version ", store.SchemaVersion+1), "newer docket")
	}
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Fatal("the file was changed")
	}
	surgery(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint64(nil, store.SchemaVersion))
	})
}

func TestOpen_RefusesABBoltFileOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	mustNil(t, err)
	mustNil(t, db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }))
	mustNil(t, db.Close())
	before := mustRead(t, path)
	_, err = store.Open(path, store.Options{})
	mustCode(t, err, ci.CodeUnavailable, path, "not docket's")
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Fatal("the file was changed")
	}
}

// Ensure that closing twice, and using what is closed, is an error and no more.
func TestClose_LeavesSentencesBehind(t *testing.T) {
	s := storetest.MustOpen(t)
	r := mustPush(t, s, "one", 0, 1)
	mustNil(t, s.Close())
	mustNil(t, s.Close())
	_, err := s.Accept(t.Context(), pushed("two", "api", "main", 1, 2))
	mustCode(t, err, ci.CodeUnavailable, "shutting down")
	_, err = s.Run(r.ID)
	mustCode(t, err, ci.CodeUnavailable, "shutting down")
	_, err = s.Backup(t.Context(), &bytes.Buffer{})
	mustCode(t, err, ci.CodeUnavailable, "shutting down")
}

// Ensure that a store that is only read takes no writes and harms no file.
func TestOpen_ReadOnlyWritesNothing(t *testing.T) {
	path := mustFile(t, 3)
	before := mustRead(t, path)
	s, err := store.Open(path, store.Options{ReadOnly: true})
	mustNil(t, err)
	list, _, err := s.Runs(store.RunFilter{}, store.Page{})
	mustNil(t, err)
	if len(list) != 3 {
		t.Fatalf("%d runs", len(list))
	}
	_, err = s.Accept(t.Context(), pushed("no", "api", "main", 1, 2))
	mustCode(t, err, ci.CodeUnavailable)
	mustNil(t, s.Close())
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Fatal("the file was changed")
	}
}
