package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"docket/store/ci"
)

// restoreSpare is what must be free beyond what the copy takes, in bytes.
const restoreSpare = 16 << 20

// Restored tells what a backup held.
type Restored struct {
	Bytes  int64
	Newest time.Time // of the newest record; zero for an empty store
	Stats            // what waits, and what was running
}

// Restore makes a backup the store at path, where there is none yet. The
// backup itself is only read. Nothing stands at path unless the copy was
// verified and is on disk; a kill on the way leaves what the next restore or
// start removes.
//
// Runs and the outbox of the new store are paused: since the backup was made
// they may have been carried out and sent. Notifications in it keep their
// ids, new ones get ids that no other store of this history has given.
// Whoever was signed in has to sign in again.
//
// Errors: CodeNotFound if there is no backup, CodeConflict if there is a
// store at path or the backup is damaged or broken, CodeUnavailable if the
// space does not suffice or another restore is at work.
func Restore(ctx context.Context, from, path string, o Options) (r Restored, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return r, errThere(path, err)
	}
	src, err := openBackup(from)
	if err != nil {
		return r, err
	}
	defer src.Close()
	dir := filepath.Join(filepath.Dir(path), RestoreDir)
	lock, err := takeRestoreDir(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), lock.Close()) }()
	draft := filepath.Join(dir, filepath.Base(path))
	if r.Bytes, err = o.copyBackup(ctx, src, draft, path); err != nil {
		return r, err
	}
	s := &Store{failpoint: o.Failpoint}
	if err := s.fail(FailCopied); err != nil {
		return r, err
	}
	if err := r.settle(ctx, from, draft, o); err != nil {
		return r, ofBackup(err, draft, from)
	}
	if err := proveDraft(ctx, draft, "the backup "+from); err != nil {
		return r, ofBackup(err, draft, from)
	}
	if err := s.fail(FailVerified); err != nil {
		return r, err
	}
	return r, s.publish(draft, path)
}

// publish syncs a proved copy and gives it the store's name.
func (s *Store) publish(draft, path string) error {
	if err := giveTo(draft, filepath.Dir(path)); err != nil {
		return ci.Wrap(ci.CodeUnavailable, err, "the store cannot be given to the owner of %s; run this as that user or as root", filepath.Dir(path))
	}
	if err := syncFile(draft); err != nil {
		return err
	}
	if err := s.fail(FailSynced); err != nil {
		return err
	}
	if err := renameNew(draft, path); err != nil {
		return errThere(path, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return s.fail(FailRenamed)
}

func errThere(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return ci.Errorf(ci.CodeConflict, "there is a store at %s, and a backup never takes the place of one; move it away first", path)
	}
	return ci.Wrap(ci.CodeUnavailable, err, "%s cannot be made; check its directory", path)
}

func openBackup(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ci.Errorf(ci.CodeNotFound, "there is no backup %s; name a file that `docket backup` has written", path)
	} else if err != nil {
		return nil, ci.Wrap(ci.CodeUnavailable, err, "the backup %s cannot be read; check its permissions", path)
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, ci.Errorf(ci.CodeInvalid, "the backup %s is not a file; name one that `docket backup` has written", path)
	}
	return f, nil
}

// takeRestoreDir makes the directory to work in, or empties what a killed
// restore has left of it.
func takeRestoreDir(dir string) (lock *os.File, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, ci.Wrap(ci.CodeUnavailable, err, "the data directory %s may not be written to; run this as the user that docket runs as", filepath.Dir(dir))
	}
	if lock, err = lockDir(dir); err != nil {
		return nil, ci.Wrap(ci.CodeUnavailable, err, "another restore is at work in %s; wait for its end", filepath.Dir(dir))
	}
	left, err := os.ReadDir(dir)
	for _, e := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// copyBackup copies a backup to a new file for its owner alone, which is to
