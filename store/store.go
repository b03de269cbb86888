// Package store keeps everything that docket has promised, in one bbolt file,
// and the logs of runs as files beside it.
//
// Exported methods open transactions; helpers that take a tx do not. Writes
// go through the group commit in commit.go: a method that returns nil has
// committed and synced. Nothing in here logs, and no transaction does I/O.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"docket/store/ci"
)

// Points at which a test may stop or kill the process.
const (
	FailBeforeCommit = "before commit" // everything is written, nothing is committed
	FailAfterCommit  = "after commit"  // committed and synced, nobody was told

	FailCopied   = "copied"   // a restore or compact has its copy, unverified
	FailVerified = "verified" // the copy is good, and not synced
	FailSynced   = "synced"   // the copy is on disk under a name of its own
	FailRenamed  = "renamed"  // the copy has the store's name
)

// SchemaVersion is the version of the records and keys in the file. A file
// with a newer one is refused; one with an older one is brought forward when
// it is opened for writing.
const SchemaVersion = 3

// initialMmap is the address space reserved for the file, in bytes. While the
// file fits, growing it never has to wait for readers.
const initialMmap = 8 << 30

// Options configure a store; the zero value is what production uses.
type Options struct {
	LockTimeout time.Duration            // how long to wait for another process, default 2 s
	Now         func() time.Time         // default time.Now
	RunURL      func(id string) string   // a run's page, for notifications
	Failpoint   func(point string) error // tests only: see FailBeforeCommit
	ReadOnly    bool                     // for looking at a stopped store
	LogDir      string                   // default: logs beside the file
	FreeSpace   func() (int64, error)    // tests only: bytes free beside the file
	// Committed is told of each commit once it is on disk, before those who
	// wait for it: it must not block.
	Committed func(Commit)
	// Changed is told, as Committed is, what became of runs and notifications
	// in a commit. Nil: nothing is gathered.
	Changed func([]Change)

	walk bool // also the pages of a large file that was closed in order
}

// Commit is one write to the disk.
type Commit struct {
	Batch int           // how many changes shared it
	Took  time.Duration // from its first change to the end of its sync
	Ended []Ended       // the runs that came to their end in it
}

// Ended is a run's end.
type Ended struct {
	Project string
	State   ci.State
	Ran     time.Duration // since its last attempt began; 0 if there was none
}

// Store is one open database. It is safe for use by many goroutines; one
// process at a time can have it open for writing.
type Store struct {
	db        *bolt.DB
	path      string
	now       func() time.Time
	runURL    func(string) string
	failpoint func(string) error
	committed func(Commit)
	changed   func([]Change)
	instance  string // starts the ids of this store's outbox entries
	layout    *layout
	kept      string       // see Kept
	beating   atomic.Bool  // a server is alive over it; see Began
	beat      atomic.Int64 // its last sign of life on disk, Unix milliseconds

	queue     chan *op
	closing   chan struct{}
	stopped   chan struct{} // the commit loop has ended
	closeOnce sync.Once

	health   atomic.Pointer[ci.Error] // why the last commit failed
	broken   atomic.Pointer[ci.Error] // the disk failed: nothing is written until the next start
	watchers watchers
	specs    specCache
	bodies   bodyPacker
	logs     *Logs
}

// Open opens or creates the store in the file at path.
//
// Errors name the file and say what to do: another process holds it, its
// folder is missing, it may not be written, it is damaged, it is from a newer
// docket.
func Open(path string, o Options) (*Store, error) {
	if o.LockTimeout == 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RunURL == nil {
		o.RunURL = func(id string) string { return "/runs/" + id }
	}
	if o.LogDir == "" {
		o.LogDir = filepath.Join(filepath.Dir(path), "logs")
	}
	if err := checkFile(path, o.ReadOnly); err != nil {
		return nil, err
	}
	db, err := openBolt(path, o)
	for errors.Is(err, errReplaced) {
		db, err = openBolt(path, o)
	}
	if err != nil {
		return nil, openError(path, err)
	}
	kept := ""
	if !o.ReadOnly {
		if db, kept, err = migrated(path, db, o); err != nil {
			return nil, openError(path, err)
		}
	}
	s := &Store{
		db: db, path: path, kept: kept, now: o.Now, runURL: o.RunURL, failpoint: o.Failpoint, committed: o.Committed, changed: o.Changed,
		queue: make(chan *op, 1024), closing: make(chan struct{}), stopped: make(chan struct{}),
		logs: newLogs(o.LogDir),
	}
	if err := s.prepare(o.ReadOnly); err != nil {
		db.Close()
		return nil, err
	}
	if o.ReadOnly {
		close(s.closing)
		close(s.stopped)
		return s, nil
	}
	removeDrafts(path)
	go s.commitLoop()
	return s, nil
}

