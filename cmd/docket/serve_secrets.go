package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"docket/store/ci"
)

// watchedFiles are the files that a configuration took its secrets from, as
// they were when it was read.
type watchedFiles struct {
	mu    sync.Mutex
	files map[string]fileState
}

// fileState tells one content of a file from the next.
type fileState struct {
	inode  uint64
	size   int64
	change time.Time
	there  bool
}

func stateOfFile(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	s := fileState{size: info.Size(), change: info.ModTime(), there: true}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s
}

// load is Load that remembers the secrets' files. They are looked at before
// they are read, so that a change in between is seen the next time.
func (f *watchedFiles) load(path string, getenv func(string) string) (*ci.Config, error) {
	text, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	files := map[string]fileState{}
	cfg, err := parseConfig(path, text, getenv, func(name string) ([]byte, error) {
		files[name] = stateOfFile(name)
		return readSecretFile(name)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil { // it may not have come to all of them
		for name, was := range f.files {
			if _, ok := files[name]; !ok {
				files[name] = was
			}
		}
	}
	f.files = files
	return cfg, err
}

// changed returns a file that is not any more as it was read, or "".
func (f *watchedFiles) changed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, was := range f.files {
		if stateOfFile(path) != was {
			return path
		}
	}
	return ""
}

// watchSecrets reads the configuration again when a secret's file has changed,
// until ctx ends. One that is empty or gone for now is refused like any broken
// configuration, and looked at again.
func (d *appliance) watchSecrets(ctx context.Context) {
	if d.secrets == nil {
		return
	}
	for {
		timer := time.NewTimer(max(d.current.Load().ScanInterval, 50*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if path := d.secrets.changed(); path != "" {
			d.rereadAndSay(keyFile, path)
		}
	}
}
