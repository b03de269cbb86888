package store_test

import (
	"bytes"
	"errors"
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

// mustBackup makes a backup of a store and returns its file.
func mustBackup(t *testing.T, s *store.Store) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(path)
	mustNil(t, err)
	_, err = s.Backup(t.Context(), f)
	mustNil(t, errors.Join(err, f.Close()))
	return path
}

// Ensure that a restored store holds what the backup held and does nothing by
// itself: nothing is due, claimed or prepared until it is resumed.
func TestRestore_DoesNothingByItself(t *testing.T) {
	s := storetest.MustOpen(t)
	mustFinish(t, s, mustClaim(t, s, mustPush(t, s, "done", 0, 1).ID), ci.Succeeded)
	running := mustClaim(t, s, mustPush(t, s, "running", 1, 2).ID)
	queued := mustPush(t, s, "queued", 2, 3)
	held := mustPush(t, s, "held", 0, 100, fromFork(3))
	backup := mustBackup(t, s)
	want := mustRead(t, backup)
	late := mustPush(t, s, "after the backup", 3, 4)

	to := dbPath(t)
	r, err := store.Restore(t.Context(), backup, to, store.Options{})
	mustNil(t, err)
	if r.Running != 1 || r.Queued != 1 || r.Held != 1 || r.OutboxPending == 0 || r.Bytes != int64(len(want)) || time.Since(r.Newest) > time.Minute {
		t.Fatalf("%+v", r)
	}
	if !bytes.Equal(want, mustRead(t, backup)) {
		t.Fatal("the backup was changed")
	}
	b := storetest.MustOpenAt(t, to, store.Options{})
	p, err := b.Pauses()
	mustNil(t, err)
	if p.Runs == nil || p.Outbox == nil || p.Runs.By.Name != "restore" || !strings.Contains(p.Outbox.Reason, "restored from backup.db, whose newest record is of 20") {
		t.Fatalf("%+v", p)
	}
	_, _, err = b.Approve(t.Context(), actionOn(held.ID))
	mustNil(t, err)
	nothing := func() {
		t.Helper()
		if due, _, err := b.DueEntries(time.Now().Add(time.Hour), 100); len(due) != 0 || err != nil {
			t.Fatalf("due: %v, %v", due, err)
		}
		if run, ok, err := b.ClaimAny(t.Context(), "boot", 10); ok || err != nil {
			t.Fatalf("claimed %v, %v", run.ID, err)
		}
	}
	nothing()
	again, err := b.Lost(t.Context(), running.ID, running.Attempt, true, "its process is gone")
	mustNil(t, err)
	if again.State != ci.Queued {
		t.Fatalf("%s", again.State)
	}
	// The delivery that came after the backup comes again, and is new here.
	if a := mustAccept(t, b, pushed("after the backup", "api", "main", 3, 4)); a.Duplicate || a.Runs[0].ID != late.ID {
		t.Fatalf("%+v", a)
	}
	if a := mustAccept(t, b, pushed("queued", "api", "main", 2, 3)); !a.Duplicate || a.Runs[0].ID != queued.ID {
		t.Fatalf("%+v", a)
	}
	nothing()
	mustResume(t, b, ci.WorkOutbox)
	mustResume(t, b, ci.WorkRuns)
	if due, _, err := b.DueEntries(time.Now().Add(time.Hour), 100); len(due) == 0 || err != nil {
		t.Fatalf("nothing is due, %v", err)
	}
	if _, ok, err := b.ClaimAny(t.Context(), "boot", 10); !ok || err != nil {
		t.Fatalf("nothing is claimed, %v", err)
	}
}

func actionOn(run string) store.Action {
	return store.Action{Run: run, Key: "key of " + run, By: operator}
}

// Ensure that what was queued before the backup keeps its id, so that who has
// it drops it, and that no new notification gets an id that the lost history
// may have given to another one.
func TestRestore_IdsOfNotifications(t *testing.T) {
	s := storetest.MustOpen(t)
	old := entriesOf(t, s, mustPush(t, s, "before", 0, 1).ID, "")[0]
	backup := mustBackup(t, s)
	lost := entriesOf(t, s, mustPush(t, s, "lost", 1, 2).ID, "")[0]
	to := dbPath(t)
	_, err := store.Restore(t.Context(), backup, to, store.Options{})
	mustNil(t, err)
	b := storetest.MustOpenAt(t, to, store.Options{})
	if e, err := b.Entry(old.ID); err != nil || e.ID != old.ID {
		t.Fatalf("%+v, %v", e, err)
	}
	_, err = b.Entry(lost.ID)
	mustCode(t, err, ci.CodeNotFound)
	fresh := entriesOf(t, b, mustPush(t, b, "another", 5, 6).ID, "")[0]
	if fresh.ID == lost.ID {
		t.Fatalf("%s was given twice", fresh.ID)
	}
}