// openBolt opens the file once its pages are known to be whole, and turns
// what bbolt panics with on a damaged one into an error.
func openBolt(path string, o Options) (db *bolt.DB, err error) {
	if err := checkDamage(path, o); err != nil {
		return nil, err
	}
	var file *os.File
	defer func() {
		if p := recover(); p != nil {
			file.Close() // and with it the lock
			db, err = nil, fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	opt := &bolt.Options{
		Timeout:         o.LockTimeout,
		NoFreelistSync:  true, // rebuilt at open; a synced one slows every commit after a large prune
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: initialMmap,
		ReadOnly:        o.ReadOnly,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			file, err = os.OpenFile(name, flag, perm)
			return file, err
		},
	}
	if o.ReadOnly {
		opt.InitialMmapSize = 0
	}
	db, err = bolt.Open(path, 0o600, opt)
	if err != nil && !o.ReadOnly && !errors.Is(err, berrors.ErrTimeout) && errors.Is(err, errNoMemory) {
		opt.InitialMmapSize = 0
		db, err = bolt.Open(path, 0o600, opt)
	}
	if err != nil {
		return nil, err
	}
	if !isAt(file, path) {
		db.Close()
		return nil, errReplaced
	}
	return db, nil
}

// errReplaced: while the file's lock was waited for, another file took its
// place, as compacting does. What is written to the old one would be lost.
var errReplaced = errors.New("the file was replaced while its lock was waited for")

// isAt reports whether a path still leads to an open file.
func isAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	want, err := os.Stat(path)
	return err == nil && os.SameFile(have, want)
}

// checkDamage walks the pages of a file that is there already. The file is
// locked meanwhile, so that nobody changes it.
func checkDamage(path string, o Options) error {
	st, err := os.Stat(path)
	if err != nil || st.Size() == 0 {
		return nil // opening makes it, or says why it cannot
	}
	var file *os.File
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: o.LockTimeout, ReadOnly: true,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			file, err = os.OpenFile(name, flag, perm)
			return file, err
		},
	})
	if err != nil {
		return err
	}
	defer db.Close()
	if st, err = file.Stat(); err != nil {
		return err
	}
	return checkPages(file, st.Size(), db.Info().PageSize, o.walk)
}

var errDamaged = errors.New("the file is damaged")

func checkFile(path string, readOnly bool) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if readOnly {
			return ci.Errorf(ci.CodeNotFound, "there is no store at %s; check data_dir in the configuration", path)
		}
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return ci.Wrap(ci.CodeUnavailable, err, "the data directory %s is not there; create it, or mend data_dir in the configuration", filepath.Dir(path))
		}
	case err != nil:
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s cannot be reached; check its permissions", path)
	case st.IsDir():
		return ci.Errorf(ci.CodeUnavailable, "%s is a directory, and docket's store is a file; mend data_dir in the configuration", path)
	case st.Size() == 0 && readOnly:
		return ci.Errorf(ci.CodeUnavailable, "the store %s is empty", path)
	}
	return nil
}

