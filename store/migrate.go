package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"docket/store/ci"
)

// Points of a migration at which a test may stop it.
const (
	FailBeforeBackup  = "before backup"  // the new file is whole and compared, and nothing else has changed
	FailBeforeReplace = "before replace" // the old file has its second name, and its first one still
)

// migrateChunk is about how much one transaction of a migration writes, in bytes.
const migrateChunk = 8 << 20

// migrated returns the database as it is, or, where the file is of an older
// schema, one that holds the same in the present one. The old file stays
// beside it: kept names it. Whatever stops a migration, even a kill, leaves
// the old file in its place and whole.
func migrated(path string, db *bolt.DB, o Options) (_ *bolt.DB, kept string, err error) {
	var version uint64
	var ok bool
	if err := db.View(func(b *bolt.Tx) error { version, ok = schemaOf(b); return nil }); err != nil {
		return nil, "", errors.Join(err, db.Close())
	}
	if !ok || version >= SchemaVersion {
		return db, "", nil
	}
	kept, err = migrate(path, db, version, o)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, "", ci.Wrap(ci.CodeUnavailable, err, "the store %s is an older docket's (schema version %d) and could not be brought forward, so it was left as it is; see that its disk has room for a second copy of it, and start docket again", path, version)
	}
	db, err = openBolt(path, o)
	return db, kept, err
}

// migrateName is the new file while it is written. Whoever has the store's
// lock may remove it.
func migrateName(path string) string { return path + ".migrating" }

// migrate writes the present schema's file beside the old one, keeps the old
// one under a second name and puts the new one in its place.
func migrate(path string, db *bolt.DB, version uint64, o Options) (kept string, err error) {
	used, err := usedBytes(db)
	if err != nil {
		return "", err
	}
	if err := o.needSpace(path, used+compactSpare, "bringing the store forward"); err != nil {
		return "", err
	}
	draft := migrateName(path)
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	defer os.Remove(draft) // gone already if all went well
	if err := writeMigrated(draft, path, db, version); err != nil {
		return "", err
	}
	if err := o.fail(FailBeforeBackup); err != nil {
		return "", err
	}
	if kept, err = keepOld(path, version); err != nil {
		return "", err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	if err := o.fail(FailBeforeReplace); err != nil {
		return "", err
	}
	if err := os.Rename(draft, path); err != nil {
		return "", err
	}
	return kept, syncDir(filepath.Dir(path))
}

func (o *Options) fail(point string) error {
	if o.Failpoint == nil {
		return nil
	}
	return o.Failpoint(point)
}

// writeMigrated writes the new file, compares it with the old one and syncs it.
func writeMigrated(draft, path string, db *bolt.DB, version uint64) error {
	to, err := bolt.Open(draft, 0o600, &bolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = db.View(func(from *bolt.Tx) error {
		if err := copyTables(from, layoutOf(version), to); err != nil {
			return err
		}
		return to.View(func(b *bolt.Tx) error { return sameTables(from, layoutOf(version), b) })
	})
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(draft, st.Mode().Perm()), giveTo(draft, path), syncFile(draft))
}

// copyTables fills a new file. Its version comes with the last transaction.
func copyTables(from *bolt.Tx, old *layout, to *bolt.DB) error {
	if err := to.Update(present.make); err != nil {
		return err
	}
	for i := range bucketCount {
		table := old.table(from, i)
		if table == nil {
			continue
		}
		if err := copyTable(table, to, i); err != nil {
			return err
		}
	}
	return to.Update(func(b *bolt.Tx) error {
		t := &tx{s: &Store{layout: present}, b: b}
		for i, fill := range map[int]func() error{
			bucketRunEntries: t.refileEntries, bucketKinds: t.refileKinds, bucketCommits: t.refileCommits,
		} {
			if old.table(from, i) != nil {
				continue
			}
			if err := fill(); err != nil {
				return err
			}
		}
		return t.put(bucketMeta, metaSchema, be64(SchemaVersion))
	})
}

func copyTable(table *table, to *bolt.DB, i int) error {
	c := table.Cursor()
	k, v := c.First()
	for first := true; first || k != nil; first = false {
		err := to.Update(func(b *bolt.Tx) error {
			into := present.table(b, i)
			if count := table.Sequence(); count > into.Sequence() { // others may count with the same
				if err := into.count.SetSequence(count); err != nil {
					return err
				}
			}
			for n := 0; k != nil && n < migrateChunk; k, v = c.Next() {
				if err := into.Put(k, v); err != nil {
					return err
				}
				n += len(k) + len(v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sameTables compares all that the old file holds with the new one.
func sameTables(from *bolt.Tx, old *layout, b *bolt.Tx) error {
	for i := range bucketCount {
		was := old.table(from, i)
		if was == nil {
			continue
		}
		c := present.table(b, i).Cursor()
		next := func(k, v []byte) ([]byte, []byte) {
			for i == bucketMeta && (bytes.Equal(k, markReceipts) || bytes.Equal(k, markOutbox)) {
				k, v = c.Next()
			}
			return k, v
		}
		k, v := next(c.First())
		err := was.ForEach(func(wasK, wasV []byte) error {
			schema := i == bucketMeta && bytes.Equal(wasK, metaSchema)
			if !bytes.Equal(k, wasK) || !schema && !bytes.Equal(v, wasV) {
				return fmt.Errorf("table %s: %q was copied as %q", bucketNames[i], wasK, k)
			}
			k, v = next(c.Next())
			return nil
		})
		if err == nil && k != nil {
			err = fmt.Errorf("table %s: %q came from nowhere", bucketNames[i], k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepOld gives the old file a second name that says its schema version.
func keepOld(path string, version uint64) (name string, err error) {
	old, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name = fmt.Sprintf("%s.schema-%d", path, version)
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		st, err := os.Lstat(name)
		switch {
		case err == nil && os.SameFile(st, old):
			return name, nil // of a migration that was stopped
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if os.Link(path, name) == nil {
			return name, nil
		}
		return name, copyAside(path, name) // a file system without links
	}
}

// copyAside copies a file under a name that it gets when it is whole.
func copyAside(path, name string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	draft := name + ".draft"
	to, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(draft)
	if _, err = io.Copy(to, from); err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(draft, name)
}
