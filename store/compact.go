package store

import (
	"context"
	"errors"
	"io/fs"
	"os"

	bolt "go.etcd.io/bbolt"

	"docket/store/ci"
)

const (
	// compactTx is how much of a compacted copy is written in one transaction, in bytes.
	compactTx = 64 << 20
	// compactSpare is what must be free beyond what the copy takes, in bytes.
	compactSpare = 16 << 20
)

// Compacted is what compacting came to, in bytes.
type Compacted struct {
	Before, After int64
	// Kept says that the copy would not have been smaller, so that the store
	// was left as it is.
	Kept bool
}

// Compact writes the store of a stopped server anew, without the pages that
// removed records have left, and puts it in the old one's place. Nobody else
// can open the store meanwhile. The old file stays until the new one is
// verified, holds the same and is synced: a kill at any point leaves one of
// the two, whole.
//
// Errors: CodeNotFound if there is no store, CodeUnavailable if it is in use
// or damaged or the space does not suffice, CodeConflict if it is broken.
func Compact(ctx context.Context, path string, o Options) (c Compacted, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, ci.Errorf(ci.CodeNotFound, "there is no store at %s; check data_dir in the configuration", path)
	} else if err != nil {
		return c, err
	}
	o.walk, o.ReadOnly = true, false
	s, err := Open(path, o)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if st, err = os.Stat(path); err != nil { // opening may have changed it
		return c, err
	}
	c.Before = st.Size()
	used, err := usedBytes(s.db)
	if err != nil {
		return c, err
	}
	if err := o.needSpace(path, used+compactSpare, "compacting"); err != nil {
		return c, err
	}
	draft := compactName(path)
	defer os.Remove(draft) // gone already if all went well
	if err := s.compactTo(ctx, draft); err != nil {
		return c, err
	}
	if err := errors.Join(os.Chmod(draft, st.Mode().Perm()), giveTo(draft, path)); err != nil {
		return c, ci.Wrap(ci.CodeUnavailable, err, "the compacted store cannot be given to the owner of %s, so nothing was changed; run this as that user or as root", path)
	}
	if err := syncFile(draft); err != nil {
		return c, err
	}
	if err := s.fail(FailSynced); err != nil {
		return c, err
	}
	if st, err = os.Stat(draft); err != nil {
		return c, err
	}
	if c.After = st.Size(); c.After >= c.Before {
		c.After, c.Kept = c.Before, true
		return c, nil
	}
	if err := os.Rename(draft, path); err != nil {
		return c, err
	}
	if err := s.fail(FailRenamed); err != nil {
		return c, err
	}
	return c, syncFile(path)
}

// compactTo writes a compacted copy to a new file, and proves that it is whole
// and holds what the store holds.
func (s *Store) compactTo(ctx context.Context, draft string) error {
	dst, err := bolt.Open(draft, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	size, err := fillCompact(ctx, dst, s.db)
	if err := errors.Join(err, dst.Close()); err != nil {
		return ci.Wrap(ci.CodeUnavailable, err, "the compacted copy could not be written, so nothing was changed; see to free space beside %s", s.path)
	}
	if err := os.Truncate(draft, size); err != nil { // what bbolt made beyond, to grow into
		return err
	}
	if err := s.fail(FailCopied); err != nil {
		return err
	}
	if err := proveDraft(ctx, draft, "the store "+s.path); err != nil {
		return err
	}
	return s.fail(FailVerified)
}

// fillCompact copies everything and returns how many bytes of the file are in use.
func fillCompact(ctx context.Context, dst, src *bolt.DB) (size int64, err error) {
	if err := bolt.Compact(dst, src, compactTx); err != nil {
		return 0, err
	}
	if err := sameContent(ctx, src, dst); err != nil {
		return 0, err
	}
	dst.NoFreelistSync = false // once, so that the next open need not look for what is free
	if err := dst.Update(func(*bolt.Tx) error { return nil }); err != nil {
		return 0, err
	}
	err = dst.View(func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size, err
}

// usedBytes returns how much of a file is in use.
func usedBytes(db *bolt.DB) (n int64, err error) {
	tx, err := db.Begin(true) // one that writes counts what is free when it ends
	if err != nil {
		return 0, err
	}
	n = tx.Size()
	if err := tx.Rollback(); err != nil {
		return 0, err
	}
	st := db.Stats()
	return n - int64(st.FreePageN+st.PendingPageN)*int64(db.Info().PageSize), nil
}