func openError(path string, err error) error {
	var told *ci.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s is in use by another docket process; stop that one first (`fuser %s` names it), or reach it with the command line, which talks to a running server", path, path)
	case errors.Is(err, fs.ErrPermission):
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s may not be written by this user; run docket as the owner of the data directory, or mend its permissions", path)
	case errors.Is(err, errReadOnly):
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s lies on a file system that takes no writes; mount it for writing, and look into the kernel's log first: a disk with errors is often made read-only", path)
	case errors.Is(err, errNoFiles):
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s cannot be opened, as this process has no file descriptors left; raise its limit (LimitNOFILE= in a systemd unit, `ulimit -n` in a shell)", path)
	case errors.Is(err, errDamaged), errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return ci.Wrap(ci.CodeUnavailable, err, "the store %s is damaged and was left as it is; move its directory away and put a backup in its place with `docket restore FILE`", path)
	}
	return ci.Wrap(ci.CodeUnavailable, err, "the store %s cannot be opened", path)
}

// prepare fills a new file, and checks the version of an old one.
func (s *Store) prepare(readOnly bool) error {
	var version uint64
	var ok, empty bool
	err := s.db.View(func(b *bolt.Tx) error {
		if version, ok = schemaOf(b); ok {
			s.layout = layoutOf(version)
			s.instance = string(b.Bucket([]byte(shelfMeta)).Get(metaInstance))
		}
		k, _ := b.Cursor().First()
		empty = k == nil
		return nil
	})
	switch {
	case err != nil:
		return openError(s.path, err)
	case ok && version > SchemaVersion:
		return ci.Errorf(ci.CodeUnavailable, "the store %s has schema version %d, and this docket knows only up to %d; start the newer docket that wrote it", s.path, version, SchemaVersion)
	case ok:
		return nil
	case !empty:
		return ci.Errorf(ci.CodeUnavailable, "%s is a bbolt file, but not docket's; mend data_dir in the configuration", s.path)
	case readOnly:
		return ci.Errorf(ci.CodeUnavailable, "the store %s is empty", s.path)
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	s.layout, s.instance = present, hex.EncodeToString(id[:])
	err = s.db.Update(func(b *bolt.Tx) error {
		if err := s.layout.make(b); err != nil {
			return err
		}
		meta := b.Bucket([]byte(shelfMeta))
		if err := meta.Put(metaSchema, be64(SchemaVersion)); err != nil {
			return err
		}
		return meta.Put(metaInstance, []byte(s.instance))
	})
	if err != nil {
		return openError(s.path, err)
	}
	return syncDir(filepath.Dir(s.path))
}

// Kept returns the file of an older schema that opening the store brought
// forward and left as it was, or "".
func (s *Store) Kept() string { return s.kept }

// Close waits for the commits under way and releases the file.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		select {
		case <-s.closing: // read-only: nothing ever ran
		default:
			close(s.closing)
		}
	})
	<-s.stopped
	s.logs.closeAll()
	if !s.db.IsReadOnly() && s.broken.Load() == nil {
		s.listFree()
	}
	return s.db.Close()
}

// listFree writes the list of free pages, once and at the end, so that the
// next open need not look for them in the whole file. Where that fails it
// looks for them, as after a kill.
func (s *Store) listFree() {
	s.db.NoFreelistSync = false
	_ = s.db.Update(func(*bolt.Tx) error { return nil })
}

// Path returns the store's file.
func (s *Store) Path() string { return s.path }

// Health returns nil, or why the last commit failed or nothing may be written.
func (s *Store) Health() error {
	if e := s.health.Load(); e != nil {
		return e
	}
	return nil
}

// Probe commits a small change; it tells whether the store is writable now.
func (s *Store) Probe(ctx context.Context) error {
	return s.update(ctx, func(t *tx) error {
		return t.put(bucketMeta, metaProbe, be64(uint64(t.now.UnixMilli())))
	})
}

// view runs a read. fn copies what it needs: nothing it was given may be used
// after it returns.
func (s *Store) view(fn func(t *tx) error) error {
	err := s.db.View(func(b *bolt.Tx) error { return fn(&tx{s: s, b: b, now: s.now()}) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return errClosed()
	}
	return err
}

func errClosed() error {
	return ci.Errorf(ci.CodeUnavailable, "docket is shutting down; try again in a moment")
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
