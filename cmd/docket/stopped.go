package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"docket/store"
)

// storeFile is the name of the store in the data directory.
const storeFile = "docket.db"

// serverOrStore does something through the running server, or on the store
// itself where no server runs. create lets a store that does not exist yet
// be made.
func (a *app) serverOrStore(ctx context.Context, create bool, online func(*client) error, offline func(*store.Store) error) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	err = online(c)
	var none *errNoServer
	if !errors.As(err, &none) {
		return err
	}
	s, err := openStore(filepath.Dir(none.socket), create)
	if err != nil {
		return err
	}
	if err := offline(s); err != nil {
		_ = s.Close()
		return err
	}
	return s.Close()
}

// openStore opens the store of a stopped server.
func openStore(dir string, create bool) (*store.Store, error) {
	path := filepath.Join(dir, storeFile)
	_, err := os.Stat(path)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the store %s cannot be reached; run this as the user that docket runs as: %w", path, err)
	case !create:
		return nil, fmt.Errorf("there is no store %s yet; start the server once with `docket serve`, or name the right configuration with -c", path)
	default:
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the data directory cannot be made; correct data_dir in the configuration: %w", err)
		}
	}
	return store.Open(path, store.Options{})
}
