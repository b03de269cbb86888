package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"docket/store/ci"
)

// A copy that is to become the store is written under a name of its own beside
// it, and takes the store's name only once it is verified and synced. What a
// kill leaves of it is removed by the next one who opens the store.

// compactName is the copy that compacting makes of the store at path. Whoever
// has the store's lock may remove it.
func compactName(path string) string { return path + ".compact" }

// RestoreDir is the directory beside the store in which a restore works. It is
// locked meanwhile.
const RestoreDir = ".restore"

// removeDrafts removes what killed ones have left beside an open store.
func removeDrafts(path string) {
	_ = os.Remove(compactName(path))
	_ = os.Remove(migrateName(path))
	dir := filepath.Join(filepath.Dir(path), RestoreDir)
	if lock, err := lockDir(dir); err == nil {
		_ = os.RemoveAll(dir)
		lock.Close()
	}
}

// needSpace refuses with CodeUnavailable if fewer bytes are free beside path.
func (o *Options) needSpace(path string, need int64, what string) error {
	free := o.FreeSpace
	if free == nil {
		free = func() (int64, error) { return freeSpace(path) }
	}
	have, err := free()
	if err != nil {
		return ci.Wrap(ci.CodeUnavailable, err, "the free space of %s cannot be read; check that its disk is there", filepath.Dir(path))
	}
	if have < need {
		return ci.Errorf(ci.CodeUnavailable, "%s needs %d MiB of free space in %s, and %d MiB are free; make room first", what, need>>20+1, filepath.Dir(path), have>>20)
	}
	return nil
}

// proveDraft verifies all of a copy; what is wrong with it is an error that
// names the file it came from.
func proveDraft(ctx context.Context, draft, from string) error {
	broken, err := VerifyFile(ctx, draft)
	if err != nil {
		return err
	}
	if len(broken) > 0 {
		return ci.Errorf(ci.CodeConflict, "%s is broken in %d places, so nothing was changed, first: %s", from, len(broken), broken[0])
	}
	return nil
}

// syncFile makes a file durable, and its name with it.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// sameContent returns an error unless two databases hold the same.
func sameContent(ctx context.Context, a, b *bolt.DB) error {
	return a.View(func(ta *bolt.Tx) error {
		return b.View(func(tb *bolt.Tx) error {
			names := 0
			err := ta.ForEach(func(name []byte, ba *bolt.Bucket) error {
				names++
				bb := tb.Bucket(name)
				if bb == nil || ba.Sequence() != bb.Sequence() {
					return fmt.Errorf("the copy's bucket %q is another", name)
				}
				return sameKeys(ctx, name, ba.Cursor(), bb.Cursor())
			})
			if err != nil {
				return err
			}
			return tb.ForEach(func(name []byte, _ *bolt.Bucket) error {
				if names--; names < 0 {
					return fmt.Errorf("the copy has the bucket %q beside", name)
				}
				return nil
			})
		})
	})
}

func sameKeys(ctx context.Context, name []byte, a, b *bolt.Cursor) error {
	ka, va := a.First()
	kb, vb := b.First()
	for n := 0; ka != nil || kb != nil; n++ {
		if !bytes.Equal(ka, kb) || (ka == nil) != (kb == nil) || !bytes.Equal(va, vb) {
			return fmt.Errorf("the copy's bucket %q differs at %x", name, ka)
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ka, va = a.Next()
		kb, vb = b.Next()
	}
	return nil
}
