package store

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of the store to w and returns its size. The
// copy goes to a file beside the store first, so that a slow reader of w
// holds nothing up; that file is gone afterwards.
func (s *Store) Backup(ctx context.Context, w io.Writer) (n int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(s.path), ".backup-*")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
		return 0, err
	}
	if err := s.view(func(t *tx) error {
		_, err := t.b.WriteTo(f)
		return err
	}); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, &contextReader{ctx, f})
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