// Ensure that nobody stays signed in who may have been signed out since.
func TestRestore_EndsSessions(t *testing.T) {
	s := storetest.MustOpen(t)
	value, _, err := s.CreateLoginLink(t.Context(), "", operator)
	mustNil(t, err)
	session, _, err := s.UseLoginLink(t.Context(), value, "")
	mustNil(t, err)
	unused, _, err := s.CreateLoginLink(t.Context(), "", operator)
	mustNil(t, err)
	token, err := s.CreateToken(t.Context(), "bot", ci.Viewer)
	mustNil(t, err)
	to := dbPath(t)
	_, err = store.Restore(t.Context(), mustBackup(t, s), to, store.Options{})
	mustNil(t, err)
	b := storetest.MustOpenAt(t, to, store.Options{})
	_, _, err = b.Session(t.Context(), session, "")
	mustCode(t, err, ci.CodeUnauthenticated)
	_, _, err = b.UseLoginLink(t.Context(), unused, "")
	mustCode(t, err, ci.CodeUnauthenticated)
	_, err = b.Authenticate(token)
	mustNil(t, err)
}

// Ensure that nothing becomes the store that is not a whole backup of one,
// that nothing is put over what is there, and that nothing is left behind.
func TestRestore_Refuses(t *testing.T) {
	const page = 4096
	good := mustRead(t, mustFile(t, 60))
	write := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "bad.db")
		mustNil(t, os.WriteFile(path, b, 0o600))
		return path
	}
	edited := func(fn func(tx *bolt.Tx) error) string {
		path := write(good)
		surgery(t, path, fn)
		return path
	}
	torn := bytes.Clone(good)
	clear(torn[lastUsed(torn)/2*page : (lastUsed(torn)/2+4)*page])
	none := filepath.Join(t.TempDir(), "empty.db")
	db, err := bolt.Open(none, 0o600, nil)
	mustNil(t, err)
	mustNil(t, db.Close())
	for what, tc := range map[string]struct {
		from string
		o    store.Options
		code ci.Code
		says string
	}{
		"no file":        {filepath.Join(t.TempDir(), "none.db"), store.Options{}, ci.CodeNotFound, "there is no backup"},
		"a directory":    {t.TempDir(), store.Options{}, ci.CodeInvalid, "is not a file"},
		"an empty file":  {write(nil), store.Options{}, ci.CodeConflict, "is empty"},
		"an empty bbolt": {none, store.Options{}, ci.CodeConflict, "is empty"},
		"text":           {write(bytes.Repeat([]byte("not a database\n"), 9000)), store.Options{}, ci.CodeConflict, "damaged"},
		"one cut off":    {write(good[:lastUsed(good)*page*6/10]), store.Options{}, ci.CodeConflict, "damaged"},
		"lost pages":     {write(torn), store.Options{}, ci.CodeConflict, "damaged"},
		"a newer docket's": {edited(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte{0, 0, 0, 0, 0, 0, 9, 0})
		}), store.Options{}, ci.CodeConflict, "schema version"},
		"a broken index": {edited(func(tx *bolt.Tx) error {
			k, _ := store.TableOf(tx, "states").Cursor().First()
			return store.TableOf(tx, "states").Delete(k)
		}), store.Options{}, ci.CodeConflict, "broken in"},
		"no space": {write(good), store.Options{FreeSpace: func() (int64, error) { return 1 << 20, nil }}, ci.CodeUnavailable, "make room first"},
	} {
		t.Run(what, func(t *testing.T) {
			to := dbPath(t)
			_, err := store.Restore(t.Context(), tc.from, to, tc.o)
			mustCode(t, err, tc.code, tc.says)
			if strings.Contains(err.Error(), store.RestoreDir) {
				t.Errorf("the error speaks of the copy: %v", err)
			}
			if left, err := os.ReadDir(filepath.Dir(to)); len(left) != 0 || err != nil {
				t.Fatalf("left behind: %v, %v", left, err)
			}
		})
	}
	there := mustFile(t, 1)
	before := mustRead(t, there)
	_, err = store.Restore(t.Context(), write(good), there, store.Options{})
	mustCode(t, err, ci.CodeConflict, there, "move it away")
	if !bytes.Equal(before, mustRead(t, there)) {
		t.Fatal("the store was changed")
	}
}

// Ensure that a store that comes while a restore is at work stays, and that
// two restores do not meet.
func TestRestore_NeverReplacesWhatCameMeanwhile(t *testing.T) {
	backup := mustFile(t, 3)
	to := dbPath(t)
	_, err := store.Restore(t.Context(), backup, to, store.Options{Failpoint: func(point string) error {
		if point != store.FailSynced {
			return nil
		}
		_, err := store.Restore(t.Context(), backup, to, store.Options{})
		mustCode(t, err, ci.CodeUnavailable, "another restore")
		s := storetest.MustOpenAt(t, to, store.Options{})
		mustPush(t, s, "came first", 0, 1)
		return s.Close()
	}})
	mustCode(t, err, ci.CodeConflict, to, "move it away")
	s := storetest.MustOpenAt(t, to, store.Options{})
	if list, _, err := s.Runs(store.RunFilter{}, store.Page{}); len(list) != 1 || err != nil {
		t.Fatalf("%d runs, %v", len(list), err)
	}
}