// lie at path.
func (o *Options) copyBackup(ctx context.Context, src *os.File, to, path string) (int64, error) {
	st, err := src.Stat()
	if err != nil {
		return 0, err
	}
	if err := o.needSpace(path, st.Size()+restoreSpare, "restoring"); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, &contextReader{ctx, src})
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, ci.Wrap(ci.CodeUnavailable, err, "the backup %s could not be copied, so nothing was restored; see to free space", src.Name())
	}
	return n, nil
}

// settle opens the copy, brings it to this docket's schema and makes it a
// store of its own that does nothing by itself.
func (r *Restored) settle(ctx context.Context, from, draft string, o Options) (err error) {
	if err := notEmpty(draft, o); err != nil {
		return err
	}
	s, err := Open(draft, Options{Now: o.Now, walk: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if r.Stats, err = s.Stats(); err != nil {
		return err
	}
	if r.Newest, err = s.newest(); err != nil {
		return err
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return s.update(ctx, func(t *tx) error {
		if err := t.put(bucketMeta, metaInstance, []byte(hex.EncodeToString(id[:]))); err != nil {
			return err
		}
		for _, bucket := range []int{bucketSessions, bucketUserSessions, bucketLinks} {
			if err := t.clear(bucket); err != nil {
				return err
			}
		}
		why := "restored from " + filepath.Base(from)
		if !r.Newest.IsZero() {
			why += ", whose newest record is of " + r.Newest.UTC().Format(time.RFC3339)
		}
		for _, w := range ci.Works {
			if err := t.delete(bucketMeta, pauseKey(w)); err != nil { // one of the old store's own
				return err
			}
			if err := t.pause(w, ci.By{Kind: ci.ByServer, Name: "restore"}, why); err != nil {
				return err
			}
		}
		return nil
	})
}

// notEmpty refuses a file that opening would make a new store of.
func notEmpty(path string, o Options) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	empty := st.Size() == 0
	if !empty {
		o.walk = true
		if err := checkDamage(path, o); err != nil {
			return openError(path, err)
		}
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
		if err != nil {
			return openError(path, err)
		}
		defer db.Close()
		if err := db.View(func(tx *bolt.Tx) error {
			k, _ := tx.Cursor().First()
			empty = k == nil
			return nil
		}); err != nil {
			return err
		}
	}
	if empty {
		return ci.Errorf(ci.CodeConflict, "%s is empty; use another backup", path)
	}
	return nil
}

// clear removes every key of a table.
func (t *tx) clear(bucket int) error {
	var keys [][]byte
	if err := t.bucket(bucket).ForEach(func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	}); err != nil {
		return err
	}
	return t.deleteAll(bucket, keys)
}

// newest returns when the newest record was written.
func (s *Store) newest() (at time.Time, err error) {
	later := func(x ci.Time) {
		if x.After(at) {
			at = x.Time
		}
	}
	err = s.view(func(t *tx) error {
		if _, v := t.bucket(bucketReceipts).Cursor().Last(); v != nil {
			r, err := decodeReceipt(v)
			if err != nil {
				return err
			}
			later(r.ReceivedAt)
		}
		if k, v := t.bucket(bucketOutbox).Cursor().Last(); v != nil {
			e, err := decodeEntry(fromBE64(k), v)
			if err != nil {
				return err
			}
			later(e.CreatedAt)
		}
		if _, v := t.bucket(bucketDecisions).Cursor().Last(); v != nil {
			d, err := decodeJSON[ci.Decision]("decision", v)
			if err != nil {
				return err
			}
			later(d.At)
		}
		return nil
	})
	return at, err
}

// ofBackup lets an error about the copy speak of the backup.
func ofBackup(err error, draft, from string) error {
	var e *ci.Error
	cause := err
	if errors.As(err, &e) {
		cause = e.Err
	}
	switch {
	case errors.Is(err, errDamaged), errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return ci.Wrap(ci.CodeConflict, cause, "the backup %s is damaged, so nothing was restored; use an older one", from)
	case e != nil:
		return ci.Wrap(ci.CodeConflict, cause, "nothing was restored: %s", strings.ReplaceAll(e.Message, draft, from))
	}
	return fmt.Errorf("the backup %s: %w", from, err)
}
