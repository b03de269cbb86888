package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Prune removes the logs of runs to which nothing was written since a time,
// and returns of how many runs. Those that are being written stay.
func (l *Logs) Prune(ctx context.Context, before time.Time) (n int, err error) {
	projects, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, p := range projects {
		runs, e := os.ReadDir(filepath.Join(l.dir, p.Name()))
		err = errors.Join(err, e)
		for _, r := range runs {
			if ctx.Err() != nil {
				return n, ctx.Err()
			}
			dir := filepath.Join(l.dir, p.Name(), r.Name())
			old, e := l.allBefore(dir, before)
			if e == nil && old {
				e = os.RemoveAll(dir)
				n++
			}
			if !errors.Is(e, fs.ErrNotExist) { // removed meanwhile, with its run
				err = errors.Join(err, e)
			}
		}
	}
	return n, err
}

// allBefore reports whether no log in a run's directory was written to since a
// time, or is open.
func (l *Logs) allBefore(dir string, before time.Time) (bool, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		l.mu.Lock()
		live := l.live[filepath.Join(dir, f.Name())] != nil
		l.mu.Unlock()
		info, err := f.Info()
		if err != nil || live || !info.ModTime().Before(before) {
			return false, err
		}
	}
	return true, nil
}
