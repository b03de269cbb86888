package store

import (
	"encoding/hex"
	"strings"
	"sync"

	"docket/store/ci"
)

func (t *tx) putSpec(digest string, spec *ci.Spec) error {
	key, err := specKey(digest)
	if err != nil {
		return err
	}
	if t.get(bucketSpecs, key) != nil {
		return nil
	}
	return t.put(bucketSpecs, key, mustJSON(spec))
}

func specKey(digest string) ([]byte, error) {
	h, ok := strings.CutPrefix(digest, "sha256:")
	key, err := hex.DecodeString(h)
	if !ok || err != nil || len(key) != 32 {
		return nil, ci.Errorf(ci.CodeNotFound, "no spec %q: a spec's digest is sha256: and 64 hex digits", digest)
	}
	return key, nil
}

// specCache keeps decoded specs. A digest names its content for ever, so
// nothing here can be out of date, whatever became of a transaction.
type specCache struct {
	mu sync.Mutex
	m  map[string]*ci.Spec
}

const maxCachedSpecs = 256

func (t *tx) spec(digest string) (*ci.Spec, error) {
	c := &t.s.specs
	c.mu.Lock()
	spec := c.m[digest]
	c.mu.Unlock()
	if spec != nil {
		return spec, nil
	}
	key, err := specKey(digest)
	if err != nil {
		return nil, err
	}
	v := t.get(bucketSpecs, key)
	if v == nil {
		return nil, ci.Errorf(ci.CodeNotFound, "no spec %s is on record", digest)
	}
	read, err := decodeJSON[ci.Spec]("spec", v)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxCachedSpecs {
		c.m = map[string]*ci.Spec{}
	}
	c.m[digest] = &read
	return &read, nil
}

// Spec returns a frozen spec by its digest, or CodeNotFound.
func (s *Store) Spec(digest string) (spec ci.Spec, err error) {
	err = s.view(func(t *tx) error {
		p, err := t.spec(digest)
		if err == nil {
			spec = *p
		}
		return err
	})
	return spec, err
}
